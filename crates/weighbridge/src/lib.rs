//! The command lines of Weighbridge: of `weighbridge`, which people call, and of `weighbridge-agent`, which it starts on
//! workers, this machine included.
//!
//! Each parses its flags once, calls the other crates, and turns their results into text and an exit status. It does
//! not measure, study or render anything itself. The agent's program has the few commands that workers need.
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

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli::{AgentCli, Cli, ConsoleFlags};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

pub fn run_weighbridge() -> ExitCode {
    let words = commands::run_perf::rewrite_program_name(std::env::args_os().collect());
    let cli = match Cli::parse_words(&words) {
        Ok(cli) => cli,
        Err(error) => return exit::report_parse_error(&error, &words),
    };
    wb_session::worker_program::require_worker_version(cli::VERSION);
    if cli.reserves_standard_output {
        output::reserve_standard_output();
    }
    run(&cli.console, |console| commands::run_command(cli.command, cli.run_folder, console))
}

/// Runs `weighbridge-agent`.
pub fn run_agent_program() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    match AgentCli::parse_words(&words) {
        Ok(cli) => run(&cli.console, |console| commands::run_agent_command(cli.command, console)),
        Err(error) => exit::report_parse_error(&error, &words),
    }
}

fn run(flags: &ConsoleFlags, command: impl FnOnce(&Console) -> Result<Exit, Error>) -> ExitCode {
    let console = Console::from_flags(flags);
    let exit = console::open_log(flags).and_then(|()| command(&console));
    exit.unwrap_or_else(|error| error.report(&console)).into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
