//! Arguments of `bisect`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use wb_session::bisect::DEFAULT_THRESHOLD;
use wb_session::options::parse_text_path;

use super::parse_threshold;

/// Exit statuses of `bisect step`, printed after its help.
pub(crate) const STEP_EXIT_STATUS: &str = "exit status of `step`: 0 good, 1 bad, 125 undecided (git skips the revision), 128 error, \
    130 interrupted";

/// Exit statuses of `bisect run`, printed after its help.
pub(crate) const RUN_EXIT_STATUS: &str = "exit status: 0 found, 1 error, 3 not found, 130 interrupted";

/// `bisect`
#[derive(Debug, Subcommand)]
pub(crate) enum BisectCommand {
    /// Measure the good and the bad revision, then drive `git bisect run` until the first bad revision is found
    #[command(after_help = RUN_EXIT_STATUS)]
    Run(BisectRunArgs),
    /// Measure the checked-out revision and report whether it is good or bad: for `git bisect run` or any other
    /// bisection tool
    #[command(after_help = STEP_EXIT_STATUS)]
    Step(BisectStepArgs),
    /// Show every measured revision
    Show(BisectShowArgs),
}

/// `bisect run`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how").required(true))]
#[command(override_usage = "weighbridge bisect run [OPTIONS] --into <DIR> --good <REVISION> --bad <REVISION> \
    (--measure <COMMAND> | -- <RUN_ARGS>...)")]
pub(crate) struct BisectRunArgs {
    /// Bisection folder; an existing one is resumed, and no revision is measured twice
    #[arg(long, short, value_name = "DIR", value_parser = parse_text_path)]
    pub(crate) into: PathBuf,
    /// Good revision, from before the change
    #[arg(long, value_name = "REVISION")]
    pub(crate) good: String,
    /// Bad revision, from after the change
    #[arg(long, value_name = "REVISION")]
    pub(crate) bad: String,
    /// Existing results of the good revision, instead of measuring it: one run, or several separated by commas
    #[arg(long, value_name = "RUN[,RUN…]")]
    pub(crate) good_results: Option<String>,
    /// Existing results of the bad revision, instead of measuring it: one run, or several separated by commas
    #[arg(long, value_name = "RUN[,RUN…]")]
    pub(crate) bad_results: Option<String>,
    /// Git repository
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = parse_text_path)]
    pub(crate) repo: PathBuf,
    /// A command that builds a revision, run by sh in the repository; a revision where it fails is skipped
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// A command that measures a revision instead of `weighbridge run`, run by sh in the repository; it leaves a folder
    /// of results, of this program or in run-perf's layout, in $WEIGHBRIDGE_RESULTS
    #[arg(long, value_name = "COMMAND", group = "how")]
    pub(crate) measure: Option<String>,
    /// Number of runs of the good and of the bad revision: four or more, or one, which cannot separate a change from
    /// run-to-run variation
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = super::whole_number::<u16, 1>)]
    pub(crate) runs: u16,
    /// Smallest relevant difference between the good and the bad revision, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_THRESHOLD, value_parser = parse_threshold)]
    pub(crate) threshold: f64,
    /// How much results of one revision are assumed to differ where the good and the bad one are single values, the noise of
    /// their samples included, as a standard deviation in percent: other runs show it themselves
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = super::parse_run_noise)]
    pub(crate) run_noise: f64,
    /// Continue even if the good and bad revisions do not differ clearly
    #[arg(long)]
    pub(crate) force: bool,
    /// Arguments of `weighbridge run` that measure a revision: tests, plans, options
    #[arg(value_name = "RUN_ARGS", last = true, group = "how")]
    pub(crate) words: Vec<String>,
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
