pub(crate) mod iperf3;
pub(crate) mod sweep;
pub(crate) mod unused_options;
pub(crate) mod uperf;

use std::{
    net::{Ipv6Addr, SocketAddr, ToSocketAddrs},
    ops::RangeInclusive,
    path::PathBuf,
    time::Duration,
};

use clap::{Args, Subcommand};
use wb_model::{Bytes, Nanos};
use wb_net::control::Fingerprint;
use wb_net_profile::Protocol;

use super::{KeyValueParser, NumberList, OutputPath, parse_ip_address, parse_number_list};

/// `net`
#[derive(Debug, Subcommand)]
pub(crate) enum NetCommand {
    #[command(flatten)]
    Workload(NetWorkloadCommand),
    /// Measure latency over offered load up to saturation, and find the knee
    ///
    /// First the capacity is measured without a rate. Then the loads are offered one after the other, by a fixed schedule
    /// whether or not earlier rounds have ended. The knee is the last load whose p99 response time is at most twice that of
    /// the lowest load; it is undecided if runs of that and the next load overlap.
    #[command(after_help = SWEEP_EXIT_STATUS)]
    Sweep(Box<sweep::SweepArgs>),
    /// Run profiles as uperf does, with its options and output, between machines that run this program
    ///
    /// Measuring, authentication and the definitions of figures are those of the other commands.
    #[command(after_help = UPERF_HELP, disable_version_flag = true)]
    Uperf(Box<uperf::UperfArgs>),
    /// Measure as iperf3 does, with its options and output, between two machines that run this program
    ///
    /// Measuring, authentication and the definitions of figures are those of the other commands.
    #[command(after_help = IPERF3_HELP, disable_version_flag = true)]
    Iperf3(Box<iperf3::Iperf3Args>),
    /// Check profiles for errors and for features that this kernel lacks
    #[command(
        after_help = "exit status: 0 all profiles are valid, 1 a profile is invalid, 3 this kernel lacks a feature"
    )]
    Check(NetCheckArgs),
    /// Print a new random token, or write it to a file that only its owner can read
    Token {
        /// File to create
        file: Option<OutputPath>,
    },
    /// Print the fingerprint of a key; a key file that does not exist is created, with its folder
    Identity {
        /// Key file
        file: PathBuf,
    },
}

/// What workers run, too.
#[derive(Debug, Subcommand)]
pub(crate) enum NetWorkloadCommand {
    /// Accept authenticated clients and run the other side of their profiles
    #[command(
        after_help = "The token is read from --token-file or WEIGHBRIDGE_NET_TOKEN; `weighbridge net token` creates one."
    )]
    Serve(NetServeArgs),
    /// Run a profile with the servers it names
    #[command(after_help = RUN_EXIT_STATUS)]
    Run(Box<NetRunArgs>),
    /// Stream messages to HOST at full speed
    #[command(after_help = RUN_EXIT_STATUS)]
    Stream(Box<PresetArgs>),
    /// Stream messages from HOST at full speed (netperf's TCP_MAERTS)
    #[command(after_help = RUN_EXIT_STATUS)]
    Maerts(Box<PresetArgs>),
    /// Stream messages both ways at full speed, over separate connections
    #[command(after_help = RUN_EXIT_STATUS)]
    Bidirec(Box<PresetArgs>),
    /// Exchange requests and responses, one at a time per connection
    #[command(after_help = RUN_EXIT_STATUS)]
    Rr(Box<PresetArgs>),
    /// Exchange requests and responses, with a new connection for each
    #[command(after_help = RUN_EXIT_STATUS)]
    Crr(Box<PresetArgs>),
    /// Open and close connections: by default TLS, so that each round is a handshake
    #[command(after_help = RUN_EXIT_STATUS)]
    Handshakes(Box<PresetArgs>),
    /// Exchange requests and responses as UDP datagrams, counting lost ones
    #[command(after_help = RUN_EXIT_STATUS)]
    UdpRr(Box<PresetArgs>),
    /// Execute strands in a separate process
    #[command(hide = true)]
    StrandProcess,
}

const RUN_EXIT_STATUS: &str = "exit status: 0 measured (or stopped by --max-duration), 1 not started, 3 connection \
    lost, run failed or feature unsupported, 130 interrupted";

const SWEEP_EXIT_STATUS: &str = "exit status: 0 measured, 1 not started, 3 connection lost, run failed or feature \
    unsupported, 130 interrupted";

const UPERF_HELP: &str = "Variables of the profile are taken from the environment. Both sides need a token: in the environment \
    variable WEIGHBRIDGE_NET_TOKEN, or by --token-file.\n\n\
    exit status: 0 measured, 1 not started, 3 connection lost, run failed or feature unsupported, 130 interrupted";

const IPERF3_HELP: &str = "Both sides need a token: in the environment variable WEIGHBRIDGE_NET_TOKEN, or by --token-file.\n\n\
    exit status: 0 measured, 1 not measured or interrupted, as in iperf3";

/// Identity of this side, and trusted peers
#[derive(Debug, Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustFlags {
    /// File with the shared token, readable only by its owner
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// File with this side's key; created if missing
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Trust the peer whose key has this fingerprint; may be given more than once
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) trust: Vec<Fingerprint>,
}

/// `net serve`
#[derive(Debug, Args)]
pub(crate) struct NetServeArgs {
    /// Address to listen on, a link-local one with its interface (`fe80::1%eth0`); other machines cannot reach a loopback
    /// address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = parse_listen_address)]
    pub(crate) listen: SocketAddr,
    /// Port of the control connection
    #[arg(long, short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = super::whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Accept data connections only on these ports, for firewalls
    #[arg(long, value_name = "LOW-HIGH", value_parser = parse_port_range)]
    pub(crate) data_ports: Option<RangeInclusive<u16>>,
    /// Accept data connections on the control port, so that only that port must be open
    #[arg(long, conflicts_with = "data_ports")]
    pub(crate) one_port: bool,
    /// Pin strands to these CPUs, round-robin: `0-3,8`
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) cpus: Option<NumberList>,
    /// Generate a token, listen on all addresses, and print a command line for the other machine
    #[arg(long, conflicts_with_all = ["token_file", "listen"])]
    pub(crate) pair: bool,
    /// Exit after one session
    #[arg(long)]
    pub(crate) once: bool,
    /// Maximum number of concurrent sessions
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = super::whole_number::<usize, 1>)]
    pub(crate) max_sessions: usize,
    /// Maximum number of strands (threads or processes of a profile) per session
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = super::whole_number::<u64, 0>)]
    pub(crate) max_strands: u64,
    /// Maximum memory per session
    #[arg(long, value_name = "SIZE", default_value = "2g")]
    pub(crate) max_memory: Bytes,
    /// Maximum duration of a session
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_positive_time)]
    pub(crate) max_time: Nanos,
    /// Identity of this side, and trusted clients
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// `net check`
#[derive(Debug, Args)]
pub(crate) struct NetCheckArgs {
    /// Profiles to check, in uperf's XML
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Variable of the profiles; overrides the environment; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = KeyValueParser)]
    pub(crate) var: Vec<(String, String)>,
}

/// `net run`
#[derive(Debug, Args)]
pub(crate) struct NetRunArgs {
    /// Profile in uperf's XML
    #[arg(value_name = "FILE")]
    pub(crate) profile: PathBuf,
    /// Variable of the profile; overrides the environment; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = KeyValueParser)]
    pub(crate) var: Vec<(String, String)>,
    /// Port of the control connections
    #[arg(long, short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = super::whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Print groups, threads, transactions, flowops and connections
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print flowops: both sides of each and their difference
    #[arg(long, short)]
    pub(crate) flowops: bool,
    /// Print transactions with the latencies of their rounds
    #[arg(long, short)]
    pub(crate) transactions: bool,
    /// Print a line per thread
    #[arg(long, short = 'T')]
    pub(crate) threads: bool,
    /// Print groups, their CPU cost on both sides, and their connections
    #[arg(long, short)]
    pub(crate) groups: bool,
    /// Print the network interfaces' counters beside the run's own
    #[arg(long, short = 'k')]
    pub(crate) netstat: bool,
    /// Print quantiles per second, and their spread over the seconds
    #[arg(long)]
    pub(crate) nested: bool,
    /// Record only counts, no latencies
    #[arg(long, short = 'n', conflicts_with_all = ["all", "flowops", "transactions", "threads", "groups", "nested"])]
    pub(crate) no_statistics: bool,
    /// Options shared with the presets
    #[command(flatten)]
    pub(crate) common: NetClientFlags,
}

/// Options that `net run` and the presets share
#[derive(Debug, Args)]
pub(crate) struct NetClientFlags {
    /// Interval between lines of progress: `500ms`; at least 10ms
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub(crate) interval: Nanos,
    /// Print machine-readable progress: cumulative counts with the time of day in ms, as uperf does
    #[arg(long, short = 'R', conflicts_with = "json")]
    pub(crate) timestamped: bool,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Measure the CPU time of every flowop, which adds overhead
    #[arg(long, short = 'p')]
    pub(crate) cpu: bool,
    /// Count CPU cycles and instructions of every flowop
    #[arg(long, short = 'e')]
    pub(crate) counters: bool,
    /// Count these perf events for every flowop
    #[arg(long, short = 'E', value_name = "EVENT,…", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// Write every response time with the name of its flowop, one per line
    #[arg(long, short = 'X', value_name = "FILE")]
    pub(crate) raw: Option<OutputPath>,
    /// Write intervals and totals as XML
    #[arg(long, short = 'x', value_name = "FILE")]
    pub(crate) xml: Option<OutputPath>,
    /// Stop each transaction after this time
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) max_duration: Option<Nanos>,
    /// Time to wait for a UDP response before it counts as lost
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_positive_time)]
    pub(crate) datagram_deadline: Nanos,
    /// Time limit for a server to accept the connection, and again to authenticate
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_positive_time)]
    pub(crate) connect_timeout: Nanos,
    /// Maximum number of strands that get a thread of their own; if there are more, event loops execute them
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = super::whole_number::<u32, 1>)]
    pub(crate) max_threads: u32,
    /// Pin strands to these CPUs, round-robin: `0-3,8`
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) cpus: Option<NumberList>,
    /// Address of the server for a host of the profile, if not the host's name; may be given more than once
    #[arg(long, value_name = "HOST=ADDRESS[:PORT]", value_parser = KeyValueParser)]
    pub(crate) server: Vec<(String, String)>,
    /// Seed for all random choices; drawn and printed if not given
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u64, 0>)]
    pub(crate) seed: Option<u64>,
    /// Identity of this side, and trusted servers
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// Arguments of the presets
#[derive(Debug, Args)]
pub(crate) struct PresetArgs {
    /// Machine that runs `weighbridge net serve`: HOST or HOST:PORT
    pub(crate) host: String,
    /// Duration of the data transfer, in seconds or with a unit: `10`, `500ms`
    #[arg(long, short = 't', value_name = "TIME", default_value = "10s", value_parser = parse_runtime)]
    pub(crate) runtime: Duration,
    /// Message sizes, measured one after the other [default: 64k for streams, 1470 for datagram streams, 90 for
    /// requests]
    #[arg(long, short = 'l', value_name = "SIZE,…", value_delimiter = ',')]
    pub(crate) message_sizes: Vec<BufferSize>,
    /// Size of responses, if different from that of requests
    #[arg(long, value_name = "SIZE")]
    pub(crate) response_size: Option<BufferSize>,
    /// Protocols, measured one after the other: tcp, udp, ssl, sctp, unix, unix-dgram, vsock, quic, rds
    /// [default: tcp, or ssl for handshakes]
    #[arg(long, value_name = "PROTOCOL,…", value_delimiter = ',', value_parser = parse_protocol)]
    pub(crate) protocols: Vec<Protocol>,
    /// Numbers of concurrent connections, measured one after the other
    #[arg(long, short = 'n', value_name = "N,…", value_delimiter = ',', default_value = "1",
          value_parser = super::whole_number::<u32, 1>)]
    pub(crate) instances: Vec<u32>,
    /// Size of the socket buffers; tuned by the kernel if not given
    #[arg(long, short, value_name = "SIZE")]
    pub(crate) window: Option<BufferSize>,
    /// Time of traffic before the measurement, over the same connections [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_runtime)]
    pub(crate) omit: Option<Duration>,
    /// Maximum segment size of TCP in bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_mss)]
    pub(crate) mss: Option<u32>,
    /// Congestion control algorithm of TCP
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Type of service of IPv4, or traffic class of IPv6: 0 to 255, also as 0x…
    #[arg(long, value_name = "N", value_parser = parse_type_of_service)]
    pub(crate) tos: Option<u8>,
    /// Segmentation offload for UDP streams (GSO and GRO): one system call moves up to 64 datagrams
    #[arg(long)]
    pub(crate) gso: bool,
    /// Target rate per connection: bits per second as `500M`, or rounds per second as `10k/s`; unlimited by default
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<PresetRate>,
    /// Use a process instead of a thread for each connection
    #[arg(long)]
    pub(crate) processes: bool,
    /// Port of the control connection, if HOST has none
    #[arg(long, short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = super::whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Options shared with `net run`
    #[command(flatten)]
    pub(crate) common: NetClientFlags,
}

/// The size of a message or buffer: at least a byte, at most 1 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferSize(pub(crate) u32);

impl std::str::FromStr for BufferSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
        let size = u32::try_from(bytes.0).ok().filter(|size| (1..=1 << 30).contains(size));
        size.map(Self).ok_or_else(|| "expected a size from 1 byte to 1g".to_owned())
    }
}

impl std::fmt::Display for BufferSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Bytes(self.0.into()).fmt(f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PresetRate {
    /// Bits of messages per second.
    Bits(f64),
    /// Rounds per second.
    Rounds(f64),
}

impl PresetRate {
    /// Rounds per second, if each moves this many bytes.
    pub(crate) fn rounds_per_second(self, bytes: u32) -> f64 {
        match self {
            Self::Bits(bits) => bits / 8.0 / f64::from(bytes),
            Self::Rounds(rounds) => rounds,
        }
    }
}

impl std::str::FromStr for PresetRate {
    type Err = String;

    /// Suffixes are decimal, as for rates everywhere.
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, kind): (&str, fn(f64) -> Self) = match text.strip_suffix("/s") {
            Some(number) => (number, Self::Rounds),
            None => (text, Self::Bits),
        };
        let (digits, factor) = match number.char_indices().next_back() {
            Some((end, 'k' | 'K')) => (&number[..end], 1e3),
            Some((end, 'm' | 'M')) => (&number[..end], 1e6),
            Some((end, 'g' | 'G')) => (&number[..end], 1e9),
            _ => (number, 1.0),
        };
        let value =
            digits.parse::<f64>().ok().map(|value| value * factor).filter(|value| value.is_normal() && *value > 0.0);
        let expected = "expected bits per second such as `500M`, or rounds per second such as `10k/s`";
        value.map(kind).ok_or_else(|| expected.to_owned())
    }
}

impl NetClientFlags {
    pub(crate) fn has_counters(&self) -> bool {
        self.counters || !self.events.is_empty()
    }
}

fn parse_port_range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let range = text.split_once('-').and_then(|(low, high)| Some(low.parse().ok()?..=high.parse().ok()?));
    let range = range.filter(|range| !range.is_empty() && *range.start() > 0);
    range.ok_or_else(|| "expected two ports such as `30000-30100`".to_owned())
}

/// Parses the duration of a preset; a number without a unit is in seconds, as in iperf3.
fn parse_runtime(text: &str) -> Result<Duration, String> {
    parse_positive_time(text).map(Duration::from)
}

fn parse_positive_time(text: &str) -> Result<Nanos, String> {
    let time = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if time.0 == 0 { Err("expected a time above 0".to_owned()) } else { Ok(time) }
}

/// The maximum segment sizes that Linux accepts (tcp(7)).
const MSS_RANGE: RangeInclusive<u32> = 88..=32_767;

fn parse_mss(text: &str) -> Result<u32, String> {
    let mss = text.parse().ok().filter(|mss| MSS_RANGE.contains(mss));
    mss.ok_or_else(|| format!("expected bytes from {} to {}", MSS_RANGE.start(), MSS_RANGE.end()))
}

fn parse_type_of_service(text: &str) -> Result<u8, String> {
    wb_net_profile::parse_type_of_service(text).ok_or_else(|| "expected a number from 0 to 255".to_owned())
}

fn parse_interval(text: &str) -> Result<Nanos, String> {
    let time = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if time.0 < 10_000_000 { Err("expected at least 10ms".to_owned()) } else { Ok(time) }
}

fn parse_protocol(text: &str) -> Result<Protocol, String> {
    let by_name = Protocol::ALL.iter().find(|protocol| protocol.name().eq_ignore_ascii_case(text));
    let aliases = [("tls", Protocol::Tls), ("unixgram", Protocol::UnixDgram)];
    let alias = aliases.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, protocol)| protocol);
    by_name.or(alias).copied().ok_or_else(|| {
        let names: Vec<_> = Protocol::ALL.iter().map(|protocol| protocol.name()).collect();
        format!("unknown protocol: expected one of {}", names.join(", "))
    })
}

/// Parses an address, without a port, of this machine.
fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let Some((address, interface)) = text.split_once('%') else {
        return parse_ip_address(text).map(|address| SocketAddr::new(address, 0));
    };
    address.parse::<Ipv6Addr>().map_err(|_| "expected an IPv6 address before `%`".to_owned())?;
    // The system's resolver knows the interfaces; with an address nothing is asked of the network.
    let found = (text, 0).to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| format!("no such network interface: `{interface}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_or_rounds_per_second() {
        let rounds = |text: &str| text.parse::<PresetRate>().map(|rate| rate.rounds_per_second(1250));
        assert_eq!((rounds("500M"), rounds("10k/s"), rounds("2.5/s")), (Ok(50_000.0), Ok(10_000.0), Ok(2.5)));
        for text in ["", "M", "-1", "0", "ten", "5x", "inf", "nan/s"] {
            assert!(rounds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_link_local_address_has_its_interface() {
        let lo = std::net::SocketAddrV6::new("fe80::1".parse().unwrap(), 0, 0, 1);
        for text in ["fe80::1%lo", "fe80::1%1", "[fe80::1%lo]"] {
            assert_eq!(parse_listen_address(text), Ok(lo.into()), "{text}");
        }
        for text in ["fe80::1%nosuch0", "10.0.0.1%lo", "fe80::1%../lo", "localhost"] {
            assert!(parse_listen_address(text).is_err(), "{text}");
        }
    }
}
