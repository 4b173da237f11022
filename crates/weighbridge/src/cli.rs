//! Every command and flag. Help, man page and completions are generated from these declarations.

pub(crate) mod archive;
pub(crate) mod bisect;
pub(crate) mod clean;
pub(crate) mod compare;
pub(crate) mod contention;
mod defaults;
pub(crate) mod exec;
mod groups;
pub(crate) mod hashd;
mod hosts;
pub(crate) mod import;
mod input_files;
pub(crate) mod net;
mod output_conflicts;
mod output_path;
pub(crate) mod peers;
mod placement;
mod preparation;
pub(crate) mod profile;
mod run_folder;
pub(crate) mod run_perf;
pub(crate) mod schema;
mod session;
pub(crate) mod tune;
mod units;
mod usage_error;
mod values;
pub(crate) mod variants;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use wb_model::Nanos;
use wb_plan::SamplingOrder;

use crate::cli::run_perf::PROGRAMS;
use crate::cli::schema::SchemaName;
use crate::exit;

pub(crate) use hosts::{HostFlags, HostSelectionFlags};
pub(crate) use output_path::{OutputFolder, OutputPath, OutputPrefix, prefix_parser};
pub(crate) use placement::{NumberList, PlacementFlags, parse_number_list};
pub(crate) use preparation::PreparationFlags;
pub(crate) use session::{AB_PREFIX, CALIBRATE_PREFIX, RUN_PREFIX};
pub(crate) use usage_error::{ParseError, UsageError};
pub(crate) use values::{
    KeyValueParser, enum_parser, parse_fraction, parse_ip_address, parse_non_negative, parse_positive, parse_text_path,
    whole_number, whole_number_to,
};
use values::{parse_command_line, parse_percent};

/// Version, commit and build: `0.1.0 (4d94be8 2026-11-23, release build for x86_64-unknown-linux-gnu)`.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("WEIGHBRIDGE_COMMIT"),
    ", ",
    env!("WEIGHBRIDGE_PROFILE"),
    " build for ",
    env!("WEIGHBRIDGE_TARGET"),
    ")"
);

/// Exit statuses of commands that show a run, printed after their help.
const STUDY_EXIT_STATUS: &str = "exit status: 0 success, 1 error, 3 something could not be measured, 4 no cell matches";

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

/// Help text below the options: the programs of run-perf and the exit statuses.
fn after_help() -> String {
    let programs = PROGRAMS.join(", ");
    format!(
        "For users of run-perf: {programs} are subcommands with those programs' options.\n\n{}",
        exit::describe_all()
    )
}

/// Output options
#[derive(Debug, Args)]
pub(crate) struct ConsoleFlags {
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
    /// Suppress progress output; print only results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Also append standard error to this file, each line with a timestamp
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) log: Option<OutputPath>,
}

/// When to colour the output
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands of `weighbridge`
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run tests or a plan and record everything in a run folder
    #[command(
        after_help = "exit status: 0 measured as requested, 1 error, 3 something could not be measured, 4 nothing to do, \
        130 interrupted"
    )]
    Run(Box<RunArgs>),
    /// Show what a run would do: cells, keys, unresolved values, exclusions, duration
    #[command(after_help = "exit status: 0 everything can be measured as requested, 3 something cannot")]
    Plan(Box<PlanArgs>),
    /// List tests and contention benches, their parameters and metrics, and plans
    List(ListArgs),
    /// Measure every pair of implementations, over every protocol stack that both support
    #[command(subcommand)]
    Peers(peers::PeersCommand),
    /// Print one line per cell of a run
    #[command(after_help = STUDY_EXIT_STATUS)]
    Summary(SummaryArgs),
    /// Print all details of each cell of a run
    #[command(after_help = STUDY_EXIT_STATUS)]
    Format(FormatArgs),
    /// Recompute values from recorded artefacts and rewrite the result.json files
    Study(StudyArgs),
    /// Recompute conclusions from recorded results: scaling, cache levels, averages
    Solve(SolveArgs),
    /// Write a run as an HTML page, CSV or JSON; without options, print its summary
    #[command(after_help = STUDY_EXIT_STATUS)]
    Report(ReportArgs),
    /// Import results of pbench, fio, iperf3, hyperfine, Google Benchmark, Phoronix, libp2p
    #[command(after_help = import::AFTER_HELP)]
    Import(Box<import::ImportArgs>),
    /// Write a run as one archive, with hashes of everything in it
    Pack(archive::PackArgs),
    /// Check an archive of `pack` or `snapshot` and extract it
    Unpack(archive::UnpackArgs),
    /// Write a run as one archive with everything that is needed to measure it again offline
    #[command(after_help = archive::SNAPSHOT_AFTER_HELP)]
    Snapshot(archive::SnapshotArgs),
    /// Compare builds: find regressions, their size and their confidence
    #[command(after_help = "exit status: 0 no regression, 1 error, 2 regression (or gain with --fail-on-gain), \
        3 something missing or invalid, 4 nothing comparable")]
    Compare(Box<compare::CompareArgs>),
    /// Compare variants of one test with interleaved samples until the result is clear
    #[command(after_help = variants::AB_AFTER_HELP)]
    Ab(Box<variants::AbArgs>),
    /// Measure this system's noise: false-positive rate, detectable difference, sources
    #[command(after_help = variants::CALIBRATE_AFTER_HELP)]
    Calibrate(Box<variants::CalibrateArgs>),
    /// Fit, rebase and show models of normal values
    Model {
        /// Action
        #[command(subcommand)]
        command: Box<compare::ModelCommand>,
    },
    /// Print all values as CSV: one row per check, one column per build
    Analyze(compare::AnalyzeArgs),
    /// Print the zero-based index of the build that another build resembles most
    #[command(after_help = "exit status with --exit-index: the index, or 255 if no build can be determined")]
    Nearest(compare::NearestArgs),
    /// Find the revision that changed performance, by measuring revisions with git bisect
    Bisect {
        /// Action
        #[command(subcommand)]
        command: Box<bisect::BisectCommand>,
    },
    /// Write the smallest results folder that gives the same comparison
    Strip(compare::StripArgs),
    /// Report what makes measurements on this machine noisy, why, and how to change it
    #[command(after_help = "exit status: 0 this machine is quiet, 3 it is not")]
    Doctor(DoctorArgs),
    /// Apply and revert system settings that affect measurements
    #[command(
        after_help = "`weighbridge doctor --all` shows each knob and its state here; docs/tune.md describes them."
    )]
    Tune {
        /// Action
        #[command(subcommand)]
        command: Box<tune::TuneCommand>,
    },
    /// Show and remove what is left on machines: programs, images, logs and parameters
    #[command(after_help = clean::AFTER_HELP)]
    Clean(Box<clean::CleanArgs>),
    /// List and show host profiles, cache images, and revert what a killed run left behind
    Profile {
        /// Action
        #[command(subcommand)]
        command: Box<profile::ProfileCommand>,
    },
    /// Run network workloads between this machine and servers: uperf profiles and presets
    Net {
        /// Action
        #[command(subcommand)]
        command: Box<net::NetCommand>,
    },
    /// Run a latency-sensitive request workload over files, memory and CPU
    #[command(after_help = hashd::AFTER_HELP)]
    Hashd(Box<hashd::HashdArgs>),
    /// Merge results of iocost-tune from several runs into one, and solve it again
    #[command(after_help = contention::MERGE_AFTER_HELP)]
    Merge(contention::MergeArgs),
    /// Print shell completions
    Completions {
        /// Shell to print completions for
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write one page per command into a folder
    Man {
        /// Write weighbridge.1 and a page for each command into this folder
        #[arg(long, value_name = "DIR")]
        into: Option<OutputFolder>,
    },
    /// Print the JSON Schema of a file or output
    Schema {
        /// Name of the schema; without it, all names are listed
        #[arg(value_enum)]
        name: Option<SchemaName>,
    },
    /// Run one kernel or workload in this process and print its report; used for samples
    Exec {
        /// Kernel to run
        #[arg(value_enum)]
        kernel: exec::Kernel,
        /// Configuration of the kernel, as JSON
        config: String,
    },
    /// Execute a controller's order on this machine's image cache
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
    /// Run as the agent, over standard input and output
    #[command(hide = true)]
    Agent,
}

/// Flags that select what is measured, how and where
#[derive(Debug, Args)]
pub(crate) struct MeasurementFlags {
    /// Tests: `fio`, `fio:rw=[read,randwrite],bs=4k` or `fio:{"rw":"read"}`; or contention benches (storage, iocost-params,
    /// hashd-params, iocost-qos, iocost-tune, protection): `iocost-qos::min=75,max=75:min=50,max=50`
    ///
    /// A list makes one cell per value. For a parameter that is itself a list, such as fio's targets, use a list of
    /// lists: `targets=[[/a,/b],[/c]]`. Put text that contains `,`, `:` or `]` in double quotes inside the argument:
    /// `'fio:targets="/mnt/a:b"'`. `id=NAME` names a test of the plan, in place of its number (0000, 0001, …). Quote arguments with
    /// brackets or quotes for your shell. Contention benches form a sequence: docs/contention.md describes them.
    #[arg(value_name = "TEST")]
    pub(crate) tests: Vec<String>,
    /// Plan: a TOML file, or the name of a built-in plan (see `list plans`); sampling options override its settings
    #[arg(long, short, value_name = "FILE|NAME")]
    pub(crate) plan: Option<String>,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d and the plan's folder
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Which cells, where, and how they are sampled
    #[command(flatten)]
    pub(crate) cells: CellFlags,
}

/// Flags that select cells
#[derive(Debug, Default, Args)]
pub(crate) struct SelectionFlags {
    /// Include only these cells: parameters in any order and by any of their names (`rw=randread,bs=[4k,64k]`,
    /// `fio:bs=4k`), or a glob on cells' names; may be given more than once
    #[arg(long, value_name = "PARAM=VALUE,…|GLOB")]
    pub(crate) select: Vec<String>,
    /// Exclude these cells, named as with --select; may be given more than once
    #[arg(long, value_name = "PARAM=VALUE,…|GLOB")]
    pub(crate) ignore: Vec<String>,
}

/// Flags that apply to every cell of a run
#[derive(Debug, Args)]
pub(crate) struct CellFlags {
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Sampling options
    #[command(flatten)]
    pub(crate) sampling: SamplingFlags,
    /// Hosts to measure on
    #[command(flatten)]
    pub(crate) hosts: HostFlags,
    /// Placement of measured processes
    #[command(flatten)]
    pub(crate) placement: PlacementFlags,
}

/// Sampling options
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingFlags {
    /// Exact number of samples per cell; disturbed ones are not retaken unless --retakes is given
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>, conflicts_with_all = ["min_samples", "max_samples"])]
    pub(crate) samples: Option<usize>,
    /// Minimum number of samples per cell; replaces the sampling rule of tests that have one, such as fio
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>)]
    pub(crate) min_samples: Option<usize>,
    /// Maximum number of samples per cell, not counting retakes of disturbed ones; replaces the sampling rule of a test
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 1>)]
    pub(crate) max_samples: Option<usize>,
    /// Stop when the half-width of the median's confidence interval is within PERCENT of the median; replaces the sampling rule
    /// of a test
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, allow_negative_numbers = true)]
    pub(crate) precision: Option<f64>,
    /// Time limit for one cell; the default does not stop a cell below its minimum number of samples
    #[arg(long, value_name = "TIME")]
    pub(crate) budget: Option<Nanos>,
    /// Maximum number of retakes of disturbed samples per cell
    #[arg(long, value_name = "N", value_parser = whole_number::<usize, 0>)]
    pub(crate) retakes: Option<usize>,
    /// Order in which cells are sampled
    #[arg(long, value_name = "ORDER", value_parser = enum_parser::<SamplingOrder, 2>(ORDERS))]
    pub(crate) order: Option<SamplingOrder>,
    /// Options of a single sample
    #[command(flatten)]
    pub(crate) attempt: AttemptFlags,
}

/// Options of a single sample
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct AttemptFlags {
    /// Minimum duration of the measured part of a sample, for tests without a duration of their own (`runtime`)
    #[arg(long, value_name = "TIME")]
    pub(crate) min_time: Option<Nanos>,
    /// Number of warm-up samples before the counted ones
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 0>)]
    pub(crate) warm_up: Option<u32>,
    /// Time limit for one attempt [default: ten times its estimate plus one minute]
    #[arg(long, value_name = "TIME")]
    pub(crate) limit: Option<Nanos>,
    /// Maximum number of attempts at a sample before its cell fails; every attempt is recorded
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 1>, visible_alias = "retry-tests")]
    pub(crate) attempts: Option<u32>,
    /// Seed for all random choices; drawn and recorded if not given
    #[arg(long, value_name = "N", value_parser = whole_number::<u64, 0>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Command to run during each sample, with its output recorded; may be given more than once
    #[arg(long = "tool", value_name = "COMMAND", value_parser = parse_command_line)]
    pub(crate) tools: Vec<String>,
}

/// Run folder, metadata, publishing and secrets
#[derive(Debug, Args)]
pub(crate) struct RunFolderFlags {
    /// Run folder; an existing one is resumed, and nothing in it is measured twice
    #[arg(long, short, value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,
    /// Metadata to record with the run; may be given more than once. Pages show `build` (linked to `url`), `project`,
    /// and machines (linked by `machine_url_base`, in which `%(machine)s` stands for their names)
    #[arg(long, value_name = "KEY=VALUE", value_parser = KeyValueParser)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Command to run on this machine after each test and once at the end, with WEIGHBRIDGE_RUN, WEIGHBRIDGE_TEST,
    /// WEIGHBRIDGE_TEST_FOLDER and WEIGHBRIDGE_METADATA_KEY set. If it fails, the exit status is 3
    #[arg(long, value_name = "COMMAND", value_parser = parse_command_line)]
    pub(crate) publish: Option<String>,
    /// Record `***` in place of the text of this file or environment variable; may be given more than once
    #[arg(long, value_name = "FILE|env:NAME")]
    pub(crate) secret_from: Vec<String>,
}

/// `run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run folder, metadata, publishing and secrets
    #[command(flatten)]
    pub(crate) run_folder: RunFolderFlags,
    /// Measure so many runs one after the other, each prepared anew and recorded in a folder of its own: DIR-1, DIR-2 and
    /// so on. `compare old=DIR-1,DIR-2` takes them as one build
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole_number::<u16, 1>)]
    pub(crate) runs: u16,
    /// Print the study as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// What to measure; its help heading applies to all flags after it
    #[command(flatten)]
    pub(crate) measurement: MeasurementFlags,
    /// Preparation of machines before measuring
    #[command(flatten)]
    pub(crate) preparation: PreparationFlags,
    /// Options of contention benches
    #[command(flatten)]
    pub(crate) contention: contention::SequenceFlags,
}

/// `plan`
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Plan without a worker; values that depend on it stay unresolved
    #[arg(long)]
    pub(crate) no_worker: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Command that would publish the run; only its existence is checked
    #[arg(long, value_name = "COMMAND")]
    pub(crate) publish: Option<String>,
    /// What to measure; its help heading applies to all flags after it
    #[command(flatten)]
    pub(crate) measurement: MeasurementFlags,
    /// Preparation of machines; only checked, not executed
    #[command(flatten)]
    pub(crate) preparation: PreparationFlags,
    /// Options of contention benches
    #[command(flatten)]
    pub(crate) contention: contention::SequenceFlags,
}

/// `list`
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list: `tests`, `benches`, `metrics`, `plans`, or the name of a test or contention bench
    #[arg(default_value = "tests")]
    pub(crate) what: String,
    /// Name of one test, contention bench or plan
    pub(crate) name: Option<String>,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of the commands that read a run
#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Run folder; without it or with `latest`, the newest run in the current folder. With -r, the contention benches to
    /// read, all if none is named: `storage`, `iocost-qos:id=NAME`
    #[arg(value_name = "RUN|BENCH")]
    pub(crate) words: Vec<PathBuf>,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `study`
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// The run to study
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells are printed; the values of all are written
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Folder of the raw reports of contention benches [default: `contention` in the run folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) reports: Option<PathBuf>,
}

/// `solve`
#[derive(Debug, Args)]
pub(crate) struct SolveArgs {
    /// The run to read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells conclusions are drawn from
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
}

/// `summary`
#[derive(Debug, Args)]
pub(crate) struct SummaryArgs {
    /// The run to read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
}

/// `format`
#[derive(Debug, Args)]
pub(crate) struct FormatArgs {
    /// The run to read
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
}

/// `report`
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run folder; without it or with `latest`, the newest run in the current folder
    pub(crate) run: Option<PathBuf>,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    /// Write PREFIX.csv (one row per metric of a cell) and PREFIX-samples.csv (one row per sample and metric)
    #[arg(long, value_name = "PREFIX", value_parser = prefix_parser(&[".csv", "-samples.csv"]))]
    pub(crate) csv: Option<OutputPrefix>,
    /// Print the study as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder of custom test definitions (*.toml), besides ~/.config/weighbridge/tests.d
    #[arg(long, value_name = "DIR")]
    pub(crate) tests_d: Vec<PathBuf>,
}

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also show checks that pass and hardware that this machine lacks
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print JSON; with --hosts, an object keyed by host name
    #[arg(long)]
    pub(crate) json: bool,
    /// Machines to check; this one by default
    #[command(flatten)]
    pub(crate) hosts: HostSelectionFlags,
}

const ORDERS: [(&str, &str); 2] = [
    ("interleaved", "in rounds, each with one sample of every unfinished cell in random order"),
    ("sequential", "finish each cell before the next"),
];

impl Cli {
    /// The declarations, with defaults that are defined elsewhere.
    pub(crate) fn build_command() -> clap::Command {
        let program = run_folder::describe(defaults::show_defaults(Self::command()));
        let program = defaults::change_subcommand(program, "net", net::unused_options::hide);
        groups::group_commands(units::describe(program))
    }

    /// Parses a command line, whose first word is the program.
    ///
    /// # Errors
    /// If it does not match the declarations, or a request for help or the version.
    pub(crate) fn parse_words(words: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, ParseError> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let mut program = match words.get(1).and_then(|word| word.to_str()) {
            // Started for every sample, and without options that the additions describe.
            Some("exec" | "agent") if !words.iter().any(|word| word == "--help" || word == "-h") => Self::command(),
            _ => Self::build_command(),
        };
        let matches =
            program.try_get_matches_from_mut(&words).map_err(|error| ParseError::new(error, &program, &words))?;
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
