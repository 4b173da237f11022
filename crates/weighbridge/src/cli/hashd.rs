use std::path::PathBuf;

use clap::Args;
use wb_model::{Bytes, Nanos};

use super::{OutputPath, parse_fraction, parse_non_negative, whole_number};

pub(crate) const AFTER_HELP: &str = "Options override the parameters file, also after it has been changed. Without \
    --rps-target, as many requests are executed as the latency target permits. docs/contention.md describes the \
    workload, its parameters and its report.\n\n\
    exit status: 0 finished (--duration over, parameters found, or stopped by a signal without --duration), 1 error, \
    130 interrupted";

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
    /// Fraction of the data that is zero, so that it compresses: from 0 to 1
    #[arg(long, value_name = "FRAC", default_value_t = 0.0, value_parser = parse_fraction, allow_negative_numbers = true)]
    pub(crate) compressibility: f64,
    /// Start with an empty footprint, which grows as requests use it [default: fill it first, as far as memory permits]
    #[arg(long)]
    pub(crate) no_fill: bool,
    /// Memory footprint, of which `mem-frac` is used [default: 4 times the memory, or as much as fits]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// Requests per second to reach
    #[arg(long, value_name = "N", conflicts_with = "open_loop", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) rps_target: Option<f64>,
    /// Latency that 95 % of the requests must not exceed [default: 75ms]
    #[arg(long, value_name = "TIME", conflicts_with = "open_loop")]
    pub(crate) lat_target: Option<Nanos>,
    /// Start this many requests per second at random times, whatever their latency is
    #[arg(long, value_name = "RATE", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) open_loop: Option<f64>,
    /// Find the parameters that load this machine fully, and write them to this TOML file. FILE.journal has each finished
    /// round: the same command resumes there
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["rps_target", "open_loop", "duration", "keep_files", "no_fill"]
    )]
    pub(crate) find_params: Option<OutputPath>,
    /// Imitate hashing by sleeping while parameters are found, so that they depend on memory and disk alone
    #[arg(long, requires = "find_params")]
    pub(crate) fake_cpu_load: bool,
    /// Mean number of bytes that a request reads and hashes [default: found so that hashing takes 15 ms]
    #[arg(long, value_name = "SIZE", requires = "find_params")]
    pub(crate) hash_size: Option<Bytes>,
    /// Number of pages that are read or touched together [default: found]
    #[arg(long, value_name = "N", requires = "find_params", value_parser = whole_number::<u32, 1>)]
    pub(crate) chunk_pages: Option<u32>,
    /// Requests per second at full load [default: found; with --fake-cpu-load 2000 for 12 GiB of memory]
    #[arg(long, value_name = "N", requires = "find_params", value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) rps_max: Option<f64>,
    /// Scale the steps of the memory footprint: 2 doubles them
    #[arg(long, value_name = "FACTOR", requires = "find_params", default_value_t = 1.0,
          value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) grain: f64,
    /// Scale the observation time of each round: less than 1 is faster and less certain
    #[arg(long, value_name = "FACTOR", requires = "find_params", default_value_t = 1.0,
          value_parser = parse_non_negative, allow_negative_numbers = true)]
    pub(crate) window_scale: f64,
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
