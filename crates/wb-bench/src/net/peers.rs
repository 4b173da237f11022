//! The commands of each side, and how the figure is parsed from their output.

use std::net::{Ipv4Addr, TcpListener};

use super::{ClientServer, CorePlacement, DATAGRAM, LoopbackWorkload, Peer, REQUEST, client_server_side};
use crate::bench_env::{BenchEnv, require_tool};
use crate::pairs::{BenchSide, json_figure};

const LOOP_SOURCE: &str = include_str!("../../peers/net_loop.c");
const TLS_LOOP_SOURCE: &str = include_str!("../../peers/tls_loop.c");

const TOKEN: &str = "the-token-of-a-bench-on-loopback";

pub(super) fn our_side(env: &BenchEnv, load: LoopbackWorkload, cores: CorePlacement) -> Result<BenchSide, String> {
    let (client, server) = cores.cpus()?;
    let port = free_port()?;
    let program = env.weighbridge_program()?.display().to_string();
    let bytes = load.bytes().to_string();
    let mut preset: Vec<String> = match load {
        LoopbackWorkload::TcpStream { .. } => vec!["stream".into()],
        LoopbackWorkload::TcpRr => vec!["rr".into()],
        LoopbackWorkload::UdpRr => vec!["udp-rr".into()],
        LoopbackWorkload::UdpStream => ["stream", "--protocols", "udp"].map(str::to_owned).to_vec(),
        LoopbackWorkload::TlsStream { .. } => ["stream", "--protocols", "ssl"].map(str::to_owned).to_vec(),
        LoopbackWorkload::Connect => return profile_side(env, load, cores, &[]),
    };
    preset.extend(["--message-sizes".into(), bytes, "--instances".into(), load.strands().to_string()]);
    preset.extend(["--runtime".into(), env.seconds.to_string(), format!("127.0.0.1:{port}"), "--json".into()]);
    let both = weighbridge_pair(&program, client, server, port, preset);
    client_server_side(env, "weighbridge", &both, move |results| {
        let totals = &results[0]["totals"];
        Some(match load {
            LoopbackWorkload::TcpStream { .. } | LoopbackWorkload::TlsStream { .. } => totals["throughput"].as_f64()?,
            LoopbackWorkload::UdpStream => totals["throughput"].as_f64()? / f64::from(DATAGRAM),
            LoopbackWorkload::TcpRr | LoopbackWorkload::UdpRr | LoopbackWorkload::Connect => {
                totals["rounds-per-second"].as_f64()?
            }
        })
    })
}

/// The side of our engine with a profile and additional flags, on one strand.
fn profile_side(
    env: &BenchEnv,
    load: LoopbackWorkload,
    cores: CorePlacement,
    flags: &[&str],
) -> Result<BenchSide, String> {
    let (client, server) = cores.cpus()?;
    let port = free_port()?;
    let program = env.weighbridge_program()?.display().to_string();
    let protocol = if load == LoopbackWorkload::UdpRr { "udp" } else { "tcp" };
    let nagle = if load == LoopbackWorkload::TcpRr { "tcp_nodelay" } else { "" };
    let connect = format!(r#"<flowop type="connect" options="remotehost=127.0.0.1 protocol={protocol} {nagle}"/>"#);
    let disconnect = r#"<flowop type="disconnect"/>"#;
    let write = format!(r#"<flowop type="write" options="size={}"/>"#, load.bytes());
    let flowops = match load {
        LoopbackWorkload::TcpRr | LoopbackWorkload::UdpRr => {
            format!(r#"{write}<flowop type="read" options="size={REQUEST}"/>"#)
        }
        LoopbackWorkload::Connect => format!("{connect}{disconnect}"),
        _ => write,
    };
    let measured = format!(r#"<transaction duration="{}s">{flowops}</transaction>"#, env.seconds);
    let transactions = match load {
        LoopbackWorkload::Connect => measured,
        _ => format!("<transaction>{connect}</transaction>{measured}<transaction>{disconnect}</transaction>"),
    };
    let profile = env.folder().join(format!("{}.xml", load.name()));
    let text = format!(r#"<profile name="bench"><group nthreads="1">{transactions}</group></profile>"#);
    std::fs::write(&profile, text).map_err(|error| error.to_string())?;
    let mut run = vec!["run".into(), profile.display().to_string(), "-P".into(), port.to_string(), "--json".into()];
    run.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let both = weighbridge_pair(&program, client, server, port, run);
    let name = if flags.is_empty() { "weighbridge" } else { "weighbridge -n" };
    client_server_side(env, name, &both, move |result| {
        let totals = &result["totals"];
        match load {
            LoopbackWorkload::TcpStream { .. } => totals["throughput"].as_f64(),
            _ => totals["rounds-per-second"].as_f64(),
        }
    })
}

/// Round trips over `connections`, by one client and one server that keeps running afterwards.
pub(super) fn many_connections(env: &BenchEnv, connections: u32) -> Result<ClientServer, String> {
    let (client, server) = CorePlacement::Cross.cpus()?;
    let port = free_port()?;
    let program = env.weighbridge_program()?.display().to_string();
    let (bytes, connections, seconds) = (REQUEST.to_string(), connections.to_string(), env.seconds.to_string());
    let address = format!("127.0.0.1:{port}");
    let run = ["rr", "-l", &bytes, "-n", &connections, "-t", &seconds, &address, "--json"].map(str::to_owned).to_vec();
    let mut both = weighbridge_pair(&program, client, server, port, run);
    both.server.retain(|word| word != "--once");
    Ok(both)
}

pub(super) fn weighbridge_pair(
    program: &str,
    client: usize,
    server: usize,
    port: u16,
    run: Vec<String>,
) -> ClientServer {
    let serve = ["net", "serve", "--once", "--port"].map(str::to_owned).into_iter().chain([port.to_string()]);
    ClientServer {
        server: pin_command(server, program, serve.collect()),
        client: pin_command(client, program, std::iter::once("net".to_owned()).chain(run).collect()),
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
            Self::NoStatistics => "weighbridge -n",
        }
    }

    pub(super) fn side(
        self,
        env: &BenchEnv,
        load: LoopbackWorkload,
        cores: CorePlacement,
    ) -> Result<BenchSide, String> {
        match self {
            Self::Iperf3 => iperf3_side(env, load, cores),
            Self::Qperf => qperf_side(env, load, cores),
            Self::Sockperf => sockperf_side(env, load, cores),
            Self::Bare => bare_side(env, load, cores),
            Self::OpenSsl => openssl_side(env, load, cores),
            Self::NoStatistics => profile_side(env, load, cores, &["-n"]),
        }
    }
}

fn iperf3_side(env: &BenchEnv, load: LoopbackWorkload, cores: CorePlacement) -> Result<BenchSide, String> {
    require_tool("iperf3")?;
    let (client, server) = cores.cpus()?;
    let port = free_port()?;
    let (port_arg, seconds) = (port.to_string(), env.seconds.ceil().to_string());
    let (bytes, strands) = (load.bytes().to_string(), load.strands().to_string());
    let mut run: Vec<String> = ["-c", "127.0.0.1", "-p", &port_arg, "-t", &seconds, "-l", &bytes, "-P", &strands, "-J"]
        .map(str::to_owned)
        .to_vec();
    if load == LoopbackWorkload::UdpStream {
        run.extend(["-u", "-b", "0"].map(str::to_owned));
    }
    let both = ClientServer {
        server: pin_command(server, "iperf3", ["-s", "-1", "-p", &port_arg].map(str::to_owned).to_vec()),
        client: pin_command(client, "iperf3", run),
        port,
        env: Vec::new(),
    };
    client_server_side(env, "iperf3", &both, move |result| {
        let end = &result["end"];
        if load == LoopbackWorkload::UdpStream {
            let sum = &end["sum"];
            let received = sum["packets"].as_f64()? - sum["lost_packets"].as_f64()?;
            return Some(received / sum["seconds"].as_f64()?);
        }
        Some(end["sum_received"]["bits_per_second"].as_f64()? / 8.0)
    })
}

fn qperf_side(env: &BenchEnv, load: LoopbackWorkload, cores: CorePlacement) -> Result<BenchSide, String> {
    require_tool("qperf")?;
    let (client, server) = cores.cpus()?;
    let port = free_port()?;
    let (port_arg, bytes) = (port.to_string(), load.bytes().to_string());
    let seconds = env.seconds.ceil().to_string();
    let test = match load {
        LoopbackWorkload::TcpStream { .. } => "tcp_bw",
        LoopbackWorkload::TcpRr => "tcp_lat",
        LoopbackWorkload::UdpRr => "udp_lat",
        LoopbackWorkload::UdpStream => "udp_bw",
        _ => return Err("unsupported workload for qperf".to_owned()),
    };
    let run = ["127.0.0.1", "-lp", &port_arg, "-t", &seconds, "-m", &bytes, "-uu", test].map(str::to_owned).to_vec();
    let both = ClientServer {
        server: pin_command(server, "qperf", ["-lp", &port_arg].map(str::to_owned).to_vec()),
        client: pin_command(client, "qperf", run),
        port,
        env: Vec::new(),
    };
    let command = env.client_server_command(&both)?;
    Ok(BenchSide::new("qperf", command, move |output| {
        // `recv_bw = 1,234 bytes/sec` for datagrams, `bw = …` for streams, `latency = 5,100 ns` one way.
        let value = |key: &str| {
            let line = output.lines().map(str::trim).find(|line| line.split_whitespace().next() == Some(key))?;
            let figure = line.split_once('=')?.1.split_whitespace().next()?.replace(',', "");
            figure.parse::<f64>().ok()
        };
        match load {
            LoopbackWorkload::TcpStream { .. } => value("bw"),
            LoopbackWorkload::UdpStream => Some(value("recv_bw")? / f64::from(DATAGRAM)),
            _ => Some(0.5e9 / value("latency")?),
        }
    }))
}

fn sockperf_side(env: &BenchEnv, load: LoopbackWorkload, cores: CorePlacement) -> Result<BenchSide, String> {
    require_tool("sockperf")?;
    let (client, server) = cores.cpus()?;
    let port = free_port()?;
    let (port_arg, bytes, seconds) = (port.to_string(), REQUEST.to_string(), env.seconds.ceil().to_string());
    let protocol: &[&str] = if load == LoopbackWorkload::TcpRr { &["--tcp"] } else { &[] };
    let arguments = |mode: &str, more: &[&str]| {
        let all = [mode, "-i", "127.0.0.1", "-p", &port_arg]
            .into_iter()
            .chain(protocol.iter().copied())
            .chain(more.iter().copied());
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let both = ClientServer {
        server: pin_command(server, "sockperf", arguments("server", &[])),
        client: pin_command(client, "sockperf", arguments("ping-pong", &["-t", &seconds, "-m", &bytes, "--full-rtt"])),
        port,
        env: Vec::new(),
    };
    Ok(BenchSide::new("sockperf", env.client_server_command(&both)?, |output| {
        let microseconds = output.split_once("Summary: Round trip is ")?.1;
        Some(1e6 / microseconds.split_whitespace().next()?.parse::<f64>().ok()?)
    }))
}

fn bare_side(env: &BenchEnv, load: LoopbackWorkload, cores: CorePlacement) -> Result<BenchSide, String> {
    let (client, server) = cores.cpus()?;
    let program = env.compile("net_loop", LOOP_SOURCE, &["-O2", "-pthread"].map(str::to_owned))?;
    let mode = match load {
        LoopbackWorkload::TcpStream { .. } => "tcp-stream",
        LoopbackWorkload::TcpRr => "tcp-rr",
        LoopbackWorkload::UdpRr => "udp-rr",
        LoopbackWorkload::UdpStream => "udp-stream",
        LoopbackWorkload::Connect => "connect",
        LoopbackWorkload::TlsStream { .. } => return Err("the bare loop does not support TLS".to_owned()),
    };
    let figures = [load.bytes().to_string(), env.seconds.to_string(), load.strands().to_string()];
    let command = [program.display().to_string(), mode.to_owned()].into_iter().chain(figures);
    let command = command.chain([client.to_string(), server.to_string()]).collect();
    Ok(BenchSide::new("bare loop", command, json_figure("figure")))
}

fn openssl_side(env: &BenchEnv, load: LoopbackWorkload, cores: CorePlacement) -> Result<BenchSide, String> {
    let (client, server) = cores.cpus()?;
    let flags = ["-O2", "-Wl,--no-as-needed", "-lssl", "-lcrypto"].map(str::to_owned);
    let program = env.compile("tls_loop", TLS_LOOP_SOURCE, &flags)?;
    let figures = [load.bytes().to_string(), env.seconds.to_string(), client.to_string(), server.to_string()];
    let command = std::iter::once(program.display().to_string()).chain(figures).collect();
    Ok(BenchSide::new("openssl loop", command, json_figure("figure")))
}

pub(super) fn pin_command(cpu: usize, program: &str, arguments: Vec<String>) -> Vec<String> {
    ["taskset".to_owned(), "-c".to_owned(), cpu.to_string(), program.to_owned()].into_iter().chain(arguments).collect()
}

pub(super) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| error.to_string())
}
