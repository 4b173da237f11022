//! `weighbridge peers`: matrices of implementations.

mod dependencies;
mod inputs;
pub(crate) mod list;
mod report;
mod results;
mod run;

use crate::cli::peers::PeersCommand;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

pub(crate) use inputs::{matrix_file, record_inputs};

pub(crate) fn peers(command: &PeersCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        PeersCommand::List(args) => list::list(args, console),
        PeersCommand::Run(args) => run::run(args, console),
        PeersCommand::Report(args) => report::report(args, console),
    }
}

fn nothing_selected() -> Error {
    Error::NothingToDo {
        what: "no cell of the matrix is selected".to_owned(),
        help: "`weighbridge peers list --why` with the same filters says why".to_owned(),
    }
}
