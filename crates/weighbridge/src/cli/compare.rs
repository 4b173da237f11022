//! Arguments of `compare` and of the commands around it: `model`, `analyze`, `nearest`, `strip`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use globset::{GlobBuilder, GlobMatcher};
use wb_compare::direction::DirectionOverride;
use wb_compare::statistical::Threshold;

use super::{
    KeyValueParser, OutputFolder, OutputPath, OutputPrefix, SelectionFlags, parse_non_negative, parse_positive,
    prefix_parser,
};

/// Options for reading builds
#[derive(Debug, Args)]
pub(crate) struct BuildFlags {
    /// Pair this profile of the first build with another profile of the other builds:
    /// `Localhost=DefaultLibvirt`; may be given more than once
    #[arg(long, value_name = "PROFILE=PROFILE", value_parser = KeyValueParser)]
    pub(crate) map: Vec<(String, String)>,
    /// Pair cells with this value of an axis in the first build with those of another value in the other builds:
    /// `rust-v0.56=rust-v0.57`; may be given more than once
    #[arg(long, value_name = "VALUE=VALUE", value_parser = KeyValueParser)]
    pub(crate) map_value: Vec<(String, String)>,
    /// Compare emulated machines with hardware, which is refused by default
    #[arg(long)]
    pub(crate) allow_emulated: bool,
    /// Include failed iterations and non-numeric serials
    #[arg(long)]
    pub(crate) include_incorrect: bool,
    /// Fail at the first malformed file instead of skipping it
    #[arg(long)]
    pub(crate) strict: bool,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
}

/// The ends of the names of the files that `--csv` writes: checks, aspects, samples, groups
pub(crate) const COMPARISON_FILES: [&str; 4] = [".csv", "-aspects.csv", "-samples.csv", "-groups.csv"];

/// Comparison method
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodArg {
    /// Percentage difference against a limit, scored as run-perf does
    Tolerance,
    /// Ratios with confidence intervals
    Statistical,
}

/// A verdict that `--fail-on` lets fail
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOnArg {
    /// The samples differ, but no more than runs of one build may
    Unconfirmed,
    /// No verdict, for example with too few samples; includes unconfirmed
    Inconclusive,
    /// Missing in the last build, invalid or incomparable, or a test that ended in an error
    Missing,
}

/// `compare`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("plots").multiple(true))]
pub(crate) struct CompareArgs {
    /// Builds: the reference first, the build to judge last, history between them. Each is a folder, or several runs of
    /// the same build; `latest` is the newest run in the current folder
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required_unless_present = "by", num_args = 1..)]
    pub(crate) builds: Vec<String>,
    /// Compare parts of one run with each other (default: the newest in the current folder): its workers, its tests by
    /// their ids, or cells that differ in this parameter alone. Samples of the same round form pairs
    #[arg(
        long, value_name = "worker|id|PARAM",
        conflicts_with_all = ["map", "map_value", "model", "run_noise", "model_builds_average", "n_out_of_results"],
    )]
    pub(crate) by: Option<String>,
    /// Worker, id or value of the parameter that the others are compared with [default: the first in the plan]
    #[arg(long, value_name = "VALUE", requires = "by")]
    pub(crate) reference: Option<String>,
    /// Options for reading the builds
    #[command(flatten)]
    pub(crate) read: BuildFlags,
    /// Compare cells that differ in these parameters, which is refused by default: `runtime`, `max-failures`
    #[arg(long, value_name = "PARAM,…", value_delimiter = ',')]
    pub(crate) allow_different: Vec<String>,
    /// Method that decides; by default tolerance for run-perf's folders, and statistical for other runs (inconclusive with
    /// fewer than 6 samples and 2 runs a side) and with a noise model
    #[arg(long, value_enum)]
    pub(crate) method: Option<MethodArg>,
    /// Tolerated difference of a mean in percent, where tolerances decide [default: 5]
    #[arg(long, short, value_name = "PERCENT", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) tolerance: Option<f64>,
    /// Tolerated difference of a standard deviation, in percentage points
    #[arg(long, default_value_t = 5.0, value_name = "POINTS", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) stddev_tolerance: f64,
    /// Model of normal values, from `model fit` or run-perf. The scores of several models are averaged; of several
    /// noise models the one with most data on a check is used. May be given more than once
    #[arg(long, short, value_name = "FILE")]
    pub(crate) model: Vec<PathBuf>,
    /// Weight of the mean score over all builds (times two, as in run-perf) in the score of the last
    #[arg(long, default_value_t = 0.0, value_name = "WEIGHT", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) model_builds_average: f64,
    /// Weight of the number of builds in which a check exceeded its tolerance
    #[arg(long, default_value_t = 0.0, value_name = "WEIGHT", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) n_out_of_results: f64,
    /// Number of builds in which a check may exceed its tolerance
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = super::whole_number::<u32, 0>)]
    pub(crate) n_out_of_results_n: u32,
    /// Smallest difference that matters, in percent; `model`: as much as two runs of one build differ [default: that of
    /// the runs' plan, or 5]
    #[arg(long, value_name = "PERCENT|model", allow_negative_numbers = true)]
    pub(crate) threshold: Option<Threshold>,
    /// How much runs of one build are assumed to differ, as a standard deviation in percent of their level; the runs of
    /// each side update it, and a noise model replaces it. 0: only the samples and the sides' own runs count
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT", value_parser = super::parse_run_noise, allow_negative_numbers = true)]
    pub(crate) run_noise: f64,
    /// Direction in which a metric improves, in place of the recorded one: `lat=lower`, `throughput/score=neither`; may be
    /// given more than once
    #[arg(long, value_name = "METRIC=higher|lower|neither")]
    pub(crate) direction: Vec<DirectionOverride>,
    /// Metric that decides, in place of those that the test declares: `latency/p99`, or `p99` if no other class has it. Cells
    /// without it keep theirs; may be given more than once
    #[arg(long, value_name = "[CLASS/]METRIC")]
    pub(crate) metric: Vec<String>,
    /// Also fail on improvements
    #[arg(long)]
    pub(crate) fail_on_gain: bool,
    /// Also fail, with exit status 2, on differences that more runs would have to confirm, or with `inconclusive` on
    /// every check without a verdict as well; with `missing` on missing and invalid checks and on errors, in place of
    /// exit status 3. May be given more than once
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub(crate) fail_on: Vec<FailOnArg>,
    /// Print every check and group
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write PREFIX.csv (one row per check), PREFIX-aspects.csv (one row per check and aspect), PREFIX-samples.csv (one row
    /// per sample and build) and PREFIX-groups.csv
    #[arg(long, value_name = "PREFIX", value_parser = prefix_parser(&COMPARISON_FILES))]
    pub(crate) csv: Option<OutputPrefix>,
    /// Write JUnit XML: a regression is a failure, a missing check an error; a new one is skipped, and so is an
    /// unconfirmed or inconclusive one unless `--fail-on` lets it fail
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<OutputPath>,
    /// Write a Markdown comment for a pull request
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<OutputPath>,
    /// Write an HTML page: builds, every check with its explanation, groups, charts, environments
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Leave the charts out of the page
    #[arg(long, requires = "html")]
    pub(crate) no_charts: bool,
    /// Leave the environments out of the page
    #[arg(long, requires = "html")]
    pub(crate) no_environments: bool,
    /// Write box plots of the samples to this folder as SVG, one file per metric of a test
    #[arg(long, value_name = "DIR", group = "plots")]
    pub(crate) svg: Option<OutputFolder>,
    /// Write box plots of the samples to this folder as PNG
    #[arg(long, value_name = "DIR", group = "plots")]
    pub(crate) png: Option<OutputFolder>,
    /// Draw matching checks as lines across the box plots of the others: `*/iperf3/*`
    #[arg(long, value_name = "GLOB", value_parser = parse_glob, requires = "plots")]
    pub(crate) baseline: Vec<GlobMatcher>,
}

/// `model`
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Fit a model to builds: ranges of values, or run-to-run noise
    #[command(group = ArgGroup::new("how").required(true))]
    Fit(FitArgs),
    /// Move a model to the level of builds, keeping the width of its ranges
    #[command(group = ArgGroup::new("how").required(true))]
    Rebase(RebaseArgs),
    /// Print a model
    Show {
        /// Model file
        file: PathBuf,
    },
}

/// How ranges are fitted, and where the model is written
#[derive(Debug, Args)]
pub(crate) struct FitFlags {
    /// Range from the smallest to the largest observed value
    #[arg(long, group = "how")]
    pub(crate) linear: bool,
    /// Range of three standard deviations around the average, wider with few builds
    #[arg(long, group = "how")]
    pub(crate) stddev: bool,
    /// Score at the ends of a range, in percent
    #[arg(long, short, default_value_t = 4.0, value_name = "PERCENT", value_parser = parse_positive, allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// File to write the model to
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: OutputPath,
    /// Options for reading the builds
    #[command(flatten)]
    pub(crate) read: BuildFlags,
}

/// `model fit`
#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// Builds to fit the model to
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required = true)]
    pub(crate) builds: Vec<String>,
    /// Fit the noise within and between runs of each build instead of ranges; single runs count as runs of one build
    #[arg(long, group = "how", conflicts_with = "tolerance")]
    pub(crate) noise: bool,
    /// How ranges are fitted, and where the model is written
    #[command(flatten)]
    pub(crate) fit: FitFlags,
}

/// `model rebase`
#[derive(Debug, Args)]
pub(crate) struct RebaseArgs {
    /// Model file
    pub(crate) model: PathBuf,
    /// Builds at the new level
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required = true)]
    pub(crate) builds: Vec<String>,
    /// How ranges are fitted, and where the model is written
    #[command(flatten)]
    pub(crate) fit: FitFlags,
}

/// `analyze`
#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// Builds, one per column
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required = true)]
    pub(crate) builds: Vec<String>,
    /// Print only primary metrics
    #[arg(long)]
    pub(crate) primary: bool,
    /// Write the table to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<OutputPath>,
    /// Options for reading the builds
    #[command(flatten)]
    pub(crate) read: BuildFlags,
}

/// `nearest`
#[derive(Debug, Args)]
pub(crate) struct NearestArgs {
    /// Build to classify
    #[arg(value_name = "[NAME=]RUN[,RUN…]")]
    pub(crate) build: String,
    /// Builds to match it with; at least two, counting groups
    #[arg(value_name = "CANDIDATE", required_unless_present = GROUP_ARG)]
    pub(crate) candidates: Vec<String>,
    /// Group of builds as one candidate
    #[command(flatten)]
    pub(crate) groups: CandidateGroups,
    /// Factor that widens the normal range, so that small differences count less
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) flatten: f64,
    /// Use the candidate's index as exit status
    #[arg(long)]
    pub(crate) exit_index: bool,
    /// Options for reading the builds
    #[command(flatten)]
    pub(crate) read: BuildFlags,
}

/// Groups of builds, one per occurrence of `--group`; clap's derive does not keep the occurrences apart
#[derive(Debug)]
pub(crate) struct CandidateGroups(pub(crate) Vec<Vec<String>>);

const GROUP_ARG: &str = "group";

impl Args for CandidateGroups {
    fn augment_args(command: Command) -> Command {
        let group = Arg::new(GROUP_ARG).long(GROUP_ARG).short('g').num_args(1..).action(ArgAction::Append);
        command.arg(group.value_name("BUILD").help("Group of builds as one candidate; may be given more than once"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CandidateGroups {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let groups = matches.get_occurrences::<String>(GROUP_ARG).into_iter().flatten();
        Ok(Self(groups.map(|group| group.cloned().collect()).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `strip`
#[derive(Debug, Args)]
pub(crate) struct StripArgs {
    /// Results folder to read
    pub(crate) from: PathBuf,
    /// Results folder to write
    pub(crate) into: PathBuf,
    /// Include failed iterations and non-numeric serials
    #[arg(long)]
    pub(crate) include_incorrect: bool,
    /// Include system information collected by run-perf: folders `__sysinfo*__` of the run and its profiles
    #[arg(long)]
    pub(crate) attach_sysinfo: bool,
}

fn parse_glob(text: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(text).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}
