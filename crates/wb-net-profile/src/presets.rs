//! Preset workloads for users who do not want to write a profile.
//!
//! Each opens its connections, moves messages for a window of time, and closes them.

use std::time::Duration;

use crate::{
    Endpoint, Extent, Flowop, FlowopAction, Group, MAX_UDP_PAYLOAD, Message, MessageSize, NetProfile, Protocol,
    SctpEndpoint, StrandKind, SyscallFamily, Transaction,
};

/// Datagrams that the kernel segments at once (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: u32 = 64;

/// Options that all presets share. `mss`, `tos`, `pacing` and `user_timeout` are those of [`Endpoint`].
#[derive(Debug, Clone, PartialEq)]
pub struct PresetConfig {
    pub host: String,
    /// The local address of connections; `None` for the one that the kernel selects.
    pub local: Option<String>,
    pub protocol: Protocol,
    /// Number of connections, each with a strand of its own; at least 1.
    pub instances: u32,
    pub kind: StrandKind,
    /// Duration of the data phase.
    pub runtime: Duration,
    /// Sends small messages immediately; by default only in presets that wait for responses.
    pub no_delay: Option<bool>,
    /// Socket buffer size in bytes; `None` for the kernel's automatic tuning.
    pub window: Option<u32>,
    /// Rounds per second of each strand; `None` for as many as possible.
    pub rate: Option<f64>,
    /// How long messages move before the data phase, over the same connections; no effect if each round opens its own.
    pub warm_up: Option<Duration>,
    /// TCP congestion control algorithm; `None` for the system's default.
    pub congestion: Option<String>,
    pub mss: Option<u32>,
    pub tos: Option<u8>,
    /// Whether streams of UDP use segmentation offload.
    pub gso: bool,
    /// Port of the first connection's own end; the connections that follow have the next ones.
    pub local_port: Option<u16>,
    pub pacing: Option<u64>,
    pub user_timeout: Option<Duration>,
    pub dont_fragment: bool,
}

impl PresetConfig {
    /// One TCP connection of a thread to `host`, for ten seconds.
    pub fn new(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            local: None,
            protocol: Protocol::Tcp,
            instances: 1,
            kind: StrandKind::Thread,
            runtime: Duration::from_secs(10),
            no_delay: None,
            window: None,
            rate: None,
            warm_up: None,
            congestion: None,
            mss: None,
            tos: None,
            gso: false,
            local_port: None,
            pacing: None,
            user_timeout: None,
            dont_fragment: false,
        }
    }

    fn connect(&self, no_delay: bool) -> Flowop {
        let no_delay = self.no_delay.unwrap_or(no_delay);
        let endpoint = Endpoint {
            local: self.local.clone(),
            window: self.window,
            no_delay,
            congestion: self.congestion.clone(),
            mss: self.mss,
            tos: self.tos,
            gso: self.gso,
            local_port: self.local_port,
            pacing: self.pacing,
            user_timeout: self.user_timeout,
            dont_fragment: self.dont_fragment,
            sctp: SctpEndpoint { no_delay, ..SctpEndpoint::default() },
            ..Endpoint::new(&self.host, self.protocol)
        };
        Flowop::new("connect", FlowopAction::Connect(Box::new(endpoint)))
    }

    /// With segmentation offload, as many datagrams as the kernel segments at once.
    fn batch(&self, flowop: Flowop, size: u32) -> Flowop {
        if !self.gso {
            return flowop;
        }
        let batch = segments(size);
        Flowop { count: batch.into(), batch, ..flowop }
    }

    /// A group that connects, repeats `messages` for the runtime, and disconnects.
    fn connected_group(&self, name: &str, no_delay: bool, messages: Vec<Flowop>) -> Group {
        let once = Extent::Iterations(1);
        let connect = (once, vec![self.connect(no_delay)]);
        let disconnect = (once, vec![Flowop::new("disconnect", FlowopAction::Disconnect)]);
        self.group(name, std::iter::once(connect).chain(self.windows(messages)).chain([disconnect]))
    }

    /// The same flowops for the warm-up, if there is one, and for the runtime.
    fn windows(&self, flowops: Vec<Flowop>) -> impl Iterator<Item = (Extent, Vec<Flowop>)> {
        let warm_up = self.warm_up.map(|warm_up| (Extent::Window(warm_up), flowops.clone()));
        warm_up.into_iter().chain([(Extent::Window(self.runtime), flowops)])
    }

    fn group(&self, name: &str, parts: impl IntoIterator<Item = (Extent, Vec<Flowop>)>) -> Group {
        let parts: Vec<_> = parts.into_iter().collect();
        let is_window = |(extent, _): &(Extent, Vec<Flowop>)| matches!(extent, Extent::Window(_));
        let mut warm_ups = parts.iter().filter(|part| is_window(part)).count().saturating_sub(1);
        let transactions = parts.into_iter().enumerate().map(|(index, (extent, flowops))| {
            let is_window = matches!(extent, Extent::Window(_));
            Transaction {
                name: format!("Txn{index}"),
                rate: self.rate.filter(|_| is_window),
                warm_up: is_window && std::mem::replace(&mut warm_ups, 0) > 0,
                extent,
                flowops,
            }
        });
        Group {
            name: name.to_owned(),
            strands: self.instances.max(1),
            kind: self.kind,
            transactions: transactions.collect(),
        }
    }
}

/// Number of datagrams of a size that segmentation offload moves with one system call: a round of the preset.
pub fn segments(size: u32) -> u32 {
    (MAX_UDP_PAYLOAD / size.max(1)).clamp(1, MAX_SEGMENTS)
}

/// Bulk transfer to the host: measures throughput.
pub fn stream(setup: &PresetConfig, size: u32) -> NetProfile {
    profile("stream", vec![setup.connected_group("stream", false, vec![setup.batch(send(size), size)])])
}

/// Bulk transfer from the host: [`stream`] in the other direction.
pub fn maerts(setup: &PresetConfig, size: u32) -> NetProfile {
    profile("maerts", vec![setup.connected_group("maerts", false, vec![setup.batch(receive(size), size)])])
}

/// Bulk transfer in both directions at once, each with `instances` connections of its own.
pub fn bidirec(setup: &PresetConfig, size: u32) -> NetProfile {
    let outgoing = setup.connected_group("stream", false, vec![setup.batch(send(size), size)]);
    let incoming = setup.connected_group("maerts", false, vec![setup.batch(receive(size), size)]);
    profile("bidirec", vec![outgoing, incoming])
}

/// Alternating request and response on an open connection: measures the duration of a round trip.
pub fn rr(setup: &PresetConfig, request: u32, response: u32) -> NetProfile {
    profile("rr", vec![setup.connected_group("rr", true, vec![send(request), receive(response)])])
}

/// A connection for every request and response: measures the rate of opening and closing.
pub fn crr(setup: &PresetConfig, request: u32, response: u32) -> NetProfile {
    let round = vec![
        setup.connect(true),
        send(request),
        receive(response),
        Flowop::new("disconnect", FlowopAction::Disconnect),
    ];
    profile("crr", vec![setup.group("crr", [(Extent::Window(setup.runtime), round)])])
}

/// A connection in every round, without a message: measures the rate of handshakes.
pub fn handshakes(setup: &PresetConfig) -> NetProfile {
    let round = vec![setup.connect(true), Flowop::new("disconnect", FlowopAction::Disconnect)];
    profile("handshakes", vec![setup.group("handshakes", [(Extent::Window(setup.runtime), round)])])
}

/// [`rr`] over UDP, whatever the protocol of `setup`.
pub fn udp_rr(setup: &PresetConfig, request: u32, response: u32) -> NetProfile {
    let setup = PresetConfig { protocol: Protocol::Udp, no_delay: Some(false), ..setup.clone() };
    profile("udp-rr", vec![setup.connected_group("udp-rr", false, vec![send(request), receive(response)])])
}

fn profile(name: &str, groups: Vec<Group>) -> NetProfile {
    NetProfile { name: name.to_owned(), groups }
}

fn send(size: u32) -> Flowop {
    Flowop::new("write", FlowopAction::Send(message(size)))
}

fn receive(size: u32) -> Flowop {
    Flowop::new("read", FlowopAction::Receive(message(size)))
}

fn message(size: u32) -> Message {
    Message::new(MessageSize::Fixed(size.max(1)), SyscallFamily::ReadWrite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::mirror;

    fn names(group: &Group) -> Vec<&str> {
        group
            .transactions
            .iter()
            .flat_map(|transaction| &transaction.flowops)
            .map(|flowop| flowop.name.as_str())
            .collect()
    }

    #[test]
    fn a_stream_is_the_other_sides_maerts() {
        let setup = PresetConfig::new("h");
        let other = mirror(&stream(&setup, 8192), "h", &|_| Vec::new());
        assert_eq!(names(&other.groups[0]), ["accept", "read", "disconnect"]);
        assert_eq!(names(&maerts(&setup, 8192).groups[0]), ["connect", "read", "disconnect"]);
    }

    #[test]
    fn both_directions_have_the_same_number_of_strands() {
        let both = bidirec(&PresetConfig { instances: 4, ..PresetConfig::new("h") }, 1024);
        assert_eq!(both.groups.iter().map(|group| group.strands).collect::<Vec<_>>(), [4, 4]);
    }

    #[test]
    fn only_presets_that_wait_for_responses_set_no_delay() {
        let no_delay = |profile: NetProfile| match &profile.groups[0].transactions[0].flowops[0].action {
            FlowopAction::Connect(endpoint) => endpoint.no_delay,
            other => panic!("expected a connect: {other:?}"),
        };
        let setup = PresetConfig::new("h");
        assert!(no_delay(rr(&setup, 1, 1)) && no_delay(crr(&setup, 1, 1)));
        assert!(!no_delay(stream(&setup, 1)) && !no_delay(udp_rr(&setup, 1, 1)));
        assert!(!no_delay(rr(&PresetConfig { no_delay: Some(false), ..setup }, 1, 1)));
    }

    #[test]
    fn each_round_of_crr_has_a_connection_of_its_own() {
        let crr = crr(&PresetConfig::new("h"), 64, 1024);
        assert_eq!(crr.groups[0].transactions.len(), 1);
        assert_eq!(names(&crr.groups[0]), ["connect", "write", "read", "disconnect"]);
    }
}
