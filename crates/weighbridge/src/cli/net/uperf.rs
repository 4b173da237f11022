//! Arguments of `net uperf`, with the letters of uperf 1.0.8.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use wb_model::Nanos;

use super::{TrustFlags, parse_interval};
use crate::cli::{OutputPath, whole_number};

/// `net uperf`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("side").required(true))]
pub(crate) struct UperfArgs {
    /// Run this profile as the master
    #[arg(short = 'm', value_name = "PROFILE", group = "side")]
    pub(crate) profile: Option<PathBuf>,
    /// Run as a slave
    #[arg(short = 's', group = "side")]
    pub(crate) slave: bool,
    /// Protocol of the control connection; only tcp
    #[arg(short = 'S', value_name = "PROTOCOL", default_value = "tcp", value_parser = parse_control_protocol)]
    pub(crate) control_protocol: String,
    /// Record only counts, no latencies
    #[arg(short = 'n')]
    pub(crate) no_statistics: bool,
    /// Print threads
    #[arg(short = 'T')]
    pub(crate) threads: bool,
    /// Print transactions
    #[arg(short = 't')]
    pub(crate) transactions: bool,
    /// Print flowops
    #[arg(short = 'f')]
    pub(crate) flowops: bool,
    /// Print groups
    #[arg(short = 'g')]
    pub(crate) groups: bool,
    /// Print the counters of network interfaces, which are printed anyway
    #[arg(short = 'k')]
    pub(crate) netstat: bool,
    /// Measure the CPU time of flowops; implies -f
    #[arg(short = 'p')]
    pub(crate) cpu: bool,
    /// Count CPU cycles and instructions of flowops; implies -f
    #[arg(short = 'e')]
    pub(crate) counters: bool,
    /// Count these perf events of flowops; implies -f
    #[arg(short = 'E', value_name = "EVENT,…", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// Print everything: -g -T -t -f
    #[arg(short = 'a')]
    pub(crate) all: bool,
    /// Write every response time to a file
    #[arg(short = 'X', value_name = "FILE")]
    pub(crate) raw: Option<OutputPath>,
    /// Interval between lines of progress, in seconds or with a unit
    #[arg(short = 'i', value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub(crate) interval: Nanos,
    /// Port of the control connection
    #[arg(short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Print cumulative counts with the time of day in ms, for scripts
    #[arg(short = 'R')]
    pub(crate) timestamped: bool,
    /// Print notes on the run, and the sessions of a slave
    #[arg(short = 'v')]
    pub(crate) verbose: bool,
    /// Print the version
    #[arg(short = 'V', group = "side")]
    pub(crate) version: bool,
    /// Identity of this side, and trusted peers
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

fn parse_control_protocol(text: &str) -> Result<String, String> {
    match text {
        "tcp" => Ok(text.to_owned()),
        _ => Err("expected tcp: the control connection is TLS over TCP".to_owned()),
    }
}
