//! Both sides of a run in one process: what is moved, counted and timed.

use crate::common::*;
use wb_net::{
    engine::{protocol::Settings, report::EngineReport},
    language::*,
};

#[test]
fn a_stream_of_a_window_arrives() {
    for threads in [128, 0] {
        let settings = Settings { max_threads: threads, ..Settings::default() };
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
    for threads in [128, 0] {
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Unix, Protocol::UnixDgram] {
            let settings = Settings { max_threads: threads, ..Settings::default() };
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
fn datagrams_go_in_batches_and_every_one_counts() {
    for threads in [128, 0] {
        for (protocol, size) in [(Protocol::Udp, 64), (Protocol::UnixDgram, 64), (Protocol::Udp, 4)] {
            let settings = Settings { max_threads: threads, ..Settings::default() };
            // More than go with one system call, and a rest.
            let batched = Flowop { count: 150, batch: 100, ..send(size) };
            let (ended, client, server) =
                run(&profile(2, protocol, transaction(Extent::Iterations(10), vec![batched])), &settings);
            let (sent, received) = (&client.groups[0].transactions[1], &server.groups[0].transactions[1]);
            assert_eq!((sent.flowops[0].count, sent.flowops[0].bytes), (3000, 3000 * u64::from(size)), "{protocol:?}");
            let moved = ended.datagrams[0];
            println!("{protocol:?} {threads}: {} of {} arrived", moved.server_received, moved.client_sent);
            assert_eq!(moved.client_sent, 3000);
            assert!(moved.server_received <= 3000 && received.flowops[0].count <= moved.server_received);
            assert!(received.flowops[0].count > 0);
        }
    }
}

#[test]
fn a_window_that_ends_amid_a_connection_loses_no_datagram() {
    for threads in [128, 0] {
        let settings = Settings { max_threads: threads, ..Settings::default() };
        let flowops = vec![
            flowop("connect", FlowopAction::Connect(endpoint(Protocol::Udp))),
            send(90),
            receive(90),
            flowop("disconnect", FlowopAction::Disconnect),
        ];
        let mut profile = profile(4, Protocol::Udp, transaction(WINDOW, flowops));
        profile.groups[0].transactions.remove(0);
        profile.groups[0].transactions.pop();
        let (ended, ..) = run(&profile, &settings);
        let moved = ended.datagrams[0];
        assert!(moved.client_sent > 100, "{moved:?}");
        assert_eq!((moved.client_sent, moved.server_sent), (moved.server_received, moved.client_received), "{threads}");
    }
}

#[test]
fn connections_are_made_over_and_over() {
    for (threads, protocol) in [(128, Protocol::Tcp), (0, Protocol::Tcp), (128, Protocol::Unix), (0, Protocol::Unix)] {
        let settings = Settings { max_threads: threads, ..Settings::default() };
        let flowops = vec![
            flowop("connect", FlowopAction::Connect(endpoint(protocol))),
            send(90),
            receive(90),
            flowop("disconnect", FlowopAction::Disconnect),
        ];
        let mut profile = profile(2, protocol, transaction(Extent::Iterations(600), flowops));
        profile.groups[0].transactions.remove(0);
        profile.groups[0].transactions.pop();
        let (_, client, server) = run(&profile, &settings);
        assert_eq!(client.groups[0].transactions[0].flowops[3].count, 1200);
        assert_eq!(server.rejected_connections, 0);
    }
}

#[test]
fn messages_of_random_size_end_where_they_should() {
    for threads in [128, 0] {
        let settings = Settings { max_threads: threads, ..Settings::default() };
        let size = MessageSize::Random { min: 1, max: 1 << 20 };
        let flowops = vec![
            flowop("write", FlowopAction::Send(message(size))),
            flowop("read", FlowopAction::Receive(message(size))),
        ];
        let profile = profile(2, Protocol::Tcp, transaction(Extent::Iterations(50), flowops));
        let (_, client, server) = run(&profile, &settings);
        let bytes = |report: &EngineReport| {
            report.groups[0].transactions[1].flowops.iter().map(|flowop| flowop.bytes).collect::<Vec<_>>()
        };
        assert_eq!(bytes(&client), bytes(&server));
    }
}
