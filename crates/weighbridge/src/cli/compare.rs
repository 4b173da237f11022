//! `compare`, and what belongs to it: `model`, `analyze`, `nearest`, `strip`.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use globset::{GlobBuilder, GlobMatcher};
use wb_compare::direction::DirectionOverride;
use wb_compare::statistical::Threshold;

use super::parse_key_value;

/// Which builds, and how they are read
#[derive(Debug, Args)]
pub(crate) struct BuildFlags {
    /// Take this profile of the first build for that one of the others: `Localhost=DefaultLibvirt`
    #[arg(long, value_name = "PROFILE=PROFILE", value_parser = parse_key_value)]
    pub(crate) map: Vec<(String, String)>,
    /// Hold figures of machines that run in software against those of hardware, which is refused otherwise
    #[arg(long)]
    pub(crate) allow_emulated: bool,
    /// Include failed iterations and non-numeric serials
    #[arg(long)]
    pub(crate) include_incorrect: bool,
    /// End at the first file that is malformed, rather than leave it out
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A method
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodArg {
    /// Differences in percent against a limit, scored as run-perf does
    Tolerance,
    /// The ratio of medians, and how sure it is
    Statistical,
}

/// `compare`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("plots").multiple(true))]
pub(crate) struct CompareArgs {
    /// Builds: the one to compare with first, the one to judge last, those between are history. Each is a folder, or
    /// several runs of the same build
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required = true, num_args = 2..)]
    pub(crate) builds: Vec<String>,
    /// How the builds are read
    #[command(flatten)]
    pub(crate) read: BuildFlags,
    /// Compare cells that differ in these parameters, which is refused otherwise: `runtime`, `max-failures`
    #[arg(long, value_name = "PARAM,…", value_delimiter = ',')]
    pub(crate) allow_different: Vec<String>,
    /// Which method decides; without, statistics where both sides have 6 samples, and with fewer tolerances on run-perf's
    /// folders and none on other runs
    #[arg(long, value_enum)]
    pub(crate) method: Option<MethodArg>,
    /// How much a mean may differ, in percent
    #[arg(long, short, default_value_t = 5.0, value_name = "PERCENT", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// How much a standard deviation may differ, in percentage points
    #[arg(long, default_value_t = 5.0, value_name = "POINTS", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) stddev_tolerance: f64,
    /// A model of what is normal, by `model fit` or run-perf. Of scores several average; of noise the one that knows most
    /// of a check counts
    #[arg(long, short, value_name = "FILE")]
    pub(crate) model: Vec<PathBuf>,
    /// Let twice the mean score over the builds count so much
    #[arg(long, default_value_t = 0.0, value_name = "WEIGHT", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) model_builds_average: f64,
    /// Let it count so much in how many builds a check was beyond its tolerance
    #[arg(long, default_value_t = 0.0, value_name = "WEIGHT", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) n_out_of_results: f64,
    /// In so many builds a check may be beyond it
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = super::whole_number::<u32, 0>)]
    pub(crate) n_out_of_results_n: u32,
    /// A ratio that differs by less than so many percent does not matter; `model`: by less than two runs of one build do
    #[arg(long, default_value = "5", value_name = "PERCENT|model", allow_negative_numbers = true)]
    pub(crate) threshold: Threshold,
    /// Let one run a side be enough to say that something got worse, as if runs did not differ from each other; where a
    /// model of noise says by how much they do, that counts
    #[arg(long)]
    pub(crate) trust_single_run: bool,
    /// Which way is better, where it is not as the metric's class has it: `lat=lower`, `throughput/score=neither`
    #[arg(long, value_name = "METRIC=higher|lower|neither")]
    pub(crate) direction: Vec<DirectionOverride>,
    /// Let what got better fail as well
    #[arg(long)]
    pub(crate) fail_on_gain: bool,
    /// Print every check and group
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write checks and groups as PREFIX.csv and PREFIX-groups.csv
    #[arg(long, value_name = "PREFIX")]
    pub(crate) csv: Option<PathBuf>,
    /// Write JUnit's XML: a loss is a failure, what is missing an error, what cannot be told yet skipped
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write a comment for a pull request
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write a page: builds, every check in each of them and why, groups, charts, environments
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Leave the charts out of the page
    #[arg(long, requires = "html")]
    pub(crate) no_charts: bool,
    /// Leave the environments out of the page
    #[arg(long, requires = "html")]
    pub(crate) no_environments: bool,
    /// Draw the samples as box plots into this folder, a file for each metric of a test
    #[arg(long, value_name = "FOLDER", group = "plots")]
    pub(crate) svg: Option<PathBuf>,
    /// The same as PNG
    #[arg(long, value_name = "FOLDER", group = "plots")]
    pub(crate) png: Option<PathBuf>,
    /// Draw the checks that match as lines across the box plots of the others: `*/iperf3/*`
    #[arg(long, value_name = "GLOB", value_parser = parse_glob, requires = "plots")]
    pub(crate) baseline: Vec<GlobMatcher>,
}

/// `model`
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Learn from builds what is normal: ranges of values, or how far runs lie apart
    #[command(group = ArgGroup::new("how").required(true))]
    Fit(FitArgs),
    /// Move a model to the level of builds, its ranges kept
    #[command(group = ArgGroup::new("how").required(true))]
    Rebase(RebaseArgs),
    /// Print what a model says is normal
    Show {
        /// The model
        file: PathBuf,
    },
}

/// What a range is made of, and where the model goes
#[derive(Debug, Args)]
pub(crate) struct FitFlags {
    /// A range from the least to the largest value seen
    #[arg(long, group = "how")]
    pub(crate) linear: bool,
    /// A range from the average, three standard deviations to each side, more with few builds
    #[arg(long, group = "how")]
    pub(crate) stddev: bool,
    /// What the ends of a range become, in percent
    #[arg(long, short, default_value_t = 4.0, value_name = "PERCENT", value_parser = parse_positive, allow_negative_numbers = true)]
    pub(crate) tolerance: f64,
    /// Where the model is written
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// How the builds are read
    #[command(flatten)]
    pub(crate) read: BuildFlags,
}

/// `model fit`
#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// Builds that are normal
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required = true)]
    pub(crate) builds: Vec<String>,
    /// No range, but how far runs of each build lie apart, within and between; single runs are taken for runs of one build
    #[arg(long, group = "how", conflicts_with = "tolerance")]
    pub(crate) noise: bool,
    /// How
    #[command(flatten)]
    pub(crate) fit: FitFlags,
}

/// `model rebase`
#[derive(Debug, Args)]
pub(crate) struct RebaseArgs {
    /// The model
    pub(crate) model: PathBuf,
    /// Builds at the new level
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required = true)]
    pub(crate) builds: Vec<String>,
    /// How
    #[command(flatten)]
    pub(crate) fit: FitFlags,
}

/// `analyze`
#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// Builds, one a column
    #[arg(value_name = "[NAME=]RUN[,RUN…]", required = true)]
    pub(crate) builds: Vec<String>,
    /// Only primary metrics
    #[arg(long)]
    pub(crate) primary: bool,
    /// Write the table to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How the builds are read
    #[command(flatten)]
    pub(crate) read: BuildFlags,
}

/// `nearest`
#[derive(Debug, Args)]
pub(crate) struct NearestArgs {
    /// The build in question
    #[arg(value_name = "[NAME=]RUN[,RUN…]")]
    pub(crate) src: String,
    /// Builds it may be like; each is a candidate of its own
    #[arg(value_name = "CANDIDATE")]
    pub(crate) candidates: Vec<String>,
    /// Several builds as one candidate
    #[command(flatten)]
    pub(crate) groups: CandidateGroups,
    /// Widen what is normal by this factor, so that small differences count less
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) flatten: f64,
    /// End with the candidate's index as exit status
    #[arg(long)]
    pub(crate) exit_index: bool,
    /// How the builds are read
    #[command(flatten)]
    pub(crate) read: BuildFlags,
}

/// Lists of builds, each given by a flag of its own; clap's derive keeps no such lists apart
#[derive(Debug)]
pub(crate) struct CandidateGroups(pub(crate) Vec<Vec<String>>);

const GROUP_ARG: &str = "group";

impl Args for CandidateGroups {
    fn augment_args(command: Command) -> Command {
        let group = Arg::new(GROUP_ARG).long(GROUP_ARG).short('g').num_args(1..).action(ArgAction::Append);
        command.arg(group.value_name("BUILD").help("Several builds as one candidate; may be given more than once"))
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
    /// A folder of results
    pub(crate) from: PathBuf,
    /// The folder to make
    pub(crate) into: PathBuf,
    /// Include failed iterations and non-numeric serials
    #[arg(long)]
    pub(crate) include_incorrect: bool,
    /// Include what run-perf collected of the systems: folders `__sysinfo*__` of the run and its profiles
    #[arg(long)]
    pub(crate) attach_sysinfo: bool,
}

fn parse_glob(text: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(text).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}

fn parse_positive(text: &str) -> Result<f64, String> {
    match parse_non_negative(text) {
        Ok(value) if value > 0.0 => Ok(value),
        _ => Err("a number above zero is expected".to_owned()),
    }
}

pub(crate) fn parse_non_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("a number of zero or more is expected".to_owned()),
    }
}
