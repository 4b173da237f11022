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
    /// Print more: the machine, the test's parameters, CPU usage and congestion control
    #[arg(long, short = 'V')]
    pub(crate) verbose: bool,
    /// Begin each line of text with the time, in a format of strftime(3)
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "%c ")]
    pub(crate) timestamps: Option<String>,
    /// Flush the output at every interval, as is always done
    #[arg(long)]
    pub(crate) forceflush: bool,
    /// Print the version
    #[arg(long, short = 'v', group = "side")]
    pub(crate) version: bool,
    /// Append the output to a file instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) logfile: Option<OutputPath>,
    /// Exit after one test
    #[arg(long, short = '1', conflicts_with = "client")]
    pub(crate) one_off: bool,
    /// Serve in the background
    #[arg(long, short = 'D', conflicts_with = "client")]
    pub(crate) daemon: bool,
    /// Seconds without a client after which a server ends with -1, and otherwise listens anew
    #[arg(long, value_name = "SECONDS", conflicts_with = "client", value_parser = whole_number::<u32, 1>)]
    pub(crate) idle_timeout: Option<u32>,
    /// Maximum rate of a test in bits per second over all streams, optionally with the seconds of its average [default: 5]
    #[arg(long, value_name = "RATE[/SECONDS]", conflicts_with = "client", value_parser = parse_rate_limit)]
    pub(crate) server_bitrate_limit: Option<ServerRateLimit>,
    /// What the client measures
    #[command(flatten)]
    pub(crate) test: Iperf3TestFlags,
    /// Options that are refused
    #[command(flatten)]
    pub(crate) refused: RefusedFlags,
    /// Identity of this side, and trusted peers
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// Options of iperf3 that are refused, with the reason.
#[derive(Debug, Args)]
pub(crate) struct RefusedFlags {
    #[arg(long, short = 'I', hide = true)]
    pidfile: Option<String>,
    #[arg(long, short = 'F', hide = true)]
    file: Option<String>,
    #[arg(long, hide = true)]
    bind_dev: Option<String>,
    #[arg(long, short = 'd', hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "4")]
    debug: Option<String>,
    #[arg(long, short = 'X', hide = true)]
    xbind: Vec<String>,
    #[arg(long, hide = true)]
    nstreams: Option<String>,
    #[arg(long, short = 'L', hide = true)]
    flowlabel: Option<String>,
    #[arg(long, short = 'Z', hide = true)]
    zerocopy: bool,
    #[arg(long, hide = true)]
    username: Option<String>,
    #[arg(long, hide = true)]
    rsa_public_key_path: Option<String>,
    #[arg(long, hide = true)]
    rsa_private_key_path: Option<String>,
    #[arg(long, hide = true)]
    authorized_users_path: Option<String>,
    #[arg(long, hide = true)]
    time_skew_threshold: Option<String>,
}

impl RefusedFlags {
    /// The first that is given: its name, and why it is refused.
    pub(crate) fn refusal(&self) -> Option<(&'static str, &'static str)> {
        const TOKEN: &str = "client and server prove that they know a token: see `--token-file`";
        let flags = [
            (
                self.pidfile.is_some(),
                "-I",
                "-D prints the number of its process, and service managers write such files",
            ),
            (
                self.file.is_some(),
                "-F",
                "messages have generated content, and a server stores nothing that it receives",
            ),
            (self.bind_dev.is_some(), "--bind-dev", "-B with the address of the interface selects it"),
            (self.debug.is_some(), "-d", "messages about the internals do not exist; -V prints more"),
            (!self.xbind.is_empty(), "-X", "an association of SCTP uses the address of -B"),
            (self.nstreams.is_some(), "--nstreams", "profiles set the streams of SCTP (`net run`, `sctp_out_streams`)"),
            (self.flowlabel.is_some(), "-L", "the kernel chooses the flow label"),
            (self.zerocopy, "-Z", "messages are copied; profiles send files without copying (`net run`, `sendfile`)"),
            (self.username.is_some(), "--username", TOKEN),
            (self.rsa_public_key_path.is_some(), "--rsa-public-key-path", TOKEN),
            (self.rsa_private_key_path.is_some(), "--rsa-private-key-path", TOKEN),
            (self.authorized_users_path.is_some(), "--authorized-users-path", TOKEN),
            (self.time_skew_threshold.is_some(), "--time-skew-threshold", TOKEN),
        ];
        flags.into_iter().find(|(is_given, ..)| *is_given).map(|(_, name, reason)| (name, reason))
    }
}

/// The maximum rate of a server's test, and the seconds of its average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerRateLimit {
    pub(crate) bits_per_second: u64,
    pub(crate) seconds: u32,
}

/// A target rate, and the number of blocks that are sent at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetRate {
    /// Bits per second; 0 for no limit.
    pub(crate) bits_per_second: f64,
    pub(crate) burst: Option<u32>,
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
    /// Target rate of each stream in bits per second, 0 for no limit [default: 1M for UDP, no limit otherwise]; with the
    /// number of blocks that are sent at once
    #[arg(long, short, value_name = "RATE[/BLOCKS]", value_parser = parse_target_rate, conflicts_with = "server")]
    pub(crate) bitrate: Option<TargetRate>,
    /// Send as many blocks at once as the rate has in this time, in microseconds [default: each block by itself]
    #[arg(long, value_name = "N", value_parser = parse_scaled_whole, conflicts_with = "server")]
    pub(crate) pacing_timer: Option<u32>,
    /// Rate in bits per second at which the kernel paces each stream (SO_MAX_PACING_RATE)
    #[arg(long, value_name = "RATE", value_parser = parse_rate, conflicts_with = "server")]
    pub(crate) fq_rate: Option<f64>,
    /// Port of the first stream on this side; further streams have those that follow
    #[arg(long, value_name = "PORT", value_parser = whole_number::<u16, 1>, conflicts_with = "server")]
    pub(crate) cport: Option<u16>,
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
    /// Differentiated services code point: 0 to 63, also as 0x… or 0…, or a name such as `ef`, `af11` or `cs1`
    #[arg(long, value_name = "N", value_parser = parse_dscp, conflicts_with_all = ["tos", "server"])]
    pub(crate) dscp: Option<u8>,
    /// Forbid the fragmentation of UDP datagrams
    #[arg(long, requires = "udp", conflicts_with = "server")]
    pub(crate) dont_fragment: bool,
    /// Number datagrams without overflow, as is always done
    #[arg(long, requires = "udp", conflicts_with = "server")]
    pub(crate) udp_counters_64bit: bool,
    /// Send repeated digits, which can be compressed, instead of pseudo-random bytes
    #[arg(long, conflicts_with = "server")]
    pub(crate) repeating_payload: bool,
    /// Milliseconds without data after which the client as a receiver of TCP or SCTP gives up
    #[arg(long, value_name = "MS", value_parser = whole_number::<u64, 100>, conflicts_with_all = ["udp", "server"])]
    pub(crate) rcv_timeout: Option<u64>,
    /// Milliseconds without acknowledgement of sent data after which TCP gives up
    #[arg(long, value_name = "MS", value_parser = whole_number::<u64, 1>, conflicts_with_all = ["udp", "sctp", "server"])]
    pub(crate) snd_timeout: Option<u64>,
    /// Text that is added to JSON
    #[arg(long, value_name = "TEXT", conflicts_with = "server")]
    pub(crate) extra_data: Option<String>,
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

fn parse_target_rate(text: &str) -> Result<TargetRate, String> {
    let (rate, burst) = text.split_once('/').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
    let burst = burst.map(|burst| {
        let blocks = burst.parse().ok().filter(|blocks| (1..=1000).contains(blocks));
        blocks.ok_or_else(|| "expected 1 to 1000 blocks after `/`".to_owned())
    });
    Ok(TargetRate { bits_per_second: parse_rate(rate)?, burst: burst.transpose()? })
}

fn parse_rate_limit(text: &str) -> Result<ServerRateLimit, String> {
    let (rate, seconds) = text.split_once('/').unwrap_or((text, "5"));
    let seconds = seconds.parse().ok().filter(|seconds| (1..=1000).contains(seconds));
    let seconds = seconds.ok_or_else(|| "expected 1 to 1000 seconds after `/`".to_owned())?;
    let bits_per_second = parse_rate(rate)? as u64;
    if bits_per_second == 0 {
        Err("expected more than 0".to_owned())
    } else {
        Ok(ServerRateLimit { bits_per_second, seconds })
    }
}

fn parse_scaled_whole(text: &str) -> Result<u32, String> {
    let number = scaled(text, 1000.0).filter(|number| (1.0..=1e9).contains(number));
    number.map(|number| number as u32).ok_or_else(|| "expected microseconds such as `1000`".to_owned())
}

/// Names of code points (RFC 2474, 2597, 3246, 5865 and 8622).
const CODE_POINTS: &[(&str, u8)] = &[("ef", 46), ("voice-admit", 44), ("le", 1)];

fn parse_dscp(text: &str) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    let digits = |prefix: &str, count| {
        let digits: Vec<u8> = name.strip_prefix(prefix)?.bytes().map(|byte| byte.wrapping_sub(b'0')).collect();
        (digits.len() == count).then_some(digits)
    };
    if let Some(&[class]) = digits("cs", 1).as_deref()
        && class <= 7
    {
        return Ok(class * 8);
    }
    if let Some(&[class, drop]) = digits("af", 2).as_deref()
        && (1..=4).contains(&class)
        && (1..=3).contains(&drop)
    {
        return Ok(class * 8 + drop * 2);
    }
    if let Some((_, value)) = CODE_POINTS.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let number = super::parse_type_of_service(text).ok().filter(|number| *number <= 63);
    number.ok_or_else(|| "expected a number from 0 to 63, or a name such as `ef`, `af11` or `cs1`".to_owned())
}

fn parse_rate(text: &str) -> Result<f64, String> {
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
        assert_eq!(parse_target_rate("1M/10"), Ok(TargetRate { bits_per_second: 1e6, burst: Some(10) }));
        assert!(parse_target_rate("1M/0").is_err() && parse_rate_limit("0").is_err());
        assert_eq!(parse_rate_limit("1g/7"), Ok(ServerRateLimit { bits_per_second: 1_000_000_000, seconds: 7 }));
        let points = ["0", "0x2e", "056", "EF", "cs6", "af43"].map(parse_dscp);
        assert_eq!(points, [0, 46, 46, 46, 48, 38].map(Ok));
        assert!(["64", "cs8", "af44", "af", "x"].iter().all(|text| parse_dscp(text).is_err()));
        assert_eq!(parse_interval("0.5"), Ok(ReportInterval(Some(Nanos(500_000_000)))));
        assert!(parse_interval("0.01").is_err() && parse_affinity("1,").is_err());
    }
}
