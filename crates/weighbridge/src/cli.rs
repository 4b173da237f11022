//! Every command and flag. Help, man page and completions are all made from here.

pub(crate) mod bisect;
pub(crate) mod clean;
pub(crate) mod compare;
mod hosts;
pub(crate) mod import;
pub(crate) mod net;
mod preparation;
pub(crate) mod profile;
pub(crate) mod run_perf;
pub(crate) mod tune;
pub(crate) mod variants;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use serde::de::DeserializeOwned;
use wb_model::{HugePages, Nanos};
use wb_plan::{Sampling, SamplingOrder, tools};

use crate::commands::schema_names;
use crate::exit;

pub(crate) use hosts::{HostFlags, HostSelectionFlags};
pub(crate) use preparation::PreparationFlags;

/// Weighs a Linux system: how fast it is, repeatably, and how sure that is
///
/// Tests are run in samples until their figures are known as precisely as asked; everything is recorded in a run
/// folder, which can be gone on with, studied again and drawn at any time.
#[derive(Debug, Parser)]
#[command(name = "weighbridge", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = after_help())]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How to talk
    #[command(flatten)]
    pub(crate) console: ConsoleFlags,
}

/// What follows the options.
fn after_help() -> String {
    let programs = crate::commands::run_perf::PROGRAMS.join(", ");
    format!(
        "run-perf's users: {programs} are subcommands that take those programs' options.\n\n{}",
        exit::describe_all()
    )
}

/// How to talk
#[derive(Debug, Args)]
pub(crate) struct ConsoleFlags {
    /// Colour the output; `auto`: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
    /// Tell no progress, only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Append what is written to standard error to this file, too, each line with its time
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

/// When to colour
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure: run tests or a plan, and record everything in a folder
    Run(Box<RunArgs>),
    /// Show what a run would do: every cell, its key, open values, what is left out, blocks, time
    #[command(after_help = "exit status: 0 where all can be measured, 3 where something cannot be as asked")]
    Plan(Box<PlanArgs>),
    /// List tests, their parameters and metrics, and plans
    List(ListArgs),
    /// One line per cell of a run
    Summary(ReadArgs),
    /// Everything of each cell of a run
    Format(FormatArgs),
    /// Read the values anew from a run's artefacts, and write them to its result.json files
    Study(ReadArgs),
    /// Conclude anew from a run's results alone: scaling, cache levels, averages
    Solve(SolveArgs),
    /// Draw a run as a page, or write its figures as CSV
    Report(ReportArgs),
    /// Take results of other programs into a run: pbench, fio, iperf3, hyperfine, Google Benchmark, Phoronix Test Suite
    #[command(after_help = import::AFTER_HELP)]
    Import(Box<import::ImportArgs>),
    /// Compare builds: did anything get worse, by how much, and how sure is that
    #[command(after_help = "exit status: 0 no regression, 2 regression (or gain with --fail-on-gain), 3 something \
        missing or invalid, 4 nothing comparable, 1 error")]
    Compare(Box<compare::CompareArgs>),
    /// Hold variants of one test against each other, sampled in turns, until it is clear how they stand
    #[command(after_help = variants::AB_AFTER_HELP)]
    Ab(Box<variants::AbArgs>),
    /// Hold a system against itself: how often it would be said to differ, what would be seen, where the noise comes from
    #[command(after_help = variants::CALIBRATE_AFTER_HELP)]
    Calibrate(Box<variants::CalibrateArgs>),
    /// Models of what is normal, learnt from builds
    Model {
        /// What to do
        #[command(subcommand)]
        command: Box<compare::ModelCommand>,
    },
    /// Print a table of all values as CSV: a row for each check, a column for each build
    Analyze(compare::AnalyzeArgs),
    /// Print which of several builds, from 0, another is most like
    #[command(after_help = "exit status with --exit-index: the index, and 255 where there is none")]
    Nearest(compare::NearestArgs),
    /// Find the change that made the difference: measure revisions, and tell which end each is most like
    Bisect {
        /// What to do
        #[command(subcommand)]
        command: Box<bisect::BisectCommand>,
    },
    /// Make the smallest folder of results that compares the same
    Strip(compare::StripArgs),
    /// What makes measurements noisy on this machine, why, and how to change it
    #[command(after_help = "exit status: 0 where this machine is quiet, 3 where it is not")]
    Doctor(DoctorArgs),
    /// Settings of this machine that matter for measuring: set by sets, and put back as they were found
    Tune {
        /// What to do
        #[command(subcommand)]
        command: Box<tune::TuneCommand>,
    },
    /// Show what stays of Weighbridge on machines, programs and images, and remove it
    #[command(after_help = clean::AFTER_HELP)]
    Clean(Box<clean::CleanArgs>),
    /// States that hosts are put into for measuring: which there are, and what a killed run left of one
    Profile {
        /// What to do
        #[command(subcommand)]
        command: Box<profile::ProfileCommand>,
    },
    /// Network workloads: profiles in uperf's language, and presets, between this machine and servers
    Net {
        /// What to do
        #[command(subcommand)]
        command: Box<net::NetCommand>,
    },
    /// Print shell completions
    Completions {
        /// For which shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
    /// Print the JSON Schema of a file or output
    Schema {
        /// Of which; without, the names
        #[arg(value_parser = PossibleValuesParser::new(schema_names()))]
        name: Option<String>,
    },
    /// Run one kernel in this process and print its report; samples are taken with it
    Exec {
        /// Which kernel
        #[arg(value_enum)]
        kernel: Kernel,
        /// Its configuration as JSON
        config: String,
    },
    /// Work on this machine's cache of images, as a controller orders
    #[command(hide = true)]
    Images {
        /// The order as JSON
        order: String,
    },
    /// Measure, with the options of run-perf's program of this name; its command line is translated into `run`
    #[command(hide = true, args_override_self = true, infer_long_args = true, disable_version_flag = true)]
    RunPerf(Box<run_perf::RunPerfArgs>),
    /// Compare builds, with the options of run-perf's compare-perf; its command line is translated into `compare`
    #[command(hide = true, args_override_self = true, infer_long_args = true, disable_version_flag = true)]
    ComparePerf(Box<run_perf::ComparePerfArgs>),
    /// Write tables and models, with the options of run-perf's analyze-perf; its command line is translated into
    /// `analyze` and `model`
    #[command(hide = true, args_override_self = true, infer_long_args = true, disable_version_flag = true)]
    AnalyzePerf(run_perf::AnalyzePerfArgs),
    /// Find the nearest build, with the options of run-perf's diff-perf; its command line is translated into `nearest`
    #[command(hide = true, args_override_self = true, infer_long_args = true, disable_version_flag = true)]
    DiffPerf(run_perf::DiffPerfArgs),
    /// Strip a results folder, with the options of run-perf's program of this name; its command line is translated into
    /// `strip`
    #[command(hide = true, args_override_self = true, infer_long_args = true, disable_version_flag = true)]
    StripRunPerf(run_perf::StripRunPerfArgs),
    /// Serve as the agent on standard input and output
    #[command(hide = true)]
    Agent,
}

/// A kernel of the program's own
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kernel {
    /// Jacobi iterations of a 19-point stencil
    Himeno,
    /// Passes over arrays
    Ramspeed,
    /// Reads and writes of growing blocks
    RamspeedSweep,
    /// LU factorisation and solve
    Linpack,
}

/// Which cells are meant
#[derive(Debug, Args)]
pub(crate) struct MeasurementFlags {
    /// Tests: `fio`, `fio:rw=[read,randwrite],bs=4k` or `fio:{"rw":"read"}`
    ///
    /// A list makes one cell per value; of a parameter that is itself a list, such as fio's targets, only a list of
    /// lists does: `targets=[[/a,/b],[/c]]`. Text with `,` `:` or `]` goes in double quotes inside the argument:
    /// `'fio:targets="/mnt/a:b"'`. `id=NAME` pins the name of a test's place in the plan. Quote arguments with
    /// brackets or quotes for your shell.
    #[arg(value_name = "TEST")]
    pub(crate) tests: Vec<String>,
    /// A plan: a TOML file, or the name of one that comes with the program (see `list plans`); options of sampling
    /// change what it says
    #[arg(long, short, value_name = "FILE|NAME")]
    pub(crate) plan: Option<String>,
    /// Only cells whose name matches this glob; may be given more than once
    #[arg(long, value_name = "GLOB")]
    pub(crate) select: Vec<String>,
    /// No cells whose name matches this glob; may be given more than once
    #[arg(long, value_name = "GLOB")]
    pub(crate) ignore: Vec<String>,
    /// Folders with test definitions of one's own (*.toml), beside ~/.config/weighbridge/tests.d and the plan's
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// How samples are taken
    #[command(flatten)]
    pub(crate) sampling: SamplingFlags,
    /// Which machines measure
    #[command(flatten)]
    pub(crate) hosts: HostFlags,
    /// Where measured processes run
    #[command(flatten)]
    pub(crate) placement: PlacementFlags,
}

/// How samples are taken
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingFlags {
    /// Exactly so many samples of each cell; none is taken again unless --retakes is given
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>, conflicts_with_all = ["min_samples", "max_samples"])]
    pub(crate) samples: Option<usize>,
    /// No fewer samples
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>)]
    pub(crate) min_samples: Option<usize>,
    /// No more samples, but for disturbed ones that are taken again
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>)]
    pub(crate) max_samples: Option<usize>,
    /// Done when half the interval of the median is within so many percent of it
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) precision: Option<f64>,
    /// The most time for one cell; without, 10min, which end none before its fewest samples
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Nanos>,
    /// How many disturbed samples of a cell are taken again
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 0>)]
    pub(crate) retakes: Option<usize>,
    /// In which order cells are sampled
    #[arg(long, value_name = "ORDER", value_parser = enum_parser::<SamplingOrder, 2>(ORDERS))]
    pub(crate) order: Option<SamplingOrder>,
    /// How each is taken
    #[command(flatten)]
    pub(crate) attempt: AttemptFlags,
}

/// How each sample is taken
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct AttemptFlags {
    /// How long a sample's measured part takes at least
    #[arg(long, value_name = "TIME")]
    pub(crate) min_time: Option<Nanos>,
    /// Samples before the counted ones
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 0>)]
    pub(crate) warm_up: Option<u32>,
    /// The most time for one attempt; without, ten times its estimate and a minute
    #[arg(long, value_name = "TIME")]
    pub(crate) limit: Option<Nanos>,
    /// How often one sample is tried before its cell is given up; every attempt is kept
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 1>, visible_alias = "retry-tests")]
    pub(crate) attempts: Option<u32>,
    /// Decides every random choice; without, drawn and recorded
    #[arg(long, value_name = "N", value_parser = whole_number::<u64, 0>)]
    pub(crate) seed: Option<u64>,
    /// A command to run around each sample, its output kept; may be given more than once
    #[arg(long = "parse_command_line", value_name = "COMMAND", value_parser = parse_command_line)]
    pub(crate) tools: Vec<String>,
}

/// Where it is recorded
#[derive(Debug, Args)]
pub(crate) struct RunFolderFlags {
    /// The run folder; one that exists is gone on with, and nothing in it is measured twice
    #[arg(long, short, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
    /// Something to remember with the run; may be given more than once. Pages show `build` (linked to `url`), `project`, and
    /// machines (linked by `machine_url_base`, in which `%(machine)s` stands for their names)
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Run this command here after each test, and once at the end: WEIGHBRIDGE_RUN, WEIGHBRIDGE_TEST,
    /// WEIGHBRIDGE_TEST_FOLDER and WEIGHBRIDGE_METADATA_KEY say what for. Where it fails, the exit status is 3
    #[arg(long, value_name = "COMMAND", value_parser = parse_command_line)]
    pub(crate) publish: Option<String>,
    /// Record `***` wherever the text of this file, or of this variable, stands; may be given more than once
    #[arg(long, value_name = "FILE|env:NAME")]
    pub(crate) secret_from: Vec<String>,
}

/// Where measured processes run
#[derive(Debug, Args)]
#[command(next_help_heading = "Placement of measured processes")]
pub(crate) struct PlacementFlags {
    /// Only on these CPUs: `0-3,8`
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) cpus: Option<NumberList>,
    /// Memory only from these NUMA nodes
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) memory_nodes: Option<NumberList>,
    /// Their transparent huge pages
    #[arg(long, value_name = "POLICY", value_parser = enum_parser::<HugePages, 3>(HUGE_PAGES))]
    pub(crate) huge_pages: Option<HugePages>,
    /// No address-space randomisation
    #[arg(long)]
    pub(crate) no_aslr: bool,
    /// A file in the place of a program, in all cells that need it: `redis-server=./src/redis-server`; may be given more than
    /// once
    #[arg(long, value_name = "PROGRAM=PATH", value_parser = parse_program_override)]
    pub(crate) program: Vec<(String, String)>,
}

/// A list of CPUs or nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberList(pub Vec<u32>);

/// `run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Where it is recorded
    #[command(flatten)]
    pub(crate) run_folder: RunFolderFlags,
    /// Print the study as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// What to measure; its headings hold for all that follows
    #[command(flatten)]
    pub(crate) measurement: MeasurementFlags,
    /// What is done to machines first
    #[command(flatten)]
    pub(crate) preparation: PreparationFlags,
}

/// `plan`
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Plan without a machine: what it decides stays open
    #[arg(long)]
    pub(crate) no_worker: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Command that would publish the run; only looked for
    #[arg(long, value_name = "COMMAND")]
    pub(crate) publish: Option<String>,
    /// What would be done to machines; only looked for
    #[command(flatten)]
    pub(crate) preparation: PreparationFlags,
    /// What to measure; last, since its headings hold for all that follows
    #[command(flatten)]
    pub(crate) measurement: MeasurementFlags,
}

/// `list`
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// `tests`, `metrics`, `plans`, or a test's name
    #[arg(default_value = "tests")]
    pub(crate) what: String,
    /// One test or plan
    pub(crate) name: Option<String>,
    /// Folders with test definitions of one's own
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Commands that read a run
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// The run folder
    pub(crate) run: PathBuf,
    /// Folders with test definitions of one's own
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `format`
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// What is read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Only cells whose name matches this glob
    #[arg(long, value_name = "GLOB")]
    pub(crate) select: Vec<String>,
    /// No cells whose name matches this glob
    #[arg(long, value_name = "GLOB")]
    pub(crate) ignore: Vec<String>,
}

/// `solve`
#[derive(Debug, Args)]
pub(crate) struct SolveArgs {
    /// What is read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// `report`
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run folder
    pub(crate) run: PathBuf,
    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write PREFIX.csv (one row per metric) and PREFIX-samples.csv (one row per value)
    #[arg(long, value_name = "PREFIX")]
    pub(crate) csv: Option<PathBuf>,
    /// Print the study as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Folders with test definitions of one's own
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
}

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also what is quiet, and what this machine does not have
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print JSON; of other machines an object with each one's by its name
    #[arg(long)]
    pub(crate) json: bool,
    /// On which machines; without, this one
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}

const ORDERS: [(&str, &str); 2] = [
    ("interleaved", "in rounds, each taking one sample of every unfinished cell in a random order"),
    ("sequential", "each cell to its end before the next"),
];

const HUGE_PAGES: [(&str, &str); 3] = [
    ("inherit", "as the system is set"),
    ("always", "asked for, whatever the system's default"),
    ("never", "switched off for the process"),
];

impl Cli {
    /// The declarations, each option of sampling with its default.
    pub(crate) fn build_command() -> clap::Command {
        let defaults = serde_json::to_value(Sampling::default()).unwrap_or_default();
        let with_default = |arg: Arg| match (defaults.get(arg.get_id().as_str().replace('_', "-")), arg.get_help()) {
            (Some(default), Some(help)) => {
                let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
                let help = format!("{help} [default: {}]", default.trim_end_matches(".0"));
                arg.help(help)
            }
            _ => arg,
        };
        Cli::command().mut_subcommands(|command| command.mut_args(&with_default))
    }
}

/// Reads a word that a type of the plan's is written as there.
fn enum_parser<T, const N: usize>(values: [(&'static str, &'static str); N]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values.map(|(name, help)| PossibleValue::new(name).help(help)))
        .try_map(|name| serde_json::from_value::<T>(name.into()))
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    number.parse().map_err(|_| "a number of percent is expected: `2` or `2%`".to_owned())
}

/// A whole number that is `LEAST` or more.
pub(crate) fn whole_number<T: TryFrom<u64>, const LEAST: u64>(text: &str) -> Result<T, String> {
    let number = text.parse::<u64>().ok().filter(|number| *number >= LEAST);
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let most = (1..=64).map(|bits| u64::MAX >> (64 - bits)).rfind(|most| T::try_from(*most).is_ok());
        match most.filter(|most| *most < u64::MAX) {
            None => format!("expected a whole number from {LEAST}"),
            Some(most) => format!("expected a whole number from {LEAST} to {most}"),
        }
    })
}

fn parse_command_line(text: &str) -> Result<String, String> {
    match tools::split_words(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("a command line is expected, not empty and with every quote closed".to_owned()),
    }
}

fn parse_program_override(text: &str) -> Result<(String, String), String> {
    let (name, path) = parse_key_value(text)?;
    let path = std::path::absolute(path).map_err(|error| error.to_string())?;
    Ok((name, path.display().to_string()))
}

pub(crate) fn parse_number_list(text: &str) -> Result<NumberList, String> {
    let range = |part: &str| -> Option<Vec<u32>> {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        (low <= high && high < 65_536).then(|| (low..=high).collect())
    };
    let all: Option<Vec<Vec<u32>>> = text.split(',').map(range).collect();
    all.map(|parts| NumberList(parts.concat())).ok_or_else(|| "numbers and ranges are expected: `0-3,8`".to_owned())
}

pub(crate) fn parse_key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE is expected")?;
    if key.is_empty() { Err("the key is empty".to_owned()) } else { Ok((key.to_owned(), value.to_owned())) }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn the_declarations_are_sound() {
        Cli::build_command().debug_assert();
    }

    #[test]
    fn words_and_percentages_are_read() {
        let read = |line: &str| Cli::from_arg_matches(&Cli::build_command().get_matches_from(line.split(' '))).unwrap();
        let line = "weighbridge run t --precision 2.5% --order sequential --huge-pages never";
        let Command::Run(args) = read(line).command else { panic!("a run was asked for") };
        assert_eq!(args.measurement.sampling.precision, Some(2.5));
        assert_eq!(args.measurement.sampling.order, Some(SamplingOrder::Sequential));
        assert_eq!(args.measurement.placement.huge_pages, Some(HugePages::Never));
    }

    #[test]
    fn lists_of_cpus_are_ranges_and_numbers() {
        assert_eq!(parse_number_list("0-2,5").unwrap().0, [0, 1, 2, 5]);
        assert!(
            parse_number_list("2-0").is_err()
                && parse_number_list("x").is_err()
                && parse_number_list("0-4000000000").is_err()
        );
    }
}
