//! SCTP over the loopback interface, where the kernel has it: run it there with `--ignored`.

mod common;

use common::*;
use wb_net::{engine::work::Settings, language::*};

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

/// Connect with options, this, disconnect.
fn with_options(strands: u32, middle: Transaction) -> Profile {
    let mut profile = profile(strands, Protocol::Sctp, middle);
    let endpoint = Endpoint { sctp: options(), ..*endpoint(Protocol::Sctp) };
    profile.groups[0].transactions[0].flowops[0].action = Action::Connect(Box::new(endpoint));
    profile
}

fn told(size: u32, sctp: SctpMessage) -> Message {
    Message { sctp, ..message(Size::Fixed(size)) }
}

fn both_executors() -> [Settings; 2] {
    [128, 0].map(|threads| Settings { threads, ..Settings::default() })
}

#[test]
#[ignore = "needs SCTP in the kernel"]
fn requests_are_answered_on_streams_of_an_association() {
    for settings in both_executors() {
        let request =
            SctpMessage { stream: Some(1), unordered: false, partial: Some(PartialReliability::Lifetime(60_000)) };
        let response = SctpMessage { stream: Some(3), unordered: true, partial: None };
        let flowops = vec![
            flowop("write", Action::Send(told(90, request))),
            flowop("read", Action::Receive(told(900, response))),
        ];
        let (_, client, server) = run(&with_options(2, transaction(Extent::Iterations(100), flowops)), &settings);
        for report in [&client, &server] {
            assert_eq!(report.groups[0].transactions[1].rounds.histogram.len(), 200);
        }
        let rounds = &client.groups[0].transactions[1].rounds;
        println!("{} threads: median {} ns", settings.threads, rounds.histogram.value_at_quantile(0.5));
    }
}

#[test]
#[ignore = "needs SCTP in the kernel"]
fn a_stream_of_a_window_arrives() {
    for settings in both_executors() {
        let profile = with_options(1, transaction(WINDOW, vec![send(200_000)]));
        let (_, client, server) = run(&profile, &settings);
        let (sent, received) = (&client.groups[0].transactions[1], &server.groups[0].transactions[1]);
        println!("{} bytes sent, {} received", sent.flowops[0].bytes, received.flowops[0].bytes);
        assert!(received.flowops[0].bytes > 0);
    }
}

#[test]
#[ignore = "needs SCTP in the kernel"]
fn associations_are_made_over_and_over() {
    for settings in both_executors() {
        let flowops = vec![
            flowop("connect", Action::Connect(endpoint(Protocol::Sctp))),
            send(90),
            receive(90),
            flowop("disconnect", Action::Disconnect),
        ];
        let mut profile = profile(2, Protocol::Sctp, transaction(Extent::Iterations(30), flowops));
        profile.groups[0].transactions.remove(0);
        profile.groups[0].transactions.pop();
        let (_, client, _) = run(&profile, &settings);
        assert_eq!(client.groups[0].transactions[0].flowops[3].count, 60);
    }
}

#[test]
fn a_kernel_without_sctp_is_said_to_be_without_it() {
    let Err(error) = link::end(&endpoint(Protocol::Sctp), wb_net::transport::ends::Part::Taker, false) else { return };
    let numbers = [libc::EPROTONOSUPPORT, libc::ESOCKTNOSUPPORT, libc::EAFNOSUPPORT];
    assert!(error.raw_os_error().is_some_and(|number| numbers.contains(&number)), "{error}");
}
