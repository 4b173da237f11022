//! Options of bisections.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::state::{DEFAULT_THRESHOLD, MeasureMethod};
use crate::numbers::{parse_run_noise, parse_threshold, whole_number};
use crate::options::parse_text_path;

/// Options of a bisection
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("how").required(true))]
#[command(override_usage = "weighbridge bisect run [OPTIONS] --into <DIR> --good <REVISION> --bad <REVISION> \
    (--measure <COMMAND> | -- <RUN_ARGS>...)")]
pub struct BisectionOptions {
    /// Bisection folder; an existing one is resumed, and no revision is measured twice
    #[arg(long, short, value_name = "DIR", value_parser = parse_text_path)]
    pub into: PathBuf,
    /// Good revision, from before the change
    #[arg(long, value_name = "REVISION")]
    pub good: String,
    /// Bad revision, from after the change
    #[arg(long, value_name = "REVISION")]
    pub bad: String,
    /// Existing results of the good revision, instead of measuring it: one run, or several separated by commas
    #[arg(long, value_name = "RUN[,RUN…]")]
    pub good_results: Option<String>,
    /// Existing results of the bad revision, instead of measuring it: one run, or several separated by commas
    #[arg(long, value_name = "RUN[,RUN…]")]
    pub bad_results: Option<String>,
    /// Git repository
    #[arg(long, value_name = "DIR", default_value = ".", value_parser = parse_text_path)]
    pub repo: PathBuf,
    /// A command that builds a revision, run by sh in the repository; a revision where it fails is skipped
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// A command that measures a revision instead of `weighbridge run`, run by sh in the repository; it leaves a folder
    /// of results, of this program or in run-perf's layout, in $WEIGHBRIDGE_RESULTS
    #[arg(long, value_name = "COMMAND", group = "how")]
    pub measure: Option<String>,
    /// Number of runs of the good and of the bad revision: four or more, or one, which cannot separate a change from
    /// run-to-run variation
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = whole_number::<u16, 1>)]
    pub runs: u16,
    /// Smallest relevant difference between the good and the bad revision, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_THRESHOLD, value_parser = parse_threshold)]
    pub threshold: f64,
    /// How much results of one revision are assumed to differ where the good and the bad one are single values, the noise of
    /// their samples included, as a standard deviation in percent: other runs show it themselves
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = parse_run_noise)]
    pub run_noise: f64,
    /// Continue even if the good and bad revisions do not differ clearly
    #[arg(long)]
    pub force: bool,
    /// Arguments of `weighbridge run` that measure a revision: tests, plans, options
    #[arg(value_name = "RUN_ARGS", last = true, group = "how")]
    pub words: Vec<String>,
}

impl BisectionOptions {
    pub fn measure_method(&self) -> MeasureMethod {
        match &self.measure {
            Some(command) => MeasureMethod::Command(command.clone()),
            None => MeasureMethod::Run(self.words.clone()),
        }
    }
}
