//! The command line of Weighbridge.
//!
//! `main` parses the flags once, calls the other crates, and turns their results into text and an exit status. It does
//! not measure, study or render anything itself.
//!
//! Start with [`cli`] (all commands and flags), then [`commands`] (their implementation).

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod console;
mod error;
mod exit;
mod format;
mod output;
mod progress;
mod recorded_file;
mod session_events;
mod signals;
mod telemetry;
mod transfer;

use std::process::ExitCode;

use crate::cli::Cli;
use crate::exit::Exit;

fn main() -> ExitCode {
    let words = commands::run_perf::rewrite_program_name(std::env::args_os().collect());
    let cli = match Cli::parse_words(&words) {
        Ok(cli) => cli,
        Err(error) => return exit::report_parse_error(&error, &words),
    };
    if cli.reserves_standard_output {
        output::reserve_standard_output();
    }
    let console = console::Console::from_flags(&cli.console);
    if let Err(error) = console::open_log(&cli.console) {
        return error.report(&console).into();
    }
    commands::run_command(cli.command, cli.run_folder, &console).unwrap_or_else(|error| error.report(&console)).into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
