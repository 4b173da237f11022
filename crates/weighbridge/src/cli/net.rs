//! The commands and flags of `weighbridge net`.

use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use wb_model::{Bytes, Nanos};
use wb_net::{control::Fingerprint, language::Protocol};

use super::{NumberList, parse_key_value, parse_number_list};

/// `net`
#[derive(Debug, Subcommand)]
pub(crate) enum NetCommand {
    /// Let clients in that know the token, and carry out their profiles' other side
    #[command(
        after_help = "The token comes from --token-file or from WEIGHBRIDGE_NET_TOKEN; `weighbridge net token` makes one."
    )]
    Serve(NetServeArgs),
    /// Run a profile with the servers that it names
    #[command(after_help = RUN_EXIT_STATUS)]
    Run(Box<NetRunArgs>),
    /// Say of profiles whether they are fine, what is wrong with them, or what this kernel cannot do
    #[command(
        after_help = "exit status: 0 where all are fine, 1 where one is wrong, 3 where this kernel lacks something"
    )]
    Check(NetCheckArgs),
    /// Print a fresh token
    Token,
    /// Print the fingerprint of a key; the key is made if there is none
    Identity {
        /// The file of the key
        file: PathBuf,
    },
    /// Messages from here to HOST as fast as they go
    #[command(after_help = RUN_EXIT_STATUS)]
    Stream(Box<PresetArgs>),
    /// Messages from HOST to here as fast as they go
    #[command(after_help = RUN_EXIT_STATUS)]
    Maerts(Box<PresetArgs>),
    /// Messages both ways as fast as they go, over connections of their own
    #[command(after_help = RUN_EXIT_STATUS)]
    Bidirec(Box<PresetArgs>),
    /// Requests and responses, one at a time on each connection
    #[command(after_help = RUN_EXIT_STATUS)]
    Rr(Box<PresetArgs>),
    /// A connection for every request and response
    #[command(after_help = RUN_EXIT_STATUS)]
    Crr(Box<PresetArgs>),
    /// Requests and responses as UDP datagrams; lost ones are counted
    #[command(after_help = RUN_EXIT_STATUS)]
    UdpRr(Box<PresetArgs>),
    /// Carry out strands as a process of their own
    #[command(hide = true)]
    Site,
}

const RUN_EXIT_STATUS: &str =
    "exit status: 0 measured (or cut as asked), 1 nothing could begin, 3 lost, failed or unsupported, 130 interrupted";

/// Who this is, and who is trusted
#[derive(Debug, Args)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustFlags {
    /// A file with the token that both sides know, readable by its owner alone
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A file with this side's key; made if there is none
    #[arg(long, value_name = "FILE")]
    pub(crate) identity: Option<PathBuf>,
    /// Trust whoever holds the key with this fingerprint; may be given more than once
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) trust: Vec<Fingerprint>,
}

/// `net serve`
#[derive(Debug, Args)]
pub(crate) struct NetServeArgs {
    /// The address to listen at; other machines reach only one that is not of the loopback
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// The port of the control connection
    #[arg(long, short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = super::whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Take data connections only on these ports, for firewalls
    #[arg(long, value_name = "LOW-HIGH", value_parser = parse_port_range)]
    pub(crate) data_ports: Option<RangeInclusive<u16>>,
    /// Pin strands to these CPUs in turn: `0-3,8`
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) cpus: Option<NumberList>,
    /// End after one session
    #[arg(long)]
    pub(crate) once: bool,
    /// So many sessions at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = super::whole_number::<usize, 0>)]
    pub(crate) max_sessions: usize,
    /// So many strands in a session
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = super::whole_number::<u64, 0>)]
    pub(crate) max_strands: u64,
    /// So much memory for a session
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    pub(crate) max_memory: Bytes,
    /// So long for a session
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_positive_time)]
    pub(crate) max_time: Nanos,
    /// Who this is, and who is let in
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// `net check`
#[derive(Debug, Args)]
pub(crate) struct NetCheckArgs {
    /// Profiles
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// A variable of the profiles; otherwise the environment's
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_key_value)]
    pub(crate) var: Vec<(String, String)>,
}

/// `net run`
#[derive(Debug, Args)]
pub(crate) struct NetRunArgs {
    /// The profile
    pub(crate) profile: PathBuf,
    /// A variable of the profile; otherwise the environment's
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_key_value)]
    pub(crate) var: Vec<(String, String)>,
    /// Port of the control connections
    #[arg(long, short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = super::whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// Print groups, threads, transactions, flowops and connections
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Print flowops, both sides of each and their difference
    #[arg(long, short)]
    pub(crate) flowops: bool,
    /// Print transactions with the latencies of their rounds
    #[arg(long, short)]
    pub(crate) transactions: bool,
    /// Print threads
    #[arg(long, short = 'T')]
    pub(crate) threads: bool,
    /// Print groups, what they cost both sides, and their connections
    #[arg(long, short)]
    pub(crate) groups: bool,
    /// Print what the network interfaces counted, beside what the run did
    #[arg(long, short = 'k')]
    pub(crate) netstat: bool,
    /// Print quantiles second by second, and their spread over the seconds
    #[arg(long)]
    pub(crate) nested: bool,
    /// Record nothing but counts: no latencies
    #[arg(long, short = 'n', conflicts_with_all = ["all", "flowops", "transactions", "threads", "groups", "nested"])]
    pub(crate) no_statistics: bool,
    /// How it is run and told
    #[command(flatten)]
    pub(crate) common: NetClientFlags,
}

/// What `net run` and the presets have in common
#[derive(Debug, Args)]
pub(crate) struct NetClientFlags {
    /// Between two lines of progress: `500ms`; at least 10ms
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub(crate) interval: Nanos,
    /// Write progress for programs: counts since the run began with the time of day in ms, as uperf does
    #[arg(long, short = 'R', conflicts_with = "json")]
    pub(crate) stamped: bool,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Ask the kernel for the CPU time of every flowop, which costs time itself
    #[arg(long, short = 'p')]
    pub(crate) cpu: bool,
    /// Count CPU cycles and instructions over every flowop
    #[arg(long, short = 'e')]
    pub(crate) counters: bool,
    /// Count these events over every flowop
    #[arg(long, short = 'E', value_name = "EVENT,…", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// Write every response time with its flowop's name, a line each
    #[arg(long, short = 'X', value_name = "FILE")]
    pub(crate) raw: Option<PathBuf>,
    /// Write intervals and totals as XML
    #[arg(long, short = 'x', value_name = "FILE")]
    pub(crate) xml: Option<PathBuf>,
    /// Cut transactions after this time
    #[arg(long, value_name = "TIME", value_parser = parse_positive_time)]
    pub(crate) max_duration: Option<Nanos>,
    /// How long a UDP response is waited for before it counts as lost
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_positive_time)]
    pub(crate) datagram_deadline: Nanos,
    /// How long a server may take to answer, and again to prove itself
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_positive_time)]
    pub(crate) connect_timeout: Nanos,
    /// Give strands a thread each up to so many; more are carried out by events
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = super::whole_number::<u32, 0>)]
    pub(crate) max_threads: u32,
    /// Pin strands to these CPUs in turn: `0-3,8`
    #[arg(long, value_name = "LIST", value_parser = parse_number_list)]
    pub(crate) cpus: Option<NumberList>,
    /// Where the server of a host of the profile is, if not at its name
    #[arg(long, value_name = "HOST=ADDRESS[:PORT]", value_parser = parse_key_value)]
    pub(crate) server: Vec<(String, String)>,
    /// Decides every random choice; without, drawn and told
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u64, 0>)]
    pub(crate) seed: Option<u64>,
    /// Who this is, and who is trusted
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// The presets
#[derive(Debug, Args)]
pub(crate) struct PresetArgs {
    /// Where `weighbridge net serve` runs: HOST or HOST:PORT
    pub(crate) host: String,
    /// How long messages are moved: `10`, `500ms`
    #[arg(long, short = 't', value_name = "TIME", default_value = "10s", value_parser = parse_runtime)]
    pub(crate) runtime: Duration,
    /// Sizes of messages; if not said, 64k for streams, 1470 for streams of datagrams, 90 for requests; of several each
    /// is measured
    #[arg(long, short = 'l', value_name = "SIZE,…", value_delimiter = ',')]
    pub(crate) message_sizes: Vec<BufferSize>,
    /// Sizes of responses, where they are others than the requests'
    #[arg(long, value_name = "SIZE")]
    pub(crate) response_size: Option<BufferSize>,
    /// Protocols, tcp if not said; of several each is measured
    #[arg(long, value_name = "PROTOCOL,…", value_delimiter = ',', value_parser = parse_protocol)]
    pub(crate) protocols: Vec<Protocol>,
    /// Connections at a time; of several numbers each is measured
    #[arg(long, short = 'n', value_name = "N,…", value_delimiter = ',', default_value = "1",
          value_parser = super::whole_number::<u32, 1>)]
    pub(crate) instances: Vec<u32>,
    /// Socket buffers; without, the kernel tunes them
    #[arg(long, short, value_name = "SIZE")]
    pub(crate) window: Option<BufferSize>,
    /// Give each connection a process instead of a thread
    #[arg(long)]
    pub(crate) processes: bool,
    /// Port of the control connection, where HOST names none
    #[arg(long, short = 'P', value_name = "PORT", default_value_t = wb_net::session::client::PORT,
          value_parser = super::whole_number::<u16, 0>)]
    pub(crate) port: u16,
    /// How it is run and told
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
        size.map(Self).ok_or_else(|| "it is at least 1 byte and at most 1g".to_owned())
    }
}

impl std::fmt::Display for BufferSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Bytes(self.0.into()).fmt(f)
    }
}

impl NetClientFlags {
    /// Whether events are counted over flowops.
    pub(crate) fn has_counters(&self) -> bool {
        self.counters || !self.events.is_empty()
    }
}

fn parse_port_range(text: &str) -> Result<RangeInclusive<u16>, String> {
    let range = text.split_once('-').and_then(|(low, high)| Some(low.parse().ok()?..=high.parse().ok()?));
    let range = range.filter(|range| !range.is_empty() && *range.start() > 0);
    range.ok_or_else(|| "two ports are expected: `30000-30100`".to_owned())
}

/// A number alone is seconds, as iperf3 has it.
fn parse_runtime(text: &str) -> Result<Duration, String> {
    parse_positive_time(text).map(Duration::from)
}

fn parse_positive_time(text: &str) -> Result<Nanos, String> {
    let time = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if time.0 == 0 { Err("it is no time at all".to_owned()) } else { Ok(time) }
}

fn parse_interval(text: &str) -> Result<Nanos, String> {
    let time = text.parse::<Nanos>().map_err(|error| error.to_string())?;
    if time.0 < 10_000_000 { Err("it is at least 10ms".to_owned()) } else { Ok(time) }
}

fn parse_protocol(text: &str) -> Result<Protocol, String> {
    let known = Protocol::ALL.iter().find(|protocol| protocol.name().eq_ignore_ascii_case(text));
    let aliases = [("tls", Protocol::Tls), ("unixgram", Protocol::UnixDgram)];
    let alias = aliases.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, protocol)| protocol);
    known.or(alias).copied().ok_or_else(|| {
        let names: Vec<_> = Protocol::ALL.iter().map(|protocol| protocol.name()).collect();
        format!("there are {}", names.join(", "))
    })
}
