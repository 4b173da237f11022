//! How a run ended, in words and as an exit status.

use wb_net::result::RunStatus;
use wb_net::session::client::ClientError;

use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Tells why a run did not go to its end. One that was cut did what was asked of it.
pub(super) fn report_outcome(outcome: &RunStatus, console: &Console) -> Exit {
    let (what, help) = match outcome {
        RunStatus::Completed | RunStatus::Truncated => return Exit::Success,
        RunStatus::Interrupted => {
            crate::console::tell!("interrupted: the figures are of what was done until then");
            return Exit::Interrupted;
        }
        RunStatus::Unsupported { reason: why } => {
            (why, "run it where the kernel can do this, or take what needs it out of the profile")
        }
        RunStatus::Failed { reason: why } => (why, failure_help(why)),
        RunStatus::Lost { reason: why } => {
            (why, "look at what `weighbridge net serve` said there; figures are of what came back")
        }
    };
    Error::Incomplete { what: what.clone(), help: help.to_owned() }.report(console)
}

fn failure_help(why: &str) -> &'static str {
    if why.contains("the server refuses") || why.contains("`net serve --max") {
        "ask for less, or start `weighbridge net serve` there with the limit raised"
    } else {
        "a flowop with `canfail` passes failures over and counts them; connecting waits with `timeout=`"
    }
}

/// Why a run could not begin.
pub(super) fn start_error(error: &ClientError) -> Error {
    let help = match error {
        ClientError::Unresolved { host, .. } => {
            format!("say where it is: --server {host}=ADDRESS; or correct the name")
        }
        ClientError::Server { host, .. } => format!(
            "`weighbridge net serve` must run there, with the same token; --port or --server {host}=ADDRESS:PORT says \
             where else it listens"
        ),
        ClientError::Files(_) => "name a folder with files in `dir=`".to_owned(),
        ClientError::Thread(_) => "raise the limit of processes (`ulimit -u`)".to_owned(),
    };
    Error::Usage { what: error.to_string(), help }
}

/// The exit status of several runs: the gravest that there is.
pub(super) fn worst_exit(exits: impl IntoIterator<Item = Exit>) -> Exit {
    exits.into_iter().max_by_key(|exit| exit.code()).unwrap_or(Exit::Success)
}
