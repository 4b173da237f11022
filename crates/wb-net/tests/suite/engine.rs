//! Tests with both sides of a run in one process: bytes, counters and latencies.

use crate::common::*;
use wb_net::engine::report::EngineReport;
use wb_net_profile::*;

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

// A receiver's window ended when all had arrived, so its rate could exceed the one that was offered.
#[test]
fn a_window_lasts_its_time_on_both_sides() {
    let window = Extent::Window(std::time::Duration::from_millis(10));
    let paced = || Flowop { rate: Some(1000.0), ..send(100) };
    for settings in both_executors() {
        for flowops in [vec![send(100)], vec![receive(100)], vec![paced()], vec![send(100), receive(100)]] {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                let middle = transaction(window, flowops.clone());
                let windows = std::iter::repeat_n(middle.clone(), 9).collect::<Vec<_>>();
                let mut profile = profile(2, protocol, middle);
                profile.groups[0].transactions.splice(1..2, windows);
                let (_, client, server) = run(&profile, &settings);
                for (side, report) in [("client", client), ("server", server)] {
                    let ends = report.groups[0].transactions[1..10].iter();
                    let lengths: Vec<u64> = ends.map(|transaction| transaction.ended - transaction.began).collect();
                    assert_eq!(lengths, [10_000_000; 9], "{side}, {protocol:?}, {} threads", settings.max_threads);
                }
            }
        }
    }
}

// A rate on flowops that move no messages had no effect.
#[test]
fn a_rate_paces_flowops_that_move_no_messages() {
    let think = |busy| FlowopAction::Think { duration: std::time::Duration::from_micros(10), busy };
    let connect = || FlowopAction::Connect(endpoint(Protocol::Tcp));
    let flowop = |action: FlowopAction| Flowop::new("it", action);
    let paced = |action: FlowopAction| Flowop { rate: Some(100.0), ..flowop(action) };
    let counted = |action: FlowopAction| Flowop { count: 6, ..paced(action) };
    let (once, rounds) = (Extent::Iterations(1), Extent::Iterations(6));
    let round = |action, extent| transaction(extent, vec![paced(action)]);
    for settings in both_executors() {
        for (name, middle, position) in [
            ("nop", transaction(once, vec![counted(FlowopAction::Nop)]), 0),
            ("think", transaction(once, vec![counted(think(false))]), 0),
            ("busy", transaction(once, vec![counted(think(true))]), 0),
            ("nop in rounds", round(FlowopAction::Nop, rounds), 0),
            ("think in rounds", round(think(false), rounds), 0),
            ("connect", transaction(rounds, vec![paced(connect()), flowop(FlowopAction::Disconnect)]), 0),
            ("disconnect", transaction(rounds, vec![flowop(connect()), paced(FlowopAction::Disconnect)]), 1),
        ] {
            let (_, client, _) = run(&profile(1, Protocol::Tcp, middle), &settings);
            let transaction = &client.groups[0].transactions[1];
            let (count, length) = (transaction.flowops[position].count, transaction.ended - transaction.began);
            let threads = settings.max_threads;
            assert_eq!(count, 6, "{name}, {threads} threads");
            assert!(length >= 50_000_000, "{name}, {threads} threads: {length} ns");
            let response = transaction.flowops[position].response.as_ref().map(|response| response.count());
            assert_eq!(response, Some(6), "{name}, {threads} threads");
        }
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
