//! Tests specific to SCTP: options of an association, and its streams.

use wb_net::engine::report::EngineReport;
use wb_net_profile::*;

use crate::Test;
use crate::common::{link, *};

pub(crate) const TESTS: &[Test] = &[
    ("sctp::requests_are_answered_on_streams_with_options", requests_are_answered_on_streams_with_options),
    ("sctp::a_message_of_maximum_size_arrives_complete", a_message_of_maximum_size_arrives_complete),
    ("sctp::an_unexpected_connection_is_dropped_and_counted", an_unexpected_connection_is_dropped_and_counted),
];

fn options() -> SctpEndpoint {
    SctpEndpoint {
        rto_min: Some(200),
        rto_max: Some(2000),
        rto_initial: Some(500),
        sack_delay: Some(100),
        sack_frequency: Some(2),
        max_burst: Some(8),
        max_fragment: Some(1200),
        heartbeat: Some(5000),
        path_mtu: Some(1400),
        in_streams: Some(4),
        out_streams: Some(4),
        no_delay: true,
        encapsulation: None,
    }
}

/// A profile that connects with options, executes `middle`, and disconnects.
fn with_options(strands: u32, middle: Transaction) -> NetProfile {
    let mut profile = profile(strands, Protocol::Sctp, middle);
    let endpoint = Endpoint { sctp: options(), ..*endpoint(Protocol::Sctp) };
    profile.groups[0].transactions[0].flowops[0].action = FlowopAction::Connect(Box::new(endpoint));
    profile
}

fn sctp_message(size: u32, sctp: SctpMessage) -> Message {
    Message { sctp, ..message(MessageSize::Fixed(size)) }
}

fn requests_are_answered_on_streams_with_options() {
    for settings in both_executors() {
        let request =
            SctpMessage { stream: Some(1), unordered: false, partial: Some(PartialReliability::Lifetime(60_000)) };
        let response = SctpMessage { stream: Some(3), unordered: true, partial: None };
        let flowops = vec![
            Flowop::new("write", FlowopAction::Send(sctp_message(90, request))),
            Flowop::new("read", FlowopAction::Receive(sctp_message(900, response))),
        ];
        let (_, client, server) = run(&with_options(2, transaction(Extent::Iterations(100), flowops)), &settings);
        for report in [&client, &server] {
            assert_eq!(report.groups[0].transactions[1].rounds.count(), 200);
        }
    }
}

fn a_message_of_maximum_size_arrives_complete() {
    for settings in both_executors() {
        let middle = transaction(Extent::Iterations(20), vec![send(100_000)]);
        let (_, client, server) = run(&with_options(1, middle), &settings);
        let bytes = |report: &EngineReport| report.groups[0].transactions[1].flowops[0].bytes;
        assert_eq!((bytes(&client), bytes(&server)), (2_000_000, 2_000_000));
    }
}

fn an_unexpected_connection_is_dropped_and_counted() {
    let mut ends = link::link(&endpoint(Protocol::Sctp), false, |announcement| announcement).expect("both ends");
    let listener_addr = link::announced_port(&ends.1);
    let unexpected = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, Some(socket2::Protocol::SCTP));
    let unexpected = unexpected.expect("a socket");
    unexpected.connect(&listener_addr.into()).expect("it listens");
    unexpected.send(b"hello").expect("it is open");
    let (connected, accepted) = link::connect(&mut ends);
    connected.and(accepted).expect("the expected connection is established");
    link::wait_for_rejected(&mut ends.1, 1);
}
