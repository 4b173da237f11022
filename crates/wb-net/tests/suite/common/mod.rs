//! Helpers that run both sides of a profile in one process.

#![allow(dead_code, unreachable_pub, missing_docs)] // each test binary uses its part

pub mod link;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;
use wb_net::engine::local::LocalEngine;
use wb_net::engine::protocol::{Assignment, EngineCommand, EngineProgress, HostSession, Settings, Side};
use wb_net::engine::report::EngineReport;
use wb_net::session::coordinator::{Participant, ParticipantEvent, RunObserver, RunOutcome, coordinate};
use wb_net::transport::address::HostAddress;
use wb_net::transport::cookie::SessionKey;
use wb_net::transport::data_ports::{DataPorts, PortPolicy};
use wb_net_profile::mirror::mirror;
use wb_net_profile::*;

pub const WINDOW: Extent = Extent::Window(Duration::from_millis(300));

struct NoObserver;

impl RunObserver for NoObserver {
    fn on_progress(&mut self, _: Option<&str>, _: EngineProgress) {}
    fn on_transaction(&mut self, _: usize, _: usize) {}
    fn on_latencies(&mut self, _: &[wb_net::engine::raw_log::LatencyRecord]) {}
}

pub fn endpoint(protocol: Protocol) -> Box<Endpoint> {
    Box::new(Endpoint { no_delay: true, ..Endpoint::new("there", protocol) })
}

pub fn message(size: MessageSize) -> Message {
    Message::new(size, SyscallFamily::ReadWrite)
}

pub fn send(size: u32) -> Flowop {
    Flowop::new("write", FlowopAction::Send(message(MessageSize::Fixed(size))))
}

pub fn receive(size: u32) -> Flowop {
    Flowop::new("read", FlowopAction::Receive(message(MessageSize::Fixed(size))))
}

pub fn transaction(extent: Extent, flowops: Vec<Flowop>) -> Transaction {
    Transaction { name: "Txn".to_owned(), extent, rate: None, warm_up: false, flowops }
}

/// A profile that connects, executes `middle`, and disconnects.
pub fn profile(strands: u32, protocol: Protocol, middle: Transaction) -> NetProfile {
    let once = |flowop| transaction(Extent::Iterations(1), vec![flowop]);
    let transactions = vec![
        once(Flowop::new("connect", FlowopAction::Connect(endpoint(protocol)))),
        middle,
        once(Flowop::new("disconnect", FlowopAction::Disconnect)),
    ];
    NetProfile {
        name: "test".to_owned(),
        groups: vec![Group { name: "Group0".to_owned(), strands, kind: StrandKind::Thread, transactions }],
    }
}

/// A profile that connects, exchanges a request and a response, and disconnects, repeatedly.
pub fn reconnecting(strands: u32, endpoint: Endpoint, extent: Extent) -> NetProfile {
    let protocol = endpoint.protocol;
    let flowops = vec![
        Flowop::new("connect", FlowopAction::Connect(Box::new(endpoint))),
        send(90),
        receive(90),
        Flowop::new("disconnect", FlowopAction::Disconnect),
    ];
    let mut profile = profile(strands, protocol, transaction(extent, flowops));
    profile.groups[0].transactions.remove(0);
    profile.groups[0].transactions.pop();
    profile
}

/// Two messages of random size, one in each direction.
pub fn random_messages() -> Vec<Flowop> {
    let message = || message(MessageSize::Random { min: 1, max: 1 << 20 });
    vec![Flowop::new("write", FlowopAction::Send(message())), Flowop::new("read", FlowopAction::Receive(message()))]
}

/// Settings for a thread per strand, and for an event loop.
pub fn both_executors() -> [Settings; 2] {
    [128, 0].map(|threads| Settings { max_threads: threads, ..Settings::default() })
}

pub fn mirrored(profile: &NetProfile) -> NetProfile {
    mirror(profile, "there", &|_| Vec::new())
}

pub fn run(profile: &NetProfile, settings: &Settings) -> (RunOutcome, EngineReport, EngineReport) {
    let host = HostAddress::ip(Ipv4Addr::LOCALHOST.into());
    let key = SessionKey::generate().expect("random numbers");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut outcome = runtime.block_on(async {
        let (sender, events) = unbounded_channel();
        let participants =
            [(None, Side::Client, profile.clone()), (Some("there".to_owned()), Side::Server, mirrored(profile))];
        let participants = participants.into_iter().enumerate().map(|(position, (name, side, profile))| {
            let sender = sender.clone();
            let engine = LocalEngine::start(DataPorts::new(PortPolicy::Any), move |event| {
                sender.send((position, ParticipantEvent::Event(event))).is_ok()
            });
            let engine = engine.expect("a thread");
            let strands = profile.groups.iter().map(|group| 0..group.strands).collect();
            let hosts = BTreeMap::from([("there".to_owned(), HostSession { local: host, peer: host, key })]);
            let assignment = Assignment { profile, side, strands, hosts, seed: 42, settings: settings.clone() };
            Participant { host: name, assignment, send: Box::new(move |command: EngineCommand| engine.send(command)) }
        });
        coordinate(profile, participants.collect(), events, None, std::future::pending(), &mut NoObserver).await
    });
    assert_eq!(outcome.failure, None);
    let server = outcome.reports.pop().flatten().expect("the server reports");
    let client = outcome.reports.pop().flatten().expect("the client reports");
    (outcome, client, server)
}
