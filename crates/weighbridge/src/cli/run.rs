use std::path::PathBuf;

use clap::Args;
use wb_session::PreparationOptions;

use super::contention::SequenceFlags;
use super::values::parse_command_line;
use super::{KeyValueParser, MeasurementFlags, whole_number};

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

/// A folder for the results in the layout of run-perf
#[derive(Debug, Clone)]
pub(crate) struct LayoutFolder {
    pub(crate) folder: PathBuf,
}

/// Parses `run-perf=DIR`.
fn parse_layout(text: &str) -> Result<LayoutFolder, String> {
    match text.split_once('=') {
        Some(("run-perf", folder)) if !folder.is_empty() => Ok(LayoutFolder { folder: folder.into() }),
        _ => Err("expected `run-perf=DIR`".to_owned()),
    }
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
    /// Also write the results to a folder in the layout of run-perf, for its programs: a new folder, or the one that the
    /// same run was written to
    #[arg(long, value_name = "run-perf=DIR", value_parser = parse_layout)]
    pub(crate) layout: Option<LayoutFolder>,
    /// Print the study as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// What to measure; its help heading applies to all flags after it
    #[command(flatten)]
    pub(crate) measurement: MeasurementFlags,
    /// Preparation of machines before measuring
    #[command(flatten)]
    pub(crate) preparation: PreparationOptions,
    /// Options of contention benches
    #[command(flatten)]
    pub(crate) contention: SequenceFlags,
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
    pub(crate) preparation: PreparationOptions,
    /// Options of contention benches
    #[command(flatten)]
    pub(crate) contention: SequenceFlags,
}
