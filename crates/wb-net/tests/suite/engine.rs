//! Tests with both sides of a run in one process: bytes, counters and latencies.

use crate::common::*;
use wb_net::engine::report::EngineReport;
use wb_net::language::*;

#[test]
fn a_stream_of_a_window_arrives() {
    for settings in both_executors() {
        let (_, client, server) = run(&profile(2, Protocol::Tcp, transaction(WINDOW, vec![send(8192)])), &settings);
        let (sent, received) = (&client.groups[0].transactions[1], &server.groups[0].transactions[1]);
        let (sent, received) = (&sent.flowops[0], &received.flowops[0]);
        println!(
            "{} GB/s sent, {} received, {:?}",
            sent.bytes as f64 / 3e8,
            received.bytes as f64 / 3e8,
            server.executor
        );
        assert!(sent.count > 100 && received.count > 100);
        assert_eq!(sent.count, sent.service.count());
        assert_eq!(client.groups[0].transactions[1].ended - client.groups[0].transactions[1].began, 300_000_000);
    }
}

#[test]
fn requests_are_answered_over_every_protocol() {
    let protocols = [Protocol::Tcp, Protocol::Udp, Protocol::Unix, Protocol::UnixDgram, Protocol::Tls, Protocol::Quic];
    for settings in both_executors() {
        let threads = settings.max_threads;
        for protocol in protocols {
            let profile = profile(3, protocol, transaction(Extent::Iterations(200), vec![send(90), receive(90)]));
            let (_, client, server) = run(&profile, &settings);
            for report in [&client, &server] {
                let transaction = &report.groups[0].transactions[1];
                assert_eq!(transaction.rounds.count(), 600, "{protocol:?} {threads}");
                assert_eq!(transaction.flowops.iter().map(|flowop| flowop.count).collect::<Vec<_>>(), [600, 600]);
            }
            let rounds = &client.groups[0].transactions[1].rounds;
            println!("{protocol:?} {threads}: median {} ns", rounds.to_hdr().value_at_quantile(0.5));
        }
    }
}

#[test]
fn datagrams_are_sent_in_batches_and_counted_individually() {
    for settings in both_executors() {
        let threads = settings.max_threads;
        for (protocol, size) in [(Protocol::Udp, 64), (Protocol::UnixDgram, 64), (Protocol::Udp, 4)] {
            // More than one system call sends, and a remainder.
            let batched = Flowop { count: 150, batch: 100, ..send(size) };
            let (outcome, client, server) =
                run(&profile(2, protocol, transaction(Extent::Iterations(10), vec![batched])), &settings);
            let (sent, received) = (&client.groups[0].transactions[1], &server.groups[0].transactions[1]);
            assert_eq!((sent.flowops[0].count, sent.flowops[0].bytes), (3000, 3000 * u64::from(size)), "{protocol:?}");
            let datagrams = outcome.datagrams[0];
            println!("{protocol:?} {threads}: {} of {} arrived", datagrams.server_received, datagrams.client_sent);
            assert_eq!(datagrams.client_sent, 3000);
            assert!(datagrams.server_received <= 3000 && received.flowops[0].count <= datagrams.server_received);
            assert!(received.flowops[0].count > 0);
        }
    }
}

#[test]
fn a_window_that_ends_during_a_connection_loses_no_datagram() {
    for settings in both_executors() {
        let (outcome, ..) = run(&reconnecting(4, *endpoint(Protocol::Udp), WINDOW), &settings);
        let datagrams = outcome.datagrams[0];
        assert!(datagrams.client_sent > 100, "{datagrams:?}");
        assert_eq!(
            (datagrams.client_sent, datagrams.server_sent),
            (datagrams.server_received, datagrams.client_received),
            "{} threads",
            settings.max_threads
        );
    }
}

#[test]
fn connections_are_opened_repeatedly() {
    for settings in both_executors() {
        for protocol in [Protocol::Tcp, Protocol::Unix] {
            let profile = reconnecting(2, *endpoint(protocol), Extent::Iterations(600));
            let (_, client, server) = run(&profile, &settings);
            assert_eq!(client.groups[0].transactions[0].flowops[3].count, 1200);
            assert_eq!(server.rejected_connections, 0);
        }
    }
}

#[test]
fn messages_of_random_size_end_at_the_right_byte() {
    for settings in both_executors() {
        for protocol in [Protocol::Tcp, Protocol::Tls, Protocol::Quic] {
            let profile = profile(2, protocol, transaction(Extent::Iterations(50), random_messages()));
            let (_, client, server) = run(&profile, &settings);
            let bytes = |report: &EngineReport| {
                report.groups[0].transactions[1].flowops.iter().map(|flowop| flowop.bytes).collect::<Vec<_>>()
            };
            assert_eq!(bytes(&client), bytes(&server), "{protocol:?} {}", settings.max_threads);
        }
    }
}
