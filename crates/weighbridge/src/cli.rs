//! Every command and flag. Help, man page and completions are generated from these declarations.
//!
//! Start with [`Cli`] and [`Command`]; the arguments of each command are in a file of their own.

pub(crate) mod agent;
pub(crate) mod archive;
pub(crate) mod bisect;
pub(crate) mod clean;
mod command;
pub(crate) mod compare;
mod console;
pub(crate) mod contention;
mod defaults;
mod doctor;
pub(crate) mod exec;
mod groups;
pub(crate) mod hashd;
pub(crate) mod import;
mod input_files;
mod list;
mod measurement;
pub(crate) mod net;
mod on_hosts;
mod output_conflicts;
mod output_path;
pub(crate) mod peers;
mod placement;
pub(crate) mod profile;
mod read;
mod run;
mod run_folder;
pub(crate) mod run_perf;
pub(crate) mod schema;
mod selection;
mod session;
pub(crate) mod tune;
mod units;
mod usage_error;
mod values;
pub(crate) mod variants;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::cli::run_perf::PROGRAMS;
use crate::exit;

pub(crate) use agent::{AgentCli, AgentCommand};
pub(crate) use command::Command;
pub(crate) use console::{Colour, ConsoleFlags};
pub(crate) use doctor::DoctorArgs;
pub(crate) use list::ListArgs;
pub(crate) use measurement::{AttemptFlags, CellFlags, MeasurementFlags, SamplingFlags};
pub(crate) use on_hosts::OnHosts;
pub(crate) use output_path::{OutputFolder, OutputPath, OutputPrefix, prefix_parser};
pub(crate) use placement::{NumberList, PlacementFlags, parse_number_list};
pub(crate) use read::{FormatArgs, ReportArgs, SolveArgs, StudyArgs, SummaryArgs};
pub(crate) use run::{LayoutFolder, PlanArgs, RunArgs, RunFolderFlags};
pub(crate) use selection::SelectionFlags;
pub(crate) use session::{AB_PREFIX, CALIBRATE_PREFIX, RUN_PREFIX};
pub(crate) use usage_error::{ParseError, UsageError};
pub(crate) use values::{KeyValueParser, enum_parser, parse_ip_address};
pub(crate) use wb_session::numbers::{
    parse_fraction, parse_non_negative, parse_positive, parse_run_noise, parse_threshold, whole_number, whole_number_to,
};

/// Version, commit and build: `0.1.0 (4d94be8 2026-11-23, release build for x86_64-unknown-linux-gnu)`.
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("WEIGHBRIDGE_COMMIT"),
    ", ",
    env!("WEIGHBRIDGE_PROFILE"),
    " build for ",
    env!("WEIGHBRIDGE_TARGET"),
    ")"
);

/// Measures the performance of Linux systems, repeatably and with confidence intervals
///
/// Tests are sampled until their figures reach the requested precision. Everything is recorded in a run folder, which
/// can be resumed, studied again and reported at any time.
#[derive(Debug, Parser)]
#[command(name = "weighbridge", version = VERSION, propagate_version = true, max_term_width = 100)]
#[command(after_help = after_help())]
pub(crate) struct Cli {
    /// Command to run
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Output options
    #[command(flatten)]
    pub(crate) console: ConsoleFlags,
    /// Run folder; the arguments of `summary`, `format`, `study`, `solve` and `pack` are then contention benches
    #[arg(long, short, global = true, value_name = "DIR")]
    pub(crate) run_folder: Option<PathBuf>,
    /// Whether an option writes its file to standard output
    #[arg(skip)]
    pub(crate) reserves_standard_output: bool,
}

fn after_help() -> String {
    let programs = PROGRAMS.join(", ");
    format!(
        "For users of run-perf: {programs} are subcommands with those programs' options.\n\n{}",
        exit::describe_all()
    )
}

impl Cli {
    /// The declarations, with defaults that are defined elsewhere.
    pub(crate) fn build_command() -> clap::Command {
        let program = run_folder::describe(defaults::show_defaults(Self::command()));
        let program = defaults::change_subcommand(program, "net", net::unused_options::hide);
        groups::group_commands(units::describe(program))
    }

    /// Parses a command line, whose first word is the program. A request for help or the version is an error, too.
    pub(crate) fn parse_words(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, ParseError> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let mut program = Self::command();
        let matches = match program.try_get_matches_from_mut(&words) {
            Ok(matches) => matches,
            // Only help and messages have what descriptions add, which takes as long as the rest of a command's start.
            Err(_) => {
                program = Self::build_command();
                let described = program.try_get_matches_from_mut(&words);
                described.map_err(|error| ParseError::new(error, &program, &words))?
            }
        };
        run_folder::refuse_where_unused(&matches).map_err(ParseError::Usage)?;
        if let Some(("net", net)) = matches.subcommand() {
            net::unused_options::refuse(net).map_err(ParseError::Usage)?;
        }
        let reserves_standard_output = output_conflicts::check(&program, &matches).map_err(ParseError::Usage)?;
        let cli = Self::from_arg_matches(&matches).map_err(|error| ParseError::new(error, &program, &words))?;
        Ok(Self { reserves_standard_output, ..cli })
    }
}

#[cfg(test)]
mod tests {
    use wb_model::HugePages;
    use wb_plan::SamplingOrder;

    use super::*;

    #[test]
    fn the_declarations_are_sound() {
        Cli::build_command().debug_assert();
    }

    #[test]
    fn words_and_percentages_are_read() {
        let read = |line: &str| Cli::parse_words(line.split(' ')).unwrap();
        let line = "weighbridge run t --precision 2.5% --order sequential --huge-pages never";
        let Command::Run(args) = read(line).command else { panic!("expected the command `run`") };
        assert_eq!(args.measurement.cells.sampling.precision, Some(2.5));
        assert_eq!(args.measurement.cells.sampling.order, Some(SamplingOrder::Sequential));
        assert_eq!(args.measurement.cells.placement.huge_pages, Some(HugePages::Never));
    }
}
