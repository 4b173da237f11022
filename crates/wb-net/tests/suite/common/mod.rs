//! Both sides of a run in one process.

#![allow(dead_code, unreachable_pub, missing_docs)] // each test binary uses its part

pub mod link;

use std::{collections::BTreeMap, net::Ipv4Addr, time::Duration};

use tokio::sync::mpsc::unbounded_channel;
use wb_net::{
    engine::{
        local::LocalEngine,
        protocol::{Assignment, EngineCommand, EngineProgress, HostAddresses, Settings, Side},
        report::EngineReport,
    },
    language::*,
    session::coordinator::{Participant, ParticipantEvent, RunObserver, RunOutcome, coordinate},
    transport::address::HostAddress,
};

pub const WINDOW: Extent = Extent::Window(Duration::from_millis(300));

struct Nobody;

impl RunObserver for Nobody {
    fn on_progress(&mut self, _: Option<&str>, _: EngineProgress) {}
    fn on_transaction(&mut self, _: usize, _: usize) {}
    fn on_latencies(&mut self, _: &[wb_net::engine::raw_log::LatencyRecord]) {}
}

pub fn endpoint(protocol: Protocol) -> Box<Endpoint> {
    Box::new(Endpoint {
        remote: "there".to_owned(),
        local: None,
        protocol,
        port: None,
        window: None,
        no_delay: true,
        congestion: None,
        non_blocking: false,
        timeout: None,
        kernel_tls: false,
        sctp: SctpEndpoint::default(),
    })
}

pub fn flowop(name: &str, action: FlowopAction) -> Flowop {
    Flowop {
        name: name.to_owned(),
        action,
        connection: None,
        count: 1,
        repeat: 1,
        batch: 1,
        rate: None,
        duration: None,
        can_fail: false,
    }
}

pub fn message(size: MessageSize) -> Message {
    Message {
        size,
        remote_size: None,
        call: SyscallFamily::ReadWrite,
        timeout: None,
        non_blocking: false,
        sctp: SctpMessage::default(),
    }
}

pub fn send(size: u32) -> Flowop {
    flowop("write", FlowopAction::Send(message(MessageSize::Fixed(size))))
}

pub fn receive(size: u32) -> Flowop {
    flowop("read", FlowopAction::Receive(message(MessageSize::Fixed(size))))
}

pub fn transaction(extent: Extent, flowops: Vec<Flowop>) -> Transaction {
    Transaction { name: "Txn".to_owned(), extent, rate: None, flowops }
}

/// Connect, this, disconnect.
pub fn profile(strands: u32, protocol: Protocol, middle: Transaction) -> NetProfile {
    let once = |flowop| transaction(Extent::Iterations(1), vec![flowop]);
    let transactions = vec![
        once(flowop("connect", FlowopAction::Connect(endpoint(protocol)))),
        middle,
        once(flowop("disconnect", FlowopAction::Disconnect)),
    ];
    NetProfile {
        name: "test".to_owned(),
        groups: vec![Group { name: "Group0".to_owned(), strands, kind: StrandKind::Thread, transactions }],
    }
}

pub fn mirrored(profile: &NetProfile) -> NetProfile {
    let mut mirror = profile.clone();
    for flowop in mirror.groups.iter_mut().flat_map(|group| &mut group.transactions).flat_map(|t| &mut t.flowops) {
        flowop.action = match flowop.action.clone() {
            FlowopAction::Connect(endpoint) => FlowopAction::Accept(endpoint),
            FlowopAction::Accept(endpoint) => FlowopAction::Connect(endpoint),
            FlowopAction::Send(message) => FlowopAction::Receive(message),
            FlowopAction::Receive(message) => FlowopAction::Send(message),
            same => same,
        };
    }
    mirror
}

pub fn run(profile: &NetProfile, settings: &Settings) -> (RunOutcome, EngineReport, EngineReport) {
    run_at(profile, settings, HostAddress::Ip(Ipv4Addr::LOCALHOST.into()))
}

/// With both sides at a place.
pub fn run_at(
    profile: &NetProfile,
    settings: &Settings,
    here: HostAddress,
) -> (RunOutcome, EngineReport, EngineReport) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut ended = runtime.block_on(async {
        let (tell, events) = unbounded_channel();
        let parties =
            [(None, Side::Client, profile.clone()), (Some("there".to_owned()), Side::Server, mirrored(profile))];
        let parties = parties.into_iter().enumerate().map(|(position, (host, side, profile))| {
            let tell = tell.clone();
            let site = LocalEngine::start(move |event| tell.send((position, ParticipantEvent::Event(event))).is_ok())
                .expect("a thread");
            let strands = profile.groups.iter().map(|group| 0..group.strands).collect();
            let hosts = BTreeMap::from([("there".to_owned(), HostAddresses { local: here, peer: here })]);
            let assignment = Assignment { profile, side, strands, hosts, seed: 42, settings: settings.clone() };
            Participant { host, assignment, send: Box::new(move |order: EngineCommand| site.send(order)) }
        });
        coordinate(profile, parties.collect(), events, None, std::future::pending(), &mut Nobody).await
    });
    assert_eq!(ended.failure, None);
    let server = ended.reports.pop().flatten().expect("the server reports");
    let client = ended.reports.pop().flatten().expect("the client reports");
    (ended, client, server)
}
