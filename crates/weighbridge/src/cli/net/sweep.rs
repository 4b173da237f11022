use std::time::Duration;

use clap::{Args, ValueEnum};
use wb_net_profile::Protocol;

use super::{BufferSize, TrustFlags, parse_protocol, parse_runtime};
use crate::cli::{NumberList, OutputPath, parse_number_list, whole_number};

/// Loads in percent of the capacity.
const DEFAULT_LOADS: [f64; 12] = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 100.0, 110.0];

/// A workload whose rounds can be offered at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepPreset {
    /// Requests and responses over open connections
    Rr,
    /// The same with a new connection for each
    Crr,
    /// Requests and responses as UDP datagrams
    UdpRr,
}

/// `net sweep`
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Machine that runs `weighbridge net serve`: HOST or HOST:PORT
    pub(crate) host: String,
    /// Workload
    #[arg(long, value_enum, default_value = "rr")]
    pub(crate) preset: SweepPreset,
    /// Duration of each load, in seconds or with a unit
    #[arg(long, short = 't', value_name = "TIME", default_value = "5s", value_parser = parse_runtime)]
    pub(crate) runtime: Duration,
    /// Time before the measurement of each load
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_runtime)]
    pub(crate) omit: Duration,
    /// Loads in percent of the capacity, in ascending order
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', value_parser = parse_load,
          default_values_t = DEFAULT_LOADS)]
    pub(crate) loads: Vec<f64>,
    /// Number of runs of each load; the one with the median p99 is reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole_number::<u32, 1>)]
    pub(crate) runs: u32,
    /// Message size
    #[arg(long = "message-size", short = 'l', value_name = "SIZE", default_value = "90")]
    pub(crate) message_size: BufferSize,
    /// Size of responses, if different from that of requests
    #[arg(long, value_name = "SIZE")]
    pub(crate) response_size: Option<BufferSize>,
    /// Number of concurrent connections
    #[arg(long, short = 'n', value_name = "N", default_value_t = 8, value_parser = whole_number::<u32, 1>)]
    pub(crate) instances: u32,
    /// Protocol of rr and crr: tcp, udp, ssl, sctp, unix, unix-dgram, vsock, quic, rds [default: tcp]
    #[arg(long, value_name = "PROTOCOL", value_parser = parse_protocol)]
    pub(crate) protocol: Option<Protocol>,
    /// Pin strands to these CPUs, round-robin: `0-3,8`
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) cpus: Option<NumberList>,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Write a page with the curve and the table
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<OutputPath>,
    /// Write the curve as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<OutputPath>,
    /// Write the curve as PNG
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<OutputPath>,
    /// Port of the control connection, if HOST has none
    #[arg(long, short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Identity of this side, and trusted servers
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

fn parse_load(text: &str) -> Result<f64, String> {
    let load: Option<f64> = text.parse().ok().filter(|load| (1.0..=1000.0).contains(load));
    load.ok_or_else(|| "expected a percentage from 1 to 1000".to_owned())
}
