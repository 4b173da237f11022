use std::path::PathBuf;

use clap::{Args, Subcommand};
use wb_model::{Bytes, Nanos};
use wb_peers::SelectionFlags;
use wb_peers::selection::SelectIgnore;
use wb_session::PreparationOptions;

use super::{CellFlags, KeyValueParser, OutputFolder, RunFolderFlags, whole_number};

const FILTERS: &str = "FILTER is a list of patterns separated by `|`. A pattern is a part of a name, `glob:GLOB`, `re:REGEX`, \
    or `~ALIAS` of the file; `!` in front selects each id that the pattern does not match.";

const LIST_EXIT_STATUS: &str =
    "exit status: 0 success, 1 error, or something is missing (--check-deps), 4 nothing is selected";

const RUN_EXIT_STATUS: &str = "\
Each pair of endpoints is a cell `PROFILE/peers/0000:dialer=…,listener=…,…`; --select and --ignore also match its name in \
the matrix, as `peers list` prints it. docs/peers.md describes peers files and gates.

exit status: 0 success, 1 error, 3 a cell could not be measured, 4 nothing to do";

/// Commands of matrices
#[derive(Debug, Subcommand)]
pub(crate) enum PeersCommand {
    /// Print the names of the cells, baselines first
    #[command(after_help = format!("{FILTERS}\n\n{LIST_EXIT_STATUS}"))]
    List(Box<PeersListArgs>),
    /// Measure the cells, and record them in a run folder
    #[command(after_help = format!("{FILTERS}\n\n{RUN_EXIT_STATUS}"))]
    Run(Box<PeersRunArgs>),
    /// Write the results of a matrix: the files of libp2p's suites, heat maps and box plots
    Report(PeersReportArgs),
}

/// Arguments of `peers report`
#[derive(Debug, Args)]
pub(crate) struct PeersReportArgs {
    /// Run folder; without it or with `latest`, the newest run in the current folder
    pub(crate) run: Option<PathBuf>,
    /// Folder to write to [default: peers-report in the run folder]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) into: Option<OutputFolder>,
}

/// Arguments of `peers run`
#[derive(Debug, Args)]
pub(crate) struct PeersRunArgs {
    /// Matrix: a peers file in TOML or YAML, or impls.yaml or images.yaml of libp2p's performance suites
    pub(crate) file: PathBuf,
    /// Run folder, metadata, publishing and secrets
    #[command(flatten)]
    pub(crate) run_folder: RunFolderFlags,
    /// Print the study as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Plan whose sampling settings apply: a TOML file, or the name of a built-in plan
    #[arg(long, short, value_name = "FILE|NAME")]
    pub(crate) plan: Option<String>,
    /// What is transferred
    #[command(flatten)]
    pub(crate) workload: WorkloadFlags,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: MatrixFlags,
    /// Which of these cells, where, and how they are sampled
    #[command(flatten)]
    pub(crate) cells: CellFlags,
    /// Preparation of machines before measuring
    #[command(flatten)]
    pub(crate) preparation: PreparationOptions,
}

/// What the endpoints of a cell transfer in one sample
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload of a sample")]
pub(crate) struct WorkloadFlags {
    /// Transfer for a fixed time, once in each direction, in place of fixed sizes
    #[arg(long, value_name = "TIME", conflicts_with_all = ["iterations", "as_suite"])]
    pub(crate) duration: Option<Nanos>,
    /// Start of such a transfer that is cut off [default: as much as is not steady yet]
    #[arg(long, value_name = "TIME", requires = "duration")]
    pub(crate) omit: Option<Nanos>,
    /// Number of uploads and of downloads
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 0>)]
    pub(crate) iterations: Option<u32>,
    /// Size of an upload; 0 for none
    #[arg(long, value_name = "SIZE")]
    pub(crate) upload_bytes: Option<Bytes>,
    /// Size of a download; 0 for none
    #[arg(long, value_name = "SIZE")]
    pub(crate) download_bytes: Option<Bytes>,
    /// Number of round trips of one byte
    #[arg(long, value_name = "N", value_parser = whole_number::<u32, 0>)]
    pub(crate) latency_iterations: Option<u32>,
    /// Time limit of an iteration, without its `--duration`
    #[arg(long, value_name = "TIME")]
    pub(crate) iteration_limit: Option<Nanos>,
    /// Use the defaults of libp2p's suites: 10 iterations of 1 GiB, 100 round trips
    #[arg(long)]
    pub(crate) as_suite: bool,
    /// Program that runs endpoints that are images: podman or docker
    #[arg(long, value_name = "ENGINE")]
    pub(crate) container_engine: Option<String>,
    /// Worker that runs the listeners [default: the one that runs the dialers]
    #[arg(long, value_name = "WORKER")]
    pub(crate) listener_on: Option<String>,
    /// Worker that runs the dialers [default: the host of --hosts, or this machine]
    #[arg(long, value_name = "WORKER")]
    pub(crate) dialer_on: Option<String>,
}

/// Arguments of `peers list`
#[derive(Debug, Args)]
pub(crate) struct PeersListArgs {
    /// Matrix: a peers file in TOML or YAML, or impls.yaml or images.yaml of libp2p's performance suites
    pub(crate) file: PathBuf,
    /// Print every possible cell, and why it is in or out
    #[arg(long)]
    pub(crate) why: bool,
    /// Print JSON, with every possible cell
    #[arg(long, conflicts_with = "why")]
    pub(crate) json: bool,
    /// Print the endpoints and baselines of the selected cells instead
    #[arg(long, conflicts_with_all = ["why", "json"])]
    pub(crate) list_impls: bool,
    /// Check that this machine has what the endpoints of the selected cells need: programs, images, redis
    #[arg(long, conflicts_with_all = ["why", "json", "list_impls"])]
    pub(crate) check_deps: bool,
    /// Which cells
    #[command(flatten)]
    pub(crate) selection: MatrixFlags,
}

/// Selection among the cells of a matrix
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct MatrixFlags {
    /// Include only matching cells: by name, baselines included; by the id of either side for impls.yaml
    #[arg(long, value_name = "FILTER")]
    test_select: Option<String>,
    /// Exclude cells whose name matches
    #[arg(long, value_name = "FILTER")]
    test_ignore: Option<String>,
    /// Include only baselines whose id matches
    #[arg(long, value_name = "FILTER")]
    baseline_select: Option<String>,
    /// Exclude matching baselines: by id, by name for impls.yaml
    #[arg(long, value_name = "FILTER")]
    baseline_ignore: Option<String>,
    /// Include only cells whose ids both match
    #[arg(long, value_name = "FILTER")]
    impl_select: Option<String>,
    /// Exclude cells with a matching id on either side
    #[arg(long, value_name = "FILTER")]
    impl_ignore: Option<String>,
    /// Include only cells with a matching transport
    #[arg(long, value_name = "FILTER")]
    transport_select: Option<String>,
    /// Exclude cells with a matching transport
    #[arg(long, value_name = "FILTER")]
    transport_ignore: Option<String>,
    /// Include only cells with a matching security layer, or without one
    #[arg(long, value_name = "FILTER", visible_alias = "secure-select")]
    security_select: Option<String>,
    /// Exclude cells with a matching security layer
    #[arg(long, value_name = "FILTER", visible_alias = "secure-ignore")]
    security_ignore: Option<String>,
    /// Include only cells with a matching multiplexer, or without one
    #[arg(long, value_name = "FILTER")]
    muxer_select: Option<String>,
    /// Exclude cells with a matching multiplexer
    #[arg(long, value_name = "FILTER")]
    muxer_ignore: Option<String>,
    /// Include only cells with a matching value of an axis, or without one; may be given more than once
    #[arg(long, value_name = "AXIS=FILTER", value_parser = KeyValueParser)]
    axis_select: Vec<(String, String)>,
    /// Exclude cells with a matching value of an axis; may be given more than once
    #[arg(long, value_name = "AXIS=FILTER", value_parser = KeyValueParser)]
    axis_ignore: Vec<(String, String)>,
    /// Pair every endpoint with every other, even in suites that pair each only with itself
    #[arg(long)]
    full_matrix_test: bool,
}

impl MatrixFlags {
    pub(crate) fn to_selection(&self) -> SelectionFlags {
        let both = |select: &Option<String>, ignore: &Option<String>| SelectIgnore {
            select: select.clone(),
            ignore: ignore.clone(),
        };
        let named = [
            ("transport", both(&self.transport_select, &self.transport_ignore)),
            ("security", both(&self.security_select, &self.security_ignore)),
            ("muxer", both(&self.muxer_select, &self.muxer_ignore)),
        ];
        let named = named.into_iter().filter(|(_, filter)| *filter != SelectIgnore::default());
        let select = self.axis_select.iter().map(|(axis, filter)| (axis.clone(), both(&Some(filter.clone()), &None)));
        let ignore = self.axis_ignore.iter().map(|(axis, filter)| (axis.clone(), both(&None, &Some(filter.clone()))));
        SelectionFlags {
            test: both(&self.test_select, &self.test_ignore),
            baseline: both(&self.baseline_select, &self.baseline_ignore),
            implementation: both(&self.impl_select, &self.impl_ignore),
            axes: named.map(|(axis, filter)| (axis.to_owned(), filter)).chain(select).chain(ignore).collect(),
            full_matrix: self.full_matrix_test,
        }
    }
}
