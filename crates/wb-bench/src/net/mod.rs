//! The network engine against other tools and against the bare system calls, over loopback, with both ends pinned.
//!
//! *same core*: both ends on one CPU, so that every nanosecond of either counts. *cross core*: each on its own CPU.
//! Every figure is what the receiver received, or the rounds that the client counted; ours with all histograms enabled.

mod client_server;
mod connections;
mod growth;
mod peers;

use crate::bench_env::BenchEnv;
use crate::pairs::{BenchSide, PairedBenchmark};
use wb_kernels::cpus;

pub(crate) use client_server::{ClientServer, run};
pub(crate) use growth::benchmarks;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CorePlacement {
    Same,
    Cross,
}

impl CorePlacement {
    /// The CPUs of the client and of the server.
    fn cpus(self) -> Result<(usize, usize), String> {
        let allowed = cpus::allowed();
        match (self, &allowed[..]) {
            (Self::Same, [first, ..]) => Ok((*first, *first)),
            (Self::Cross, [first, second, ..]) => Ok((*first, *second)),
            (_, all) => Err(format!("{} CPUs available, 2 required for different cores", all.len())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Same => "same core",
            Self::Cross => "cross core",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopbackWorkload {
    /// Bytes per second of messages of `bytes` over `strands` connections.
    TcpStream { bytes: u32, strands: u32 },
    /// Round trips per second.
    TcpRr,
    /// Round trips per second.
    UdpRr,
    /// Received datagrams per second.
    UdpStream,
    /// Bytes per second through TLS 1.3.
    TlsStream { bytes: u32 },
    /// Opened and closed connections per second.
    Connect,
}

/// Bytes of a request and of a response.
const REQUEST: u32 = 90;

/// Bytes of a datagram that fills a frame.
const DATAGRAM: u32 = 1470;

impl LoopbackWorkload {
    fn name(self) -> String {
        match self {
            Self::TcpStream { bytes, strands } => {
                format!("tcp-stream {}k {strands} strand{}", bytes >> 10, if strands == 1 { "" } else { "s" })
            }
            Self::TcpRr => format!("tcp-rr {REQUEST}"),
            Self::UdpRr => format!("udp-rr {REQUEST}"),
            Self::UdpStream => format!("udp-stream {DATAGRAM}"),
            Self::TlsStream { bytes } => format!("tls-stream {}k", bytes >> 10),
            Self::Connect => "connect".to_owned(),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::TcpStream { .. } | Self::TlsStream { .. } => "B/s",
            Self::TcpRr | Self::UdpRr => "round trips/s",
            Self::UdpStream => "datagrams/s",
            Self::Connect => "connections/s",
        }
    }

    fn bytes(self) -> u32 {
        match self {
            Self::TcpStream { bytes, .. } | Self::TlsStream { bytes } => bytes,
            Self::TcpRr | Self::UdpRr => REQUEST,
            Self::UdpStream => DATAGRAM,
            Self::Connect => 1,
        }
    }

    fn strands(self) -> u32 {
        match self {
            Self::TcpStream { strands, .. } => strands,
            _ => 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Iperf3,
    Qperf,
    Sockperf,
    /// The same system calls in a plain loop.
    Bare,
    /// A plain loop over OpenSSL.
    OpenSsl,
    /// Our engine with `-n`, which shows the cost of recording every latency.
    NoStatistics,
}

const WORKLOADS: [(LoopbackWorkload, &[Peer]); 11] = [
    (
        LoopbackWorkload::TcpStream { bytes: 8 << 10, strands: 1 },
        &[Peer::Iperf3, Peer::Qperf, Peer::Bare, Peer::NoStatistics],
    ),
    (LoopbackWorkload::TcpStream { bytes: 8 << 10, strands: 2 }, &[Peer::Iperf3, Peer::Bare]),
    (LoopbackWorkload::TcpStream { bytes: 64 << 10, strands: 1 }, &[Peer::Iperf3, Peer::Qperf, Peer::Bare]),
    (LoopbackWorkload::TcpStream { bytes: 64 << 10, strands: 2 }, &[Peer::Iperf3, Peer::Bare]),
    (LoopbackWorkload::TcpRr, &[Peer::Qperf, Peer::Sockperf, Peer::Bare, Peer::NoStatistics]),
    (LoopbackWorkload::UdpRr, &[Peer::Qperf, Peer::Sockperf, Peer::Bare, Peer::NoStatistics]),
    (LoopbackWorkload::UdpStream, &[Peer::Iperf3, Peer::Qperf, Peer::Bare]),
    (LoopbackWorkload::TlsStream { bytes: 8 << 10 }, &[Peer::OpenSsl]),
    (LoopbackWorkload::TlsStream { bytes: 64 << 10 }, &[Peer::OpenSsl]),
    (LoopbackWorkload::Connect, &[Peer::Bare]),
    (LoopbackWorkload::TcpStream { bytes: 1 << 20, strands: 1 }, &[Peer::Iperf3, Peer::Bare]),
];

pub(crate) fn rows(env: &BenchEnv) -> Vec<PairedBenchmark<'_>> {
    let mut rows = Vec::new();
    for (load, peers) in WORKLOADS {
        for cores in [CorePlacement::Same, CorePlacement::Cross] {
            for &peer in peers {
                let name = format!("net {} {} vs {}", load.name(), cores.name(), peer.name());
                rows.push(PairedBenchmark::new(name, load.unit(), move || {
                    Ok((peers::our_side(env, load, cores)?, peer.side(env, load, cores)?))
                }));
            }
            if peers.contains(&Peer::Bare) {
                // What this machine can resolve: a difference below the width of this interval is none.
                let name = format!("net {} {} bare loop vs itself", load.name(), cores.name());
                rows.push(PairedBenchmark::new(name, load.unit(), move || {
                    Ok((Peer::Bare.side(env, load, cores)?, Peer::Bare.side(env, load, cores)?))
                }));
            }
        }
    }
    rows.extend(connections::rows(env));
    rows
}

fn client_server_side(
    env: &BenchEnv,
    name: &str,
    both: &ClientServer,
    figure: impl Fn(&serde_json::Value) -> Option<f64> + 'static,
) -> Result<BenchSide, String> {
    let command = env.client_server_command(both)?;
    Ok(BenchSide::new(name, command, move |output| figure(&serde_json::from_str(output).ok()?)))
}
