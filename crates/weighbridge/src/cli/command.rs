use clap::Subcommand;

use super::schema::SchemaName;
use super::{
    DoctorArgs, FormatArgs, ListArgs, OnHosts, OutputFolder, PlanArgs, ReportArgs, RunArgs, SolveArgs, StudyArgs,
    SummaryArgs, archive, bisect, clean, compare, contention, exec, hashd, import, net, peers, profile, run_perf, tune,
    variants,
};

/// Exit statuses of commands that show a run, printed after their help.
const STUDY_EXIT_STATUS: &str = "exit status: 0 success, 1 error, 3 something could not be measured, 4 no cell matches";

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
    /// Import results of pbench, resctl-bench, fio, iperf3, hyperfine, Phoronix and others
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
    #[command(
        after_help = "exit status: 0 no regression, 1 error, 2 regression (or improvement with --fail-on-gain), \
        3 something missing, invalid, incomparable or ended in an error, 4 nothing comparable and no test ended in an error"
    )]
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
    Doctor(OnHosts<DoctorArgs>),
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
    /// Check what contention benches require of this machine
    #[command(after_help = "exit status: 0 everything is there, 1 error, 3 something is missed")]
    Deps(contention::DepsArgs),
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
    /// Run one kernel or workload as samples do, and print its report
    Exec {
        /// Kernel to run
        #[arg(value_enum)]
        kernel: exec::Kernel,
        /// Configuration of the kernel, as JSON
        config: String,
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
}
