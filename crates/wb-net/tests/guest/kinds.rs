//! Tests of every kind of connection that needs kernel support beyond sockets.

use std::time::Duration;

use wb_net::engine::protocol::Settings;
use wb_net::engine::report::EngineReport;
use wb_net::session::coordinator::RunOutcome;
use wb_net_profile::*;

use crate::Test;
use crate::common::*;

pub(crate) const TESTS: &[Test] = &[
    ("requests_are_answered", requests_are_answered),
    ("a_stream_of_a_window_arrives", a_stream_of_a_window_arrives),
    ("data_in_flight_at_the_end_arrives", data_in_flight_at_the_end_arrives),
    ("connections_are_opened_repeatedly", connections_are_opened_repeatedly),
];

/// Kinds of connections that need kernel support beyond sockets.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Sctp,
    KernelTls,
    Vsock,
}

impl Kind {
    fn endpoint(self) -> Endpoint {
        match self {
            Kind::Sctp => *endpoint(Protocol::Sctp),
            Kind::KernelTls => Endpoint { kernel_tls: true, ..*endpoint(Protocol::Tls) },
            Kind::Vsock => *endpoint(Protocol::Vsock),
        }
    }
}

/// Runs a check for every kind with every executor.
fn each(check: impl Fn(Kind, &Settings)) {
    for kind in [Kind::Sctp, Kind::KernelTls, Kind::Vsock] {
        for settings in both_executors() {
            println!("{kind:?}, {} threads", settings.max_threads);
            check(kind, &settings);
        }
    }
}

/// Runs a profile that connects, executes `middle`, and disconnects.
fn run_between(
    kind: Kind,
    strands: u32,
    middle: Transaction,
    settings: &Settings,
) -> (RunOutcome, EngineReport, EngineReport) {
    let endpoint = kind.endpoint();
    let mut profile = profile(strands, endpoint.protocol, middle);
    profile.groups[0].transactions[0].flowops[0].action = FlowopAction::Connect(Box::new(endpoint));
    run(&profile, settings)
}

fn requests_are_answered() {
    each(|kind, settings| {
        let flowops = vec![send(90), receive(9000)];
        let (_, client, server) = run_between(kind, 2, transaction(Extent::Iterations(100), flowops), settings);
        for report in [&client, &server] {
            assert_eq!(report.groups[0].transactions[1].rounds.count(), 200);
        }
        println!("median {} ns", client.groups[0].transactions[1].rounds.to_hdr().value_at_quantile(0.5));
    });
}

fn a_stream_of_a_window_arrives() {
    each(|kind, settings| {
        let window = Extent::Window(Duration::from_secs(1));
        let (_, client, server) = run_between(kind, 1, transaction(window, vec![send(16_384)]), settings);
        let bytes = |report: &EngineReport| report.groups[0].transactions[1].flowops[0].bytes;
        println!("{} kB sent, {} received", bytes(&client) / 1000, bytes(&server) / 1000);
        assert!(bytes(&server) > 100_000);
    });
}

fn data_in_flight_at_the_end_arrives() {
    each(|kind, settings| {
        let middle = transaction(Extent::Iterations(5), vec![send(100_000)]);
        let (_, _, server) = run_between(kind, 2, middle, settings);
        assert_eq!(server.groups[0].transactions[1].flowops[0].bytes, 1_000_000);
    });
}

fn connections_are_opened_repeatedly() {
    each(|kind, settings| {
        let (_, client, server) = run(&reconnecting(2, kind.endpoint(), Extent::Iterations(60)), settings);
        assert_eq!(client.groups[0].transactions[0].flowops[3].count, 120);
        assert_eq!(server.rejected_connections, 0);
    });
}
