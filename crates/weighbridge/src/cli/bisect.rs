use std::path::PathBuf;

use clap::{Args, Subcommand};
use wb_session::bisect::BisectionOptions;
use wb_session::options::parse_text_path;

pub(crate) const STEP_EXIT_STATUS: &str = "exit status of `step`: 0 good, 1 bad, 125 undecided (git skips the revision), 128 error, \
    130 interrupted";

pub(crate) const RUN_EXIT_STATUS: &str = "exit status: 0 found, 1 error, 3 not found, 130 interrupted";

/// `bisect`
#[derive(Debug, Subcommand)]
pub(crate) enum BisectCommand {
    /// Measure the good and the bad revision, then drive `git bisect run` until the first bad revision is found
    #[command(after_help = RUN_EXIT_STATUS)]
    Run(BisectionOptions),
    /// Measure the checked-out revision and report whether it is good or bad: for `git bisect run` or any other
    /// bisection tool
    #[command(after_help = STEP_EXIT_STATUS)]
    Step(BisectStepArgs),
    /// Show every measured revision
    Show(BisectShowArgs),
}

/// `bisect step`
#[derive(Debug, Args)]
pub(crate) struct BisectStepArgs {
    /// Folder of `bisect run`
    #[arg(long, short, value_name = "DIR", value_parser = parse_text_path)]
    pub(crate) into: PathBuf,
    /// Name of what is measured; by default the hash of the checked-out revision
    pub(crate) name: Option<String>,
}

/// `bisect show`
#[derive(Debug, Args)]
pub(crate) struct BisectShowArgs {
    /// Folder of `bisect run`
    #[arg(long, short, value_name = "DIR", value_parser = parse_text_path)]
    pub(crate) into: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
