//! A run as iperf3 3.12 reports it: [`text`] as it appears during the run, and [`json`].
//!
//! The layouts and keys are iperf3's, so that scripts which read them work; the figures are this program's. Where
//! iperf3 has a figure that is unknown here, JSON has null.

pub mod json;
mod samples;
pub mod text;
mod units;

use std::time::Duration;

use wb_net_profile::{Endpoint, Extent, FlowopAction, Group, MessageSize, NetProfile, Protocol};

pub use samples::{Interval, Samples, StreamId};
pub use units::{RateUnit, RateUnitError};

/// The side of a test whose view is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Connects.
    Client,
    /// Accepts.
    Server,
}

/// The amount of data that a test moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// As much as possible in this time.
    Time(Duration),
    /// Over all streams (`-n`).
    Bytes(u64),
    /// Over all streams (`-k`).
    Blocks(u64),
}

/// The parameters of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    pub side: Side,
    /// The other side, as the user names it.
    pub host: String,
    /// Port of the control connection: the server's for a client, the client's for a server. `None` for a server that
    /// is known only through its client.
    pub port: Option<u16>,
    pub protocol: Protocol,
    /// In the order of their numbers.
    pub streams: Vec<Stream>,
    /// Bytes per block: of a system call, or of a datagram.
    pub block_size: u32,
    /// Time before the measurement.
    pub omit: Duration,
    pub amount: Amount,
    /// Per stream, in bits per second; 0 for no limit.
    pub target_bitrate: f64,
    /// Requested size of the socket buffers in bytes; 0 for the kernel's choice.
    pub window: u32,
    /// Type of service.
    pub tos: u8,
    pub rate_unit: RateUnit,
    /// Text that the caller adds to JSON by `-T`.
    pub title: Option<String>,
    /// Further text that the caller adds to JSON.
    pub extra_data: Option<String>,
    /// Requested maximum segment size of TCP.
    pub mss: Option<u32>,
}

/// One stream of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub id: StreamId,
    /// The number in reports; iperf3 uses that of the descriptor.
    pub socket: u32,
    pub client_sends: bool,
}

impl Test {
    /// The parameters of a test that runs this profile; `None` if one of its groups does more than just send or just
    /// receive, which no test of iperf3 does.
    pub fn from_profile(profile: &NetProfile, side: Side, host: &str, port: Option<u16>) -> Option<Self> {
        let mut streams = Vec::new();
        let mut endpoint: Option<&Endpoint> = None;
        let mut block_size = 0;
        let (mut omit, mut amount, mut target_bitrate) = (Duration::ZERO, Amount::Bytes(0), 0.0);
        for (index, group) in profile.groups.iter().enumerate() {
            let window =
                group.transactions.iter().find(|transaction| transaction.moves_data() && !transaction.warm_up)?;
            let [flowop] = &window.flowops[..] else { return None };
            let (sends, message) = match &flowop.action {
                FlowopAction::Send(message) => (true, message),
                FlowopAction::Receive(message) => (false, message),
                _ => return None,
            };
            let MessageSize::Fixed(size) = message.size else { return None };
            block_size = size;
            if let Some(warm_up) = group.transactions.iter().find(|transaction| transaction.warm_up)
                && let Extent::Window(length) = warm_up.extent
            {
                omit = length;
            }
            amount = match window.extent {
                Extent::Window(length) => Amount::Time(length),
                Extent::Iterations(rounds) => {
                    let bytes = rounds.saturating_mul(size.into()).saturating_mul(flowop.count);
                    let bytes = bytes.saturating_mul(group.strands.into());
                    // Groups of one direction share an amount.
                    match amount {
                        Amount::Bytes(others) => Amount::Bytes(others.saturating_add(bytes)),
                        _ => Amount::Bytes(bytes),
                    }
                }
            };
            target_bitrate =
                window.rate.map_or(target_bitrate, |rate| rate * flowop.count as f64 * f64::from(size) * 8.0);
            endpoint = endpoint.or_else(|| endpoint_of(group));
            streams.extend((0..group.strands).map(|strand| (StreamId { group: index as u32, strand }, sends)));
        }
        let endpoint = endpoint?;
        let streams = streams.into_iter().enumerate().map(|(index, (id, sends))| Stream {
            id,
            socket: socket_number(index as u32, side),
            client_sends: sends == (side == Side::Client),
        });
        Some(Self {
            side,
            host: host.to_owned(),
            port,
            protocol: endpoint.protocol,
            streams: streams.collect(),
            block_size,
            omit,
            amount,
            target_bitrate,
            window: endpoint.window.unwrap_or(0),
            tos: endpoint.tos.unwrap_or(0),
            rate_unit: RateUnit::default(),
            title: None,
            extra_data: None,
            mss: endpoint.mss,
        })
    }

    pub fn is_bidirectional(&self) -> bool {
        self.streams.iter().any(|stream| stream.client_sends) && self.streams.iter().any(|stream| !stream.client_sends)
    }

    pub fn is_reverse(&self) -> bool {
        self.streams.iter().all(|stream| !stream.client_sends)
    }

    /// Number of streams in one direction.
    pub fn parallel(&self) -> usize {
        if self.is_bidirectional() { self.streams.len() / 2 } else { self.streams.len() }
    }

    pub fn is_udp(&self) -> bool {
        self.protocol == Protocol::Udp
    }

    pub fn sends(&self, stream: &Stream) -> bool {
        stream.client_sends == (self.side == Side::Client)
    }

    #[must_use]
    pub fn other_side(&self, host: &str) -> Self {
        let side = match self.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        let renumber =
            |(index, stream): (usize, &Stream)| Stream { socket: socket_number(index as u32, side), ..*stream };
        let streams = self.streams.iter().enumerate().map(renumber).collect();
        Self { side, host: host.to_owned(), port: None, streams, ..self.clone() }
    }
}

/// The number of a stream, as iperf3's descriptors usually have it.
fn socket_number(index: u32, side: Side) -> u32 {
    match (side, index) {
        (_, 0) => 5,
        (Side::Client, _) => 5 + 2 * index,
        (Side::Server, _) => 6 + 2 * index,
    }
}

fn split_address(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (host.trim_matches(['[', ']']), port)
}

fn endpoint_of(group: &Group) -> Option<&Endpoint> {
    group.flowops().find_map(|flowop| match &flowop.action {
        FlowopAction::Connect(endpoint) | FlowopAction::Accept(endpoint) => Some(&**endpoint),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use wb_net_profile::mirror::mirror;
    use wb_net_profile::presets::{PresetConfig, bidirec, rr, stream};

    use super::*;

    #[test]
    fn both_sides_have_the_same_test() {
        let setup = PresetConfig { instances: 2, warm_up: Some(Duration::from_secs(1)), ..PresetConfig::new("h") };
        let profile = stream(&setup, 1000);
        let client = Test::from_profile(&profile, Side::Client, "h", Some(5201)).unwrap();
        let server = mirror(&profile, "h", &|_| Vec::new());
        let server = Test::from_profile(&server, Side::Server, "client", None).unwrap();
        assert_eq!(client.other_side("client"), server);
        assert_eq!((client.omit, client.amount), (Duration::from_secs(1), Amount::Time(Duration::from_secs(10))));
        assert!(client.streams.iter().all(|stream| client.sends(stream) && !server.sends(stream)));
        assert_eq!(server.streams.iter().map(|stream| stream.socket).collect::<Vec<_>>(), [5, 8]);
    }

    #[test]
    fn other_profiles_are_no_tests() {
        let setup = PresetConfig::new("h");
        assert_eq!(Test::from_profile(&rr(&setup, 1, 1), Side::Client, "h", None), None);
        let both = Test::from_profile(&bidirec(&setup, 8), Side::Client, "h", None).unwrap();
        assert!(both.is_bidirectional() && !both.is_reverse() && both.parallel() == 1);
    }
}
