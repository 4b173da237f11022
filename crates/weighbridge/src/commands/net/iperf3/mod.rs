//! `weighbridge net iperf3`: iperf3's options and output, over this program's engine.

mod client;
mod output;
mod server;

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rand::Rng as _;
use serde_json::{Value, json};
use wb_report::net::iperf3::json::{Identity, JsonReport};

use crate::cli::net::iperf3::Iperf3Args;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::print_text;

use self::output::Output;

pub(super) fn iperf3(args: &Iperf3Args, console: &Console) -> Result<Exit, Error> {
    if args.version {
        print_text(&format!("weighbridge {}, with the options of iperf3 3.12\n", env!("CARGO_PKG_VERSION")))?;
        return Ok(Exit::Success);
    }
    if let Some((flag, reason)) = args.refused.refusal() {
        return Err(Error::Usage {
            what: format!("{flag} is not supported: {reason}"),
            help: format!("remove {flag}"),
        });
    }
    if args.daemon && std::env::var_os(DAEMON).is_none() {
        return start_daemon();
    }
    let output = Output::open(args)?;
    match &args.client {
        Some(host) => client::run(args, host, output, console),
        None => server::run(args, output, console),
    }
}

/// Why a server of one test at a time refuses a client.
const BUSY: &str = "the server is busy running a test";

/// Set in the process that serves in the background.
const DAEMON: &str = "WEIGHBRIDGE_IPERF3_DAEMON";

/// Starts this program again, detached from the terminal, with nothing to print to.
fn start_daemon() -> Result<Exit, Error> {
    let cannot = |error: std::io::Error| Error::Usage {
        what: format!("cannot start a process in the background: {error}"),
        help: "serve without -D".to_owned(),
    };
    let program = std::env::current_exe().map_err(cannot)?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).env(DAEMON, "1").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = command.spawn().map_err(cannot)?;
    crate::console::message!("serving in the background, as process {}", process.id());
    Ok(Exit::Success)
}

/// Prints an error, in JSON as its `error`, with the exit status of iperf3: 1 for every failure.
fn fail(form: OutputForm, output: &Output, error: &Error) -> Result<(), Error> {
    match form {
        OutputForm::Text => Ok(()),
        OutputForm::Json => output.write_json(&JsonReport::failed_start(&identity(), &error.to_string()), true),
        OutputForm::JsonStream => output.write_json(&event("error", json!(error.to_string())), false),
    }
}

fn event(name: &str, data: Value) -> Value {
    json!({ "event": name, "data": data })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputForm {
    Text,
    /// One document, at the end.
    Json,
    /// A document for each event.
    JsonStream,
}

impl OutputForm {
    fn new(args: &Iperf3Args) -> Self {
        match (args.json, args.json_stream) {
            (true, _) => Self::Json,
            (_, true) => Self::JsonStream,
            _ => Self::Text,
        }
    }
}

/// Where and when a test runs, with a new cookie.
fn identity() -> Identity {
    // The alphabet and length of iperf3's cookies.
    const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut random = rand::rng();
    let cookie = (0..36).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])).collect();
    let now = jiff::Timestamp::now();
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    Identity {
        version: format!("weighbridge {}", env!("CARGO_PKG_VERSION")),
        system_info: parts.map(|part| part.to_string_lossy().into_owned()).join(" "),
        seconds: now.as_second(),
        time: now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        cookie,
    }
}
