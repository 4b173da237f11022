//! Arguments of `net iperf3`, with iperf3's names and units.

use std::net::IpAddr;
use std::time::Duration;

use clap::{ArgGroup, Args};
use wb_model::Nanos;
use wb_report::net::iperf3::RateUnit;

use super::{TrustFlags, parse_runtime};
use crate::cli::{OutputPath, parse_ip_address, whole_number};

/// `net iperf3`
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("side").required(true))]
pub(crate) struct Iperf3Args {
    /// Run as a client, with the server at HOST
    #[arg(long, short, value_name = "HOST", group = "side")]
    pub(crate) client: Option<String>,
    /// Run as a server
    #[arg(long, short, group = "side")]
    pub(crate) server: bool,
    /// Port of the server
    #[arg(long, short, value_name = "PORT", default_value_t = 5201, value_parser = whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Unit of rates: k, m, g, t for bits, K, M, G, T for bytes
    #[arg(long, short, value_name = "UNIT", default_value = "adaptive", hide_default_value = true,
          value_parser = parse_rate_unit)]
    pub(crate) format: RateUnit,
    /// Seconds between lines of progress; 0 for one line at the end
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    pub(crate) interval: ReportInterval,
    /// Local address of the client's data connections, or the address that the server listens on
    #[arg(long, short = 'B', value_name = "ADDRESS", value_parser = parse_ip_address)]
    pub(crate) bind: Option<IpAddr>,
    /// CPU of this side's threads; from a client also that of the server's: N,M
    #[arg(long, short = 'A', value_name = "N[,M]", value_parser = parse_affinity)]
    pub(crate) affinity: Option<Affinity>,
    /// Use IPv4 only
    #[arg(long, short = '4', conflicts_with = "version6")]
    pub(crate) version4: bool,
    /// Use IPv6 only
    #[arg(long, short = '6')]
    pub(crate) version6: bool,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Print JSON as it becomes known: a line for the start, for each interval and for the end
    #[arg(long, conflicts_with = "json")]
    pub(crate) json_stream: bool,
    /// Append the output to a file instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) logfile: Option<OutputPath>,
    /// Exit after one test
    #[arg(long, short = '1', conflicts_with = "client")]
    pub(crate) one_off: bool,
    /// What the client measures
    #[command(flatten)]
    pub(crate) test: Iperf3TestFlags,
    /// Identity of this side, and trusted peers
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// The interval between lines of progress; `None` for one line at the end of each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReportInterval(Option<Nanos>);

impl ReportInterval {
    /// Its length; longer than any window for one line.
    pub(crate) fn length(self) -> Duration {
        self.0.map_or(Duration::from_secs(365 * 24 * 3600), Duration::from)
    }
}

/// What the client measures
#[derive(Debug, Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct Iperf3TestFlags {
    /// Duration in seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "10", value_parser = parse_runtime,
          conflicts_with = "server")]
    pub(crate) time: Duration,
    /// Amount of data over all streams, instead of a duration
    #[arg(long, short = 'n', value_name = "SIZE", value_parser = parse_size, conflicts_with_all = ["time", "server"])]
    pub(crate) bytes: Option<u64>,
    /// Number of blocks over all streams, instead of a duration
    #[arg(long, short = 'k', value_name = "N", value_parser = parse_size,
          conflicts_with_all = ["time", "bytes", "server"])]
    pub(crate) blockcount: Option<u64>,
    /// Seconds of traffic before the measurement, over the same connections
    #[arg(long, short = 'O', value_name = "SECONDS", value_parser = parse_runtime, conflicts_with = "server")]
    pub(crate) omit: Option<Duration>,
    /// Number of streams
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = parse_parallel,
          conflicts_with = "server")]
    pub(crate) parallel: u32,
    /// The server sends
    #[arg(long, short = 'R', conflicts_with = "server")]
    pub(crate) reverse: bool,
    /// Both sides send, over separate connections
    #[arg(long, conflicts_with_all = ["reverse", "server"])]
    pub(crate) bidir: bool,
    /// Use UDP
    #[arg(long, short, conflicts_with = "server")]
    pub(crate) udp: bool,
    /// Use SCTP
    #[arg(long, conflicts_with_all = ["udp", "server"])]
    pub(crate) sctp: bool,
    /// Target rate of each stream in bits per second, 0 for no limit [default: 1M for UDP, no limit otherwise]
    #[arg(long, short, value_name = "RATE", value_parser = parse_rate, conflicts_with = "server")]
    pub(crate) bitrate: Option<f64>,
    /// Size of blocks [default: 128K; for UDP, what a packet holds]
    #[arg(long, short, value_name = "SIZE", value_parser = parse_block_size, conflicts_with = "server")]
    pub(crate) length: Option<u32>,
    /// Size of the socket buffers
    #[arg(long, short, value_name = "SIZE", value_parser = parse_block_size, conflicts_with = "server")]
    pub(crate) window: Option<u32>,
    /// Maximum segment size of TCP in bytes
    #[arg(long = "set-mss", short = 'M', value_name = "BYTES", value_parser = super::parse_mss,
          conflicts_with = "server")]
    pub(crate) mss: Option<u32>,
    /// Send small blocks immediately (TCP_NODELAY)
    #[arg(long, short = 'N', conflicts_with = "server")]
    pub(crate) no_delay: bool,
    /// Congestion control algorithm of TCP
    #[arg(long, short = 'C', value_name = "NAME", conflicts_with = "server")]
    pub(crate) congestion: Option<String>,
    /// Type of service of IPv4, or traffic class of IPv6: 0 to 255, also as 0x… or 0…
    #[arg(long, short = 'S', value_name = "N", value_parser = super::parse_type_of_service,
          conflicts_with = "server")]
    pub(crate) tos: Option<u8>,
    /// Text that begins each line, or is the title in JSON
    #[arg(long, short = 'T', value_name = "TEXT", conflicts_with = "server")]
    pub(crate) title: Option<String>,
    /// Print the server's output, too
    #[arg(long, conflicts_with = "server")]
    pub(crate) get_server_output: bool,
    /// Milliseconds for the server to accept the connection
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = whole_number::<u64, 1>,
          conflicts_with = "server")]
    pub(crate) connect_timeout: u64,
}

/// Streams in one direction, as in iperf3.
const MAX_PARALLEL: u32 = 128;

fn parse_parallel(text: &str) -> Result<u32, String> {
    let streams = text.parse().ok().filter(|streams| (1..=MAX_PARALLEL).contains(streams));
    streams.ok_or_else(|| format!("expected a number from 1 to {MAX_PARALLEL}"))
}

fn parse_rate_unit(text: &str) -> Result<RateUnit, String> {
    if text == "adaptive" {
        return Ok(RateUnit::Adaptive);
    }
    text.parse::<RateUnit>().map_err(|error| error.to_string())
}

fn parse_interval(text: &str) -> Result<ReportInterval, String> {
    let expected = || "expected 0, or seconds from 0.1 to 3600".to_owned();
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    match seconds {
        0.0 => Ok(ReportInterval(None)),
        seconds if (0.1..=3600.0).contains(&seconds) => Ok(ReportInterval(Some(Nanos((seconds * 1e9) as u64)))),
        _ => Err(expected()),
    }
}

/// The CPUs of both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Affinity {
    pub(crate) own: usize,
    /// That of the server, if a client sets it.
    pub(crate) server: Option<usize>,
}

fn parse_affinity(text: &str) -> Result<Affinity, String> {
    let cpu = |text: &str| text.trim().parse().map_err(|_| "expected the number of a CPU, or two: N,M".to_owned());
    match text.split_once(',') {
        Some((own, server)) => Ok(Affinity { own: cpu(own)?, server: Some(cpu(server)?) }),
        None => Ok(Affinity { own: cpu(text)?, server: None }),
    }
}

/// A number with an optional prefix, in powers of `base`.
fn scaled(text: &str, base: f64) -> Option<f64> {
    let (digits, power) = match text.char_indices().next_back()? {
        (end, 'k' | 'K') => (&text[..end], 1),
        (end, 'm' | 'M') => (&text[..end], 2),
        (end, 'g' | 'G') => (&text[..end], 3),
        (end, 't' | 'T') => (&text[..end], 4),
        _ => (text, 0),
    };
    let value = digits.parse::<f64>().ok()? * base.powi(power);
    (value.is_finite() && value >= 0.0).then_some(value)
}

fn parse_size(text: &str) -> Result<u64, String> {
    let size = scaled(text, 1024.0).filter(|size| (1.0..1e18).contains(size));
    size.map(|size| size as u64).ok_or_else(|| "expected a size such as `100M`".to_owned())
}

fn parse_block_size(text: &str) -> Result<u32, String> {
    let size = parse_size(text).ok().filter(|size| *size <= 1 << 30);
    size.map(|size| size as u32).ok_or_else(|| "expected a size from 1 byte to 1G".to_owned())
}

fn parse_rate(text: &str) -> Result<f64, String> {
    if text.contains('/') {
        return Err("expected a rate without `/`: packets are not sent in bursts".to_owned());
    }
    scaled(text, 1000.0).ok_or_else(|| "expected bits per second such as `500M`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_rates_decimal_as_in_iperf3() {
        assert_eq!((parse_size("1K"), parse_size("2.5m")), (Ok(1024), Ok(2_621_440)));
        assert_eq!((parse_rate("1K"), parse_rate("0"), parse_rate("2.5g")), (Ok(1000.0), Ok(0.0), Ok(2.5e9)));
        for text in ["", "K", "-1", "1x", "nan"] {
            assert!(parse_size(text).is_err() && parse_rate(text).is_err(), "{text}");
        }
        assert!(parse_rate("1M/10").is_err() && parse_block_size("2G").is_err());
        assert_eq!(parse_interval("0.5"), Ok(ReportInterval(Some(Nanos(500_000_000)))));
        assert!(parse_interval("0.01").is_err() && parse_affinity("1,").is_err());
    }
}
