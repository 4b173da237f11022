//! The commands of each side, and where their figure stands in what they print.

use std::net::{Ipv4Addr, TcpListener};

use super::{Both, Cores, DATAGRAM, Load, Peer, REQUEST, side};
use crate::{
    pairs::{Side, json},
    place::{Place, tool},
};

const LOOP: &str = include_str!("../../peers/net_loop.c");
const TLS_LOOP: &str = include_str!("../../peers/tls_loop.c");

/// Known to both of our ends; nobody else is on this loopback.
const TOKEN: &str = "the-token-of-a-bench-on-loopback";

/// Our engine.
pub(super) fn ours(place: &Place, load: Load, cores: Cores) -> Result<Side, String> {
    let (client, server) = cores.pick()?;
    let port = free_port()?;
    let program = place.weighbridge()?.display().to_string();
    let bytes = load.bytes().to_string();
    let mut preset: Vec<String> = match load {
        Load::TcpStream { .. } => vec!["stream".into()],
        Load::TcpRr => vec!["rr".into()],
        Load::UdpRr => vec!["udp-rr".into()],
        Load::UdpStream => ["stream", "--protocols", "udp"].map(str::to_owned).to_vec(),
        Load::TlsStream { .. } => ["stream", "--protocols", "ssl"].map(str::to_owned).to_vec(),
        Load::Connect => return profiled(place, load, cores, &[]),
    };
    preset.extend(["--message-sizes".into(), bytes, "--instances".into(), load.strands().to_string()]);
    preset.extend(["--runtime".into(), place.seconds.to_string(), format!("127.0.0.1:{port}"), "--json".into()]);
    let both = both(&program, client, server, port, preset);
    side(place, "weighbridge", &both, move |printed| {
        let totals = &printed[0]["totals"];
        Some(match load {
            Load::TcpStream { .. } | Load::TlsStream { .. } => totals["throughput"].as_f64()?,
            Load::UdpStream => totals["throughput"].as_f64()? / f64::from(DATAGRAM),
            Load::TcpRr | Load::UdpRr | Load::Connect => totals["rounds-per-second"].as_f64()?,
        })
    })
}

/// Our engine with a profile and more flags than presets have, one strand.
fn profiled(place: &Place, load: Load, cores: Cores, flags: &[&str]) -> Result<Side, String> {
    let (client, server) = cores.pick()?;
    let port = free_port()?;
    let program = place.weighbridge()?.display().to_string();
    let protocol = if load == Load::UdpRr { "udp" } else { "tcp" };
    let nagle = if load == Load::TcpRr { "tcp_nodelay" } else { "" };
    let connect = format!(r#"<flowop type="connect" options="remotehost=127.0.0.1 protocol={protocol} {nagle}"/>"#);
    let disconnect = r#"<flowop type="disconnect"/>"#;
    let write = format!(r#"<flowop type="write" options="size={}"/>"#, load.bytes());
    let flowops = match load {
        Load::TcpRr | Load::UdpRr => format!(r#"{write}<flowop type="read" options="size={REQUEST}"/>"#),
        Load::Connect => format!("{connect}{disconnect}"),
        _ => write,
    };
    let middle = format!(r#"<transaction duration="{}s">{flowops}</transaction>"#, place.seconds);
    let transactions = match load {
        Load::Connect => middle,
        _ => format!("<transaction>{connect}</transaction>{middle}<transaction>{disconnect}</transaction>"),
    };
    let profile = place.folder().join(format!("{}.xml", load.name()));
    let text = format!(r#"<profile name="bench"><group nthreads="1">{transactions}</group></profile>"#);
    std::fs::write(&profile, text).map_err(|error| error.to_string())?;
    let mut run = vec!["run".into(), profile.display().to_string(), "-P".into(), port.to_string(), "--json".into()];
    run.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let both = both(&program, client, server, port, run);
    let name = if flags.is_empty() { "weighbridge" } else { "weighbridge -n" };
    side(place, name, &both, move |printed| {
        let totals = &printed["totals"];
        match load {
            Load::TcpStream { .. } => totals["throughput"].as_f64(),
            _ => totals["rounds-per-second"].as_f64(),
        }
    })
}

/// Round trips over so many connections, by one client and one server that goes on afterwards.
pub(super) fn many(place: &Place, connections: u32) -> Result<Both, String> {
    let (client, server) = Cores::Cross.pick()?;
    let port = free_port()?;
    let program = place.weighbridge()?.display().to_string();
    let (bytes, connections, seconds) = (REQUEST.to_string(), connections.to_string(), place.seconds.to_string());
    let at = format!("127.0.0.1:{port}");
    let run = ["rr", "-l", &bytes, "-n", &connections, "-t", &seconds, &at, "--json"].map(str::to_owned).to_vec();
    let mut both = both(&program, client, server, port, run);
    both.server.retain(|word| word != "--once");
    Ok(both)
}

fn both(program: &str, client: usize, server: usize, port: u16, run: Vec<String>) -> Both {
    let serve = ["net", "serve", "--once", "--port"].map(str::to_owned).into_iter().chain([port.to_string()]);
    Both {
        server: pinned(server, program, serve.collect()),
        client: pinned(client, program, std::iter::once("net".to_owned()).chain(run).collect()),
        port,
        env: vec![("WEIGHBRIDGE_NET_TOKEN".into(), TOKEN.into())],
    }
}

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Qperf => "qperf",
            Self::Sockperf => "sockperf",
            Self::Bare => "bare loop",
            Self::OpenSsl => "openssl loop",
            Self::Unrecorded => "itself with -n",
        }
    }

    pub(super) fn side(self, place: &Place, load: Load, cores: Cores) -> Result<Side, String> {
        match self {
            Self::Iperf3 => iperf3(place, load, cores),
            Self::Qperf => qperf(place, load, cores),
            Self::Sockperf => sockperf(place, load, cores),
            Self::Bare => bare(place, load, cores),
            Self::OpenSsl => openssl(place, load, cores),
            Self::Unrecorded => profiled(place, load, cores, &["-n"]),
        }
    }
}

fn iperf3(place: &Place, load: Load, cores: Cores) -> Result<Side, String> {
    tool("iperf3")?;
    let (client, server) = cores.pick()?;
    let port = free_port()?;
    let (at, seconds) = (port.to_string(), place.seconds.ceil().to_string());
    let (bytes, strands) = (load.bytes().to_string(), load.strands().to_string());
    let mut run: Vec<String> =
        ["-c", "127.0.0.1", "-p", &at, "-t", &seconds, "-l", &bytes, "-P", &strands, "-J"].map(str::to_owned).to_vec();
    if load == Load::UdpStream {
        run.extend(["-u", "-b", "0"].map(str::to_owned));
    }
    let both = Both {
        server: pinned(server, "iperf3", ["-s", "-1", "-p", &at].map(str::to_owned).to_vec()),
        client: pinned(client, "iperf3", run),
        port,
        env: Vec::new(),
    };
    side(place, "iperf3", &both, move |printed| {
        let end = &printed["end"];
        if load == Load::UdpStream {
            let sum = &end["sum"];
            let received = sum["packets"].as_f64()? - sum["lost_packets"].as_f64()?;
            return Some(received / sum["seconds"].as_f64()?);
        }
        Some(end["sum_received"]["bits_per_second"].as_f64()? / 8.0)
    })
}

fn qperf(place: &Place, load: Load, cores: Cores) -> Result<Side, String> {
    tool("qperf")?;
    let (client, server) = cores.pick()?;
    let port = free_port()?;
    let (at, bytes) = (port.to_string(), load.bytes().to_string());
    let seconds = place.seconds.ceil().to_string();
    let test = match load {
        Load::TcpStream { .. } => "tcp_bw",
        Load::TcpRr => "tcp_lat",
        Load::UdpRr => "udp_lat",
        Load::UdpStream => "udp_bw",
        _ => return Err("qperf has no such test".to_owned()),
    };
    let run = ["127.0.0.1", "-lp", &at, "-t", &seconds, "-m", &bytes, "-uu", test].map(str::to_owned).to_vec();
    let both = Both {
        server: pinned(server, "qperf", ["-lp", &at].map(str::to_owned).to_vec()),
        client: pinned(client, "qperf", run),
        port,
        env: Vec::new(),
    };
    let command = place.both(&both)?;
    Ok(Side::new("qperf", command, move |printed| {
        // `recv_bw = 1,234 bytes/sec` for datagrams, `bw = …` for streams, `latency = 5,100 ns` one way.
        let value = |key: &str| {
            let line = printed.lines().map(str::trim).find(|line| line.split_whitespace().next() == Some(key))?;
            let figure = line.split_once('=')?.1.split_whitespace().next()?.replace(',', "");
            figure.parse::<f64>().ok()
        };
        match load {
            Load::TcpStream { .. } => value("bw"),
            Load::UdpStream => Some(value("recv_bw")? / f64::from(DATAGRAM)),
            _ => Some(0.5e9 / value("latency")?),
        }
    }))
}

fn sockperf(place: &Place, load: Load, cores: Cores) -> Result<Side, String> {
    tool("sockperf")?;
    let (client, server) = cores.pick()?;
    let port = free_port()?;
    let (at, bytes, seconds) = (port.to_string(), REQUEST.to_string(), place.seconds.ceil().to_string());
    let tcp: &[&str] = if load == Load::TcpRr { &["--tcp"] } else { &[] };
    let words = |mode: &str, more: &[&str]| {
        let all =
            [mode, "-i", "127.0.0.1", "-p", &at].into_iter().chain(tcp.iter().copied()).chain(more.iter().copied());
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let both = Both {
        server: pinned(server, "sockperf", words("server", &[])),
        client: pinned(client, "sockperf", words("ping-pong", &["-t", &seconds, "-m", &bytes, "--full-rtt"])),
        port,
        env: Vec::new(),
    };
    Ok(Side::new("sockperf", place.both(&both)?, |printed| {
        let after = printed.split_once("Summary: Round trip is ")?.1;
        Some(1e6 / after.split_whitespace().next()?.parse::<f64>().ok()?)
    }))
}

fn bare(place: &Place, load: Load, cores: Cores) -> Result<Side, String> {
    let (client, server) = cores.pick()?;
    let program = place.compile("net_loop", LOOP, &["-O2", "-pthread"].map(str::to_owned))?;
    let mode = match load {
        Load::TcpStream { .. } => "tcp-stream",
        Load::TcpRr => "tcp-rr",
        Load::UdpRr => "udp-rr",
        Load::UdpStream => "udp-stream",
        Load::Connect => "connect",
        Load::TlsStream { .. } => return Err("the bare loop knows no TLS".to_owned()),
    };
    let figures = [load.bytes().to_string(), place.seconds.to_string(), load.strands().to_string()];
    let command = [program.display().to_string(), mode.to_owned()].into_iter().chain(figures);
    let command = command.chain([client.to_string(), server.to_string()]).collect();
    Ok(Side::new("bare loop", command, json("figure")))
}

fn openssl(place: &Place, load: Load, cores: Cores) -> Result<Side, String> {
    let (client, server) = cores.pick()?;
    let flags = ["-O2", "-Wl,--no-as-needed", "-lssl", "-lcrypto"].map(str::to_owned);
    let program = place.compile("tls_loop", TLS_LOOP, &flags)?;
    let figures = [load.bytes().to_string(), place.seconds.to_string(), client.to_string(), server.to_string()];
    let command = std::iter::once(program.display().to_string()).chain(figures).collect();
    Ok(Side::new("openssl loop", command, json("figure")))
}

/// On one CPU, whatever the program does itself.
fn pinned(cpu: usize, program: &str, arguments: Vec<String>) -> Vec<String> {
    ["taskset".to_owned(), "-c".to_owned(), cpu.to_string(), program.to_owned()].into_iter().chain(arguments).collect()
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| error.to_string())
}
