//! `bisect`: which change made the difference.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

/// What is said after the help.
pub(crate) const STEP_EXIT_STATUS: &str = "exit status of `step`: 0 as the good side, 1 as the bad side, 125 cannot be told (git skips \
    it), 128 something is wrong, 130 interrupted";

/// What is said after the help of `bisect run`.
pub(crate) const RUN_EXIT_STATUS: &str = "exit status: 0 found, 3 it could not be found, 1 error, 130 interrupted";

/// `bisect`
#[derive(Debug, Subcommand)]
pub(crate) enum BisectCommand {
    /// Drive `git bisect run`: measure both ends, then each revision that git asks for, until the first bad one is found
    #[command(after_help = RUN_EXIT_STATUS)]
    Run(BisectRunArgs),
    /// Measure what stands now, and say which end it is most like: for `git bisect run`, or any other command that
    /// bisects
    #[command(after_help = STEP_EXIT_STATUS)]
    Step(BisectStepArgs),
    /// Show everything that was measured
    Show(BisectShowArgs),
}

/// `bisect run`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how").required(true))]
pub(crate) struct BisectRunArgs {
    /// The folder for all that is measured; one that exists is gone on with, and no revision is measured twice
    #[arg(long, short, value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// A revision from before the change
    #[arg(long, value_name = "REVISION")]
    pub(crate) good: String,
    /// A revision from after it
    #[arg(long, value_name = "REVISION")]
    pub(crate) bad: String,
    /// Results of the good revision that exist, instead of measuring it: a run, or several with commas
    #[arg(long, value_name = "RUN[,RUN…]")]
    pub(crate) good_results: Option<String>,
    /// Results of the bad revision that exist
    #[arg(long, value_name = "RUN[,RUN…]")]
    pub(crate) bad_results: Option<String>,
    /// The repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repo: PathBuf,
    /// A command that builds a revision, run by sh in the repository; a revision where it fails is skipped
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// A command that measures a revision instead of `weighbridge run`, run by sh in the repository; it leaves a folder of
    /// results, of this program or in run-perf's layout, in $WEIGHBRIDGE_RESULTS
    #[arg(long, value_name = "COMMAND", group = "how")]
    pub(crate) measure: Option<String>,
    /// So many runs of each end: with fewer than four nobody can tell a change from what runs of one build differ in
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = super::whole_number::<u16, 1>)]
    pub(crate) runs: u16,
    /// Go on although the ends do not differ clearly
    #[arg(long)]
    pub(crate) anyway: bool,
    /// The words of `weighbridge run` that measure a revision: tests, plans, options
    #[arg(value_name = "WORD", last = true, group = "how")]
    pub(crate) words: Vec<String>,
}

/// `bisect step`
#[derive(Debug, Args)]
pub(crate) struct BisectStepArgs {
    /// The folder of `bisect run`
    #[arg(long, short, value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// What to call that which stands now; without, the revision that is checked out
    pub(crate) name: Option<String>,
}

/// `bisect show`
#[derive(Debug, Args)]
pub(crate) struct BisectShowArgs {
    /// The folder of `bisect run`
    #[arg(long, short, value_name = "DIR")]
    pub(crate) into: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
