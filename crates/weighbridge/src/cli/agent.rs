//! The command line of `weighbridge-agent`.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::exec::Kernel;
use super::net::NetWorkloadCommand;
use super::tune::TuneHere;
use super::{ConsoleFlags, DoctorArgs, ParseError, VERSION};

/// Runs what Weighbridge measures on this machine, for a controller
#[derive(Debug, Parser)]
#[command(name = "weighbridge-agent", version = VERSION, max_term_width = 100)]
pub(crate) struct AgentCli {
    /// Command to run
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
    /// Output options
    #[command(flatten)]
    pub(crate) console: ConsoleFlags,
}

/// What a controller starts on a worker.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Run as the agent, over standard input and output, until the controller is gone
    Agent,
    /// Run one kernel or workload in this process and print its report
    Exec {
        /// Kernel to run
        #[arg(value_enum)]
        kernel: Kernel,
        /// Configuration of the kernel, as JSON
        config: String,
    },
    /// Execute a controller's order on this machine's image cache
    Images {
        /// The order as JSON
        order: String,
    },
    /// Run or serve network workloads
    Net {
        /// Subcommand
        #[command(subcommand)]
        command: Box<NetWorkloadCommand>,
    },
    /// Report what makes measurements on this machine noisy
    Doctor(DoctorArgs),
    /// Show, change and restore settings of this machine
    Tune {
        /// Subcommand
        #[command(subcommand)]
        command: TuneHere,
    },
}

impl AgentCli {
    /// Parses a command line, whose first word is the program. A request for help or the version is an error, too.
    pub(crate) fn parse_words(words: &[OsString]) -> Result<Self, ParseError> {
        let mut program = Self::command();
        let parsed = program.try_get_matches_from_mut(words).and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| ParseError::new(error, &program, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_valid() {
        AgentCli::command().debug_assert();
    }
}
