//! The five programs of run-perf, with their options as its users type them.
//!
//! Names, values and defaults are run-perf's; [`crate::commands::run_perf`] translates them into this program's own.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::compare::{COMPARISON_FILES, CandidateGroups};
use super::{KeyValueParser, OutputPath, OutputPrefix, parse_non_negative, prefix_parser};

/// The names of run-perf's programs: subcommands, and names of symbolic links to this program.
pub(crate) const PROGRAMS: [&str; 5] = ["run-perf", "compare-perf", "analyze-perf", "diff-perf", "strip-run-perf"];

/// The layout of a results folder
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultLayout {
    /// That of run-perf, for its programs, with this program's run in `.weighbridge`
    RunPerf,
    /// That of `weighbridge run`
    Weighbridge,
}

/// `run-perf`
#[derive(Debug, Args)]
pub(crate) struct RunPerfArgs {
    /// Tests: `fio`, or with parameters of pbench's `fio:{"type":"read"}`
    #[arg(value_name = "TEST[:JSON]", required = true)]
    pub(crate) tests: Vec<String>,
    /// Profiles to measure in, one after the other: `DefaultLibvirt:{"RUNPERF_TESTS": ["fio"]}`
    #[arg(long, value_name = "PROFILE[:JSON]", num_args = 1.., action = ArgAction::Set)]
    pub(crate) profiles: Vec<String>,
    /// Distribution of the hosts
    #[arg(long, value_name = "NAME")]
    pub(crate) distro: Option<String>,
    /// Distribution of the guests
    #[arg(long, value_name = "NAME")]
    pub(crate) guest_distro: Option<String>,
    /// Hosts to measure on
    #[arg(long, value_name = "[NAME:]ADDRESS", num_args = 1.., action = ArgAction::Set)]
    pub(crate) hosts: Vec<String>,
    /// Provisioner of the hosts
    #[arg(long, value_name = "NAME[:JSON]")]
    pub(crate) provisioner: Option<String>,
    /// Packages to install on the hosts with dnf
    #[arg(long, value_name = "PACKAGE", num_args = 1.., action = ArgAction::Set)]
    pub(crate) host_rpms: Vec<String>,
    /// Packages to install on the workers with dnf
    #[arg(long, value_name = "PACKAGE", num_args = 1.., action = ArgAction::Set)]
    pub(crate) worker_rpms: Vec<String>,
    /// Accepted without effect: temporary files are always removed, results always kept
    #[arg(long)]
    pub(crate) keep_tmp_files: bool,
    /// Results folder [default: ./result_DATE_TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Parameters of hosts by address
    #[arg(long, value_name = "JSON")]
    pub(crate) force_params: Option<String>,
    /// Folders with hosts/ADDRESS.yaml, libvirt/ADDRESS-tuned.xml and profiles.d
    #[arg(long, value_name = "DIR", num_args = 1.., action = ArgAction::Set)]
    pub(crate) paths: Vec<PathBuf>,
    /// Accepted without effect: ssh logs in with your keys
    #[arg(long, value_name = "PASSWORD", num_args = 1.., action = ArgAction::Set)]
    pub(crate) default_passwords: Vec<String>,
    /// Attempts at each sample
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u32, 1>)]
    pub(crate) retry_tests: Option<u32>,
    /// Script to run on every host before measuring
    #[arg(long, value_name = "FILE")]
    pub(crate) host_setup_script: Option<String>,
    /// Reboot the hosts after the script
    #[arg(long)]
    pub(crate) host_setup_script_reboot: bool,
    /// Script to run on every worker before measuring
    #[arg(long, value_name = "FILE")]
    pub(crate) worker_setup_script: Option<String>,
    /// Metadata of the build
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = KeyValueParser, action = ArgAction::Append)]
    pub(crate) metadata: Vec<(String, String)>,
    /// Layout of the results folder; not an option of run-perf
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = ResultLayout::RunPerf)]
    pub(crate) layout: ResultLayout,
    /// Show what would be measured without measuring it; not an option of run-perf
    #[arg(long)]
    pub(crate) plan: bool,
    /// Accepted without effect: progress is always shown, except with --quiet
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `compare-perf`
#[derive(Debug, Args)]
pub(crate) struct ComparePerfArgs {
    /// Builds: the reference first, the build to judge last
    #[arg(value_name = "[NAME:]FOLDER", required = true)]
    pub(crate) results: Vec<String>,
    /// Include failed iterations and non-numeric serials
    #[arg(long)]
    pub(crate) include_incorrect_results: bool,
    /// Tolerance of means, in percent [default: 5]
    #[arg(long, short, value_name = "PERCENT", value_parser = parse_non_negative)]
    pub(crate) tolerance: Option<f64>,
    /// Tolerance of standard deviations, in percentage points [default: 5]
    #[arg(long, short, value_name = "POINTS", value_parser = parse_non_negative)]
    pub(crate) stddev_tolerance: Option<f64>,
    /// Weight of the mean score over all builds (times two) in the score of the last
    #[arg(long, value_name = "WEIGHT", value_parser = parse_non_negative)]
    pub(crate) model_builds_average: Option<f64>,
    /// Models of analyze-perf
    #[arg(long, short = 'l', value_name = "FILE", num_args = 1.., action = ArgAction::Set)]
    pub(crate) model_linear_regression: Vec<PathBuf>,
    /// Weight of the number of builds in which a check failed
    #[arg(long, value_name = "WEIGHT", value_parser = parse_non_negative)]
    pub(crate) n_out_of_results: Option<f64>,
    /// Number of builds in which a check may fail [default: 2]
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u32, 0>)]
    pub(crate) n_out_of_results_n: Option<u32>,
    /// HTML page to write
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Charts on the page
    #[arg(long)]
    pub(crate) html_with_charts: bool,
    /// No environments on the page
    #[arg(long)]
    pub(crate) html_small_file: bool,
    /// JUnit file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) xunit: Option<OutputPath>,
    /// Prefix of CSV files to write
    #[arg(long, value_name = "PREFIX", value_parser = prefix_parser(&COMPARISON_FILES))]
    pub(crate) csv_prefix: Option<OutputPrefix>,
    /// Print every check
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `analyze-perf`
#[derive(Debug, Args)]
pub(crate) struct AnalyzePerfArgs {
    /// Builds
    #[arg(value_name = "FOLDER", required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Table of primary results to write
    #[arg(long, short, value_name = "FILE")]
    pub(crate) csv: Option<OutputPath>,
    /// Model to write: ranges from the smallest to the largest value
    #[arg(long, short, value_name = "FILE")]
    pub(crate) linear_regression: Option<OutputPath>,
    /// Model to write: ranges of three standard deviations around the average
    #[arg(long, short, value_name = "FILE")]
    pub(crate) stddev_linear_regression: Option<OutputPath>,
    /// Model to move to the level of the builds
    #[arg(long, value_name = "FILE")]
    pub(crate) rebase_model: Option<PathBuf>,
    /// Tolerance at the ends of a range, in percent [default: 4]
    #[arg(long, short, value_name = "PERCENT", value_parser = parse_non_negative)]
    pub(crate) tolerance: Option<f64>,
    /// Accepted without effect: problems of the builds are always reported
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `diff-perf`
#[derive(Debug, Args)]
pub(crate) struct DiffPerfArgs {
    /// Build to classify, then the candidates to match it with
    #[arg(value_name = "FOLDER", required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Groups of builds as one candidate each
    #[command(flatten)]
    pub(crate) groups: CandidateGroups,
    /// Factor by which standard deviations are widened [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = parse_non_negative)]
    pub(crate) flatten_coefficient: Option<f64>,
    /// Accepted without effect: problems of the builds are always reported
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `strip-run-perf`
#[derive(Debug, Args)]
pub(crate) struct StripRunPerfArgs {
    /// Results folder
    pub(crate) src: PathBuf,
    /// Folder to write
    pub(crate) dst: PathBuf,
    /// Include failed iterations and non-numeric serials
    #[arg(long, short)]
    pub(crate) include_incorrect: bool,
    /// Include collected system information (`__sysinfo*__`)
    #[arg(long, short = 's')]
    pub(crate) attach_sysinfo: bool,
    /// Accepted without effect: problems of the folder are always reported
    #[arg(long, short, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}
