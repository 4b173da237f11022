//! Reports how a network run ended: message, help and exit status.

use wb_net::session::client::ClientError;
use wb_results::net::RunStatus;

use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Reports why a run did not complete. A run that `--max-duration` stopped counts as complete.
pub(super) fn report_outcome(outcome: &RunStatus, console: &Console) -> Exit {
    let (what, help) = match outcome {
        RunStatus::Completed | RunStatus::Truncated => return Exit::Success,
        RunStatus::Interrupted => {
            crate::console::message!("interrupted: figures cover the run until then");
            return Exit::Interrupted;
        }
        RunStatus::Unsupported { reason } => (reason, "run it on a kernel that supports this, or do not request it"),
        RunStatus::Failed { reason } => (reason, failure_help(reason)),
        RunStatus::Lost { reason } => {
            (reason, "see the output of `weighbridge net serve` there; figures cover what was received")
        }
    };
    Error::Incomplete { what: what.clone(), help: help.to_owned() }.report(console)
}

fn failure_help(reason: &str) -> &'static str {
    if reason.contains("`net serve --once`") {
        "try again later, or start another server"
    } else if reason.contains("the server refuses") || reason.contains("`net serve --max") {
        "reduce the request, or raise the limit of `weighbridge net serve` there"
    } else {
        "`canfail` makes a flowop count failures and continue; `timeout=` makes a connect wait"
    }
}

pub(super) fn start_error(error: &ClientError) -> Error {
    let help = match error {
        ClientError::Unresolved { host, .. } => {
            format!("give its address with --server {host}=ADDRESS, or correct the name")
        }
        ClientError::Server { host, .. } => format!(
            "`weighbridge net serve` must run there, with the same token and, for other machines, --listen; --port or --server {host}=ADDRESS:PORT selects \
             another port"
        ),
        ClientError::Files(_) => "name a folder with files in `dir=`".to_owned(),
        ClientError::Key(_) => "getrandom(2) must be permitted".to_owned(),
        ClientError::Thread(_) => "raise the process limit (`ulimit -u`)".to_owned(),
    };
    Error::Usage { what: error.to_string(), help }
}

pub(super) fn worst_exit(exits: impl IntoIterator<Item = Exit>) -> Exit {
    exits.into_iter().max_by_key(|exit| exit.code()).unwrap_or(Exit::Success)
}
