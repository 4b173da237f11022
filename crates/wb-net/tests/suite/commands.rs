//! An engine receives arbitrary commands in any order, as a malicious authenticated client could send them: it may
//! refuse and fail, but must neither panic nor continue after its end.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::common::*;
use proptest::prelude::*;
use wb_net::engine::local::LocalEngine;
use wb_net::engine::protocol::{
    Assignment, ConnectionTotals, EngineCommand, HostSession, LinkAnnouncement, LinkId, Settings, Side, StrandTotals,
};
use wb_net::transport::address::{HostAddress, TransportAddress};
use wb_net::transport::cookie::SessionKey;
use wb_net::transport::data_ports::{DataPorts, PortPolicy};
use wb_net::transport::link::Announcement;
use wb_net_profile::*;

fn assignment(protocol: Protocol, threads: u32) -> Assignment {
    let middle = transaction(Extent::Window(Duration::from_millis(5)), vec![send(90), receive(90)]);
    let here = HostAddress::ip(Ipv4Addr::LOCALHOST.into());
    let key = SessionKey::generate().expect("random numbers");
    Assignment {
        profile: mirrored(&profile(2, protocol, middle)),
        side: Side::Server,
        strands: std::iter::once(0..2).collect(),
        hosts: BTreeMap::from([("there".to_owned(), HostSession { local: here, peer: here, key })]),
        seed: 1,
        settings: Settings { max_threads: threads, ..Settings::default() },
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4_u64, Just(u64::MAX), Just(1 << 31), any::<u64>()]
}

fn index() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..4_usize, 1 => Just(usize::MAX)]
}

fn totals() -> impl Strategy<Value = Vec<StrandTotals>> {
    let connection = (0..3_u32, 0..3_u32, any::<bool>(), number(), number()).prop_map(
        |(host, ordinal, datagrams, sent, received)| ConnectionTotals { host, ordinal, datagrams, sent, received },
    );
    let strand = (0..4_u32, prop::collection::vec(connection, 0..3), prop::collection::vec(0..5_u32, 0..3))
        .prop_map(|(strand, connections, opened)| StrandTotals { strand, connections, opened });
    prop::collection::vec(strand, 0..4)
}

fn links() -> impl Strategy<Value = Vec<LinkAnnouncement>> {
    let address = prop_oneof![
        Just(TransportAddress::Ip("0.0.0.0:9".parse().expect("an address"))),
        Just(TransportAddress::Ip("127.0.0.1:9".parse().expect("an address"))),
        Just(TransportAddress::Unix("nobody".to_owned())),
    ];
    let link = (index(), index(), index(), 0..3_u32, address, any::<Option<bool>>());
    let link = link.prop_map(|(group, transaction, flowop, strand, address, certificate)| LinkAnnouncement {
        link: LinkId { group, transaction, flowop },
        strand,
        announcement: Announcement {
            address,
            certificate: certificate.map(|real| if real { "ab".repeat(32) } else { String::new() }),
        },
    });
    prop::collection::vec(link, 0..4)
}

fn command() -> impl Strategy<Value = EngineCommand> {
    let protocol =
        prop::sample::select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Unix, Protocol::Tls, Protocol::Quic]);
    prop_oneof![
        2 => (protocol, 0..2_u32).prop_map(|(protocol, threads)| EngineCommand::Prepare(Box::new(assignment(protocol, threads * 8)))),
        3 => links().prop_map(EngineCommand::SetPeers),
        4 => (index(), index(), proptest::option::of(number()))
            .prop_map(|(group, transaction, limit)| EngineCommand::Run { group, transaction, limit }),
        2 => (index(), totals()).prop_map(|(group, totals)| EngineCommand::Finish { group, totals }),
        2 => (index(), totals()).prop_map(|(group, totals)| EngineCommand::Drain { group, totals }),
        1 => Just(EngineCommand::Stop),
        1 => Just(EngineCommand::Heartbeat),
        1 => Just(EngineCommand::Report),
    ]
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn commands_in_any_order_neither_panic_nor_block_an_engine() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Threads of other tests have the path of their test as name.
        let is_of_a_test = std::thread::current().name().is_some_and(|name| name.contains("::"));
        PANICS.fetch_add(usize::from(!is_of_a_test), SeqCst);
        default_hook(panic);
    }));
    let prepared_assignment = assignment(Protocol::Tcp, 8);
    proptest!(ProptestConfig::with_cases(2000), |(commands in prop::collection::vec(command(), 1..12), prepared in any::<bool>())| {
        let (sender, events) = channel();
        let engine = LocalEngine::start(DataPorts::new(PortPolicy::Any), move |event| sender.send(event).is_ok()).expect("a thread");
        if prepared {
            engine.send(EngineCommand::Prepare(Box::new(prepared_assignment.clone())));
            engine.send(EngineCommand::SetPeers(Vec::new()));
        }
        for command in &commands {
            engine.send(command.clone());
        }
        // Gives it time to start working, before the coordinator disconnects.
        let _ = events.recv_timeout(Duration::from_millis(2));
        drop(engine);
        let ended = loop {
            match events.recv_timeout(Duration::from_secs(10)) {
                Ok(_) => {}
                Err(end) => break end,
            }
        };
        prop_assert_eq!(ended, RecvTimeoutError::Disconnected, "it continues after its end");
        prop_assert_eq!(PANICS.load(SeqCst), 0, "it panicked");
    });
}
