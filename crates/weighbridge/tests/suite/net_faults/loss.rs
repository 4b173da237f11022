//! Packet loss.

use super::{
    lab::{CLIENT, Lab, SERVER},
    profiles::{connected, flowop, rr, transaction},
    result::{ProgramResult, number},
};

/// Matches every hundredth datagram, so that every run has losses.
const ONE_PERCENT: &str = "meta l4proto udp numgen inc mod 100 == 42";

/// Runs requests and responses with losses; returns lost requests, lost responses, timeouts and the result.
fn lossy(extent: &str, size: &str) -> Option<(u64, u64, u64, ProgramResult)> {
    let lab = Lab::with_nft(2)?;
    let server = lab.serve("");
    lab.drop(SERVER, ONE_PERCENT);
    lab.drop(CLIENT, ONE_PERCENT);
    let ran = lab.run_profile(&connected(2, "protocol=udp", &rr(extent, size, size)), "--datagram-deadline 50ms");
    let result = ran.completed();
    let datagrams = &result.group(0)["datagrams"];
    let lost = (number(&datagrams["client-lost"]), number(&datagrams["server-lost"]));
    assert_eq!(lost, (lab.dropped(SERVER), lab.dropped(CLIENT)), "{datagrams}");
    let timeouts = number(&result.transaction(0, 1)["flowops"][1]["client"]["timeouts"]);
    server.assert_unchanged();
    lab.wait_for_client_exit();
    Some((lost.0, lost.1, timeouts, ran))
}

fn assert_all_iterations(size: &str) {
    let Some((requests, responses, timeouts, ran)) = lossy("iterations=300", size) else { return };
    let result = ran.result();
    assert_eq!((result.rounds(), number(&result.0["totals"]["failed-rounds"])), (600 - timeouts, timeouts));
    assert_eq!(timeouts, requests + responses);
    // Lost is not a latency: two percent waited until the deadline of 50 ms.
    assert!(number(&result.0["totals"]["latency"]["p99-ns"]) < 50_000_000, "{}", result.0["totals"]["latency"]);
    assert!(requests > 0 && responses > 0);
}

fn assert_window_length(size: &str) {
    let Some((requests, responses, timeouts, ran)) = lossy("duration=1s", size) else { return };
    assert!(requests > 0 && responses > 0);
    // The last response of each of two strands may be lost after its window.
    assert!((timeouts..=timeouts + 2).contains(&(requests + responses)), "{timeouts} {requests} {responses}");
    assert_eq!(ran.result().transaction(0, 1)["seconds"].as_f64(), Some(1.0));
}

#[test]
fn lost_datagrams_do_not_stop_iterations() {
    assert_all_iterations("64");
}

#[test]
fn lost_datagrams_too_small_for_a_sequence_number_do_not_stop_iterations() {
    assert_all_iterations("4");
}

#[test]
fn lost_datagrams_do_not_stop_a_window() {
    assert_window_length("64");
}

#[test]
fn lost_datagrams_too_small_for_a_sequence_number_do_not_stop_a_window() {
    assert_window_length("4");
}

#[test]
fn lost_datagrams_of_a_stream_are_counted_exactly() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let _server = lab.serve("");
    lab.drop(SERVER, ONE_PERCENT);
    let stream = transaction("duration=1s rate=5000", &flowop("send", "size=64"));
    let result = lab.run_profile(&connected(1, "protocol=udp", &stream), "").completed();
    let datagrams = &result.group(0)["datagrams"];
    let (sent, lost) = (number(&datagrams["client-sent"]), number(&datagrams["client-lost"]));
    assert_eq!(lost, lab.dropped(SERVER) + overflown(&lab), "{datagrams}");
    assert!((1..=sent / 50).contains(&lost), "{datagrams}");
    assert_eq!(number(&result.0["totals"]["lost-datagrams"]), lost);
}

/// Number of datagrams dropped because the server's receive buffer was full.
fn overflown(lab: &Lab) -> u64 {
    let text = lab.network.run(SERVER, &["cat", "/proc/net/snmp"]).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:")).map(str::split_whitespace);
    let (names, mut figures) = (lines.next().unwrap(), lines.next().unwrap());
    let position = names.into_iter().position(|name| name == "RcvbufErrors").unwrap();
    figures.nth(position).unwrap().parse().unwrap()
}

#[test]
fn tcp_stream_loses_nothing_despite_packet_loss() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let _server = lab.serve("");
    lab.drop(SERVER, "tcp dport != 20000 numgen inc mod 100 == 42");
    let stream = transaction("iterations=300", &flowop("write", "size=16k"));
    let result = lab.run_profile(&connected(2, "protocol=tcp", &stream), "").completed();
    assert_eq!(result.bytes(), (2 * 300 * 16384, 2 * 300 * 16384));
    assert!(lab.dropped(SERVER) > 0);
}
