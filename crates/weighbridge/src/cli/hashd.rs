//! Arguments of `hashd`.

use std::path::PathBuf;

use clap::Args;
use wb_model::{Bytes, Nanos};

use super::whole_number;

/// Notes and exit statuses of `hashd`, printed after its help.
pub(crate) const AFTER_HELP: &str = "Options override the parameters file, also after it has been changed. Without \
    --rps-target, as many requests are executed as the latency target permits. docs/contention.md describes the \
    workload, its parameters and its report.\n\n\
    exit status: 0 it ran for --duration, or until a signal without it, 1 error, 130 a signal before the end of \
    --duration";

/// `hashd`
#[derive(Debug, Args)]
pub(crate) struct HashdArgs {
    /// Parameters file, TOML or (*.json) JSON; read again when it changes
    #[arg(long, value_name = "FILE")]
    pub(crate) params: Option<PathBuf>,
    /// Folder of the test files and logs [default: a new one in /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep the test files and logs in --dir; test files of the right size are used again
    #[arg(long, requires = "dir")]
    pub(crate) keep_files: bool,
    /// Memory footprint, of which `mem-frac` is used [default: 4 times the memory, or as much as fits]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Requests per second to reach
    #[arg(long, value_name = "N", conflicts_with = "open_loop")]
    pub(crate) rps_target: Option<f64>,
    /// Latency that 95 % of the requests must not exceed [default: 75ms]
    #[arg(long, value_name = "TIME", conflicts_with = "open_loop")]
    pub(crate) lat_target: Option<Nanos>,
    /// Start this many requests per second at random times, whatever their latency is
    #[arg(long, value_name = "RATE")]
    pub(crate) open_loop: Option<f64>,
    /// How long to run [default: until Ctrl-C or SIGTERM]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Nanos>,
    /// Seed of sizes, addresses, sleeps and arrivals: the same seed draws the same requests
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<u64, 0>)]
    pub(crate) seed: u64,
    /// Print each report as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
