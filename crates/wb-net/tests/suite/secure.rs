//! Tests of encrypted connections: TLS and QUIC.

use std::io::{ErrorKind, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use crate::common::link::{announced_port, connect, link, wait_for_rejected};
use crate::common::*;
use wb_net::engine::protocol::Settings;
use wb_net_profile::*;

const SECURE: [Protocol; 2] = [Protocol::Tls, Protocol::Quic];

fn each(check: impl Fn(Protocol, &Settings)) {
    for settings in both_executors() {
        for protocol in SECURE {
            check(protocol, &settings);
        }
    }
}

#[test]
fn a_stream_of_a_window_arrives() {
    each(|protocol, settings| {
        let window = Extent::Window(Duration::from_secs(1));
        let (_, client, server) = run(&profile(1, protocol, transaction(window, vec![send(65536)])), settings);
        let (sent, received) = (&client.groups[0].transactions[1], &server.groups[0].transactions[1]);
        let (sent, received) = (sent.flowops[0].bytes, received.flowops[0].bytes);
        println!(
            "{protocol:?} {} threads: {} MB/s sent, {} received",
            settings.max_threads,
            sent / 1_000_000,
            received / 1_000_000
        );
        assert!(received > 10_000_000);
    });
}

#[test]
fn a_window_is_followed_by_requests_on_the_same_connection() {
    each(|protocol, settings| {
        let mut profile = profile(2, protocol, transaction(WINDOW, vec![send(65536)]));
        profile.groups[0].transactions.insert(2, transaction(WINDOW, vec![receive(65536)]));
        profile.groups[0].transactions.insert(3, transaction(Extent::Iterations(20), vec![send(90), receive(90)]));
        let (_, client, server) = run(&profile, settings);
        assert_eq!(client.groups[0].transactions[3].rounds.count(), 40);
        assert_eq!(server.groups[0].transactions[3].rounds.count(), 40);
    });
}

#[test]
fn connections_are_opened_repeatedly() {
    each(|protocol, settings| {
        let (_, client, server) = run(&reconnecting(2, *endpoint(protocol), WINDOW), settings);
        let count = client.groups[0].transactions[0].flowops[3].count;
        println!("{protocol:?} {} threads: {count} connections in 300 ms", settings.max_threads);
        assert!(count > 20, "{count}");
        assert_eq!(server.rejected_connections, 0);
    });
}

#[test]
fn another_certificate_than_the_announced_one_is_refused() {
    for protocol in SECURE {
        let mut ends = link(&endpoint(protocol), false, |mut announcement| {
            let fingerprint = announcement.certificate.as_mut().expect("a fingerprint");
            let other = if fingerprint.starts_with('0') { "1" } else { "0" };
            fingerprint.replace_range(..1, other);
            announcement
        });
        let (connected, accepted) = connect(ends.as_mut().expect("both ends"));
        let error = connected.err().expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        let error = accepted.err().expect("it receives the alert");
        let expected = match protocol {
            Protocol::Tls => "the peer sent the TLS alert `AccessDenied`",
            _ => "the peer closed the QUIC connection: ",
        };
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn an_announcement_without_a_valid_fingerprint_is_refused() {
    let (missing, invalid) = ("the peer announced no certificate fingerprint", "the peer announced an invalid");
    for (protocol, fingerprint, expected) in
        SECURE.into_iter().flat_map(|protocol| [(protocol, None, missing), (protocol, Some("0"), invalid)])
    {
        let result = link(&endpoint(protocol), false, |mut announcement| {
            announcement.certificate = fingerprint.map(str::to_owned);
            announcement
        });
        let error = result.expect_err("it is refused");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn an_unexpected_connection_is_dropped_and_counted() {
    let mut ends = link(&endpoint(Protocol::Tls), false, |announcement| announcement).expect("both ends");
    let listener_addr = announced_port(&ends.1);
    let mut unexpected = TcpStream::connect(listener_addr).expect("it listens");
    unexpected.write_all(b"hello").expect("it is open");
    let (connected, accepted) = connect(&mut ends);
    connected.and(accepted).expect("the expected connection is established");
    wait_for_rejected(&mut ends.1, 1);
    drop(unexpected);
}

#[test]
fn other_sockets_do_not_reach_a_pair_of_sockets() {
    let mut ends = link(&endpoint(Protocol::Quic), false, |announcement| announcement).expect("both ends");
    let other = UdpSocket::bind("127.0.0.1:0").expect("a port");
    other.send_to(&[0xc0; 1200], announced_port(&ends.1)).expect("it can be sent");
    for _ in 0..5 {
        let (connected, accepted) = connect(&mut ends);
        connected.and(accepted).expect("the expected connection is established");
    }
}

#[test]
fn data_in_flight_arrives_after_the_last_send() {
    each(|protocol, settings| {
        let flowops = vec![send(1 << 20)];
        let (_, _, server) = run(&profile(2, protocol, transaction(Extent::Iterations(5), flowops)), settings);
        assert_eq!(server.groups[0].transactions[1].flowops[0].bytes, 10 << 20);
    });
}
