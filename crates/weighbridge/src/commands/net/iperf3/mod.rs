//! `weighbridge net iperf3`: iperf3's options and output, over this program's engine.

mod client;
mod output;
mod server;

use rand::Rng as _;
use wb_report::net::iperf3::json::Identity;

use crate::cli::net::iperf3::Iperf3Args;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

use self::output::Output;

/// Runs either side.
pub(super) fn iperf3(args: &Iperf3Args, console: &Console) -> Result<Exit, Error> {
    let output = Output::open(args.logfile.as_ref(), args.test.title.as_deref())?;
    match &args.client {
        Some(host) => client::run(args, host, output, console),
        None => server::run(args, output),
    }
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputForm {
    Text,
    /// One document, at the end.
    Json,
    /// A document for each event.
    JsonStream,
}

impl OutputForm {
    fn of(args: &Iperf3Args) -> Self {
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
