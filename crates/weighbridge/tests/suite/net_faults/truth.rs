//! Figures that stay true when the network or a program does not respond.

use std::{thread::sleep, time::Duration};

use rustix::process::Signal;

use super::{
    lab::{CLIENT, Lab, SERVER},
    profiles::{connected, flowop, group, profile, rr, transaction},
    result::{RunResult, number},
};

/// The notes of a run.
fn notes(result: &RunResult) -> String {
    result.0["notes"].to_string()
}

#[test]
fn a_run_in_which_nothing_arrives_fails() {
    // The cookies that set up a link are short.
    const LONG_DATAGRAMS: &str = "udp length > 200";
    for (preset, expected) in [
        ("stream --protocols udp -l 1470", "group stream: none of"),
        ("stream --protocols udp -l 1470 -n 20 --max-threads 1", "group stream: none of"),
        ("udp-rr -l 300", "group udp-rr: none of"),
    ] {
        let Some(lab) = Lab::with_nft(2) else { return };
        let server = lab.serve("");
        lab.drop(SERVER, LONG_DATAGRAMS);
        let (name, options) = preset.split_once(' ').unwrap();
        let ran = lab.run(&format!("net {name} {} {options} -t 300ms --json", SERVER.v4()));
        let reason = ran.fell_short("failed");
        assert!(reason.starts_with(expected) && reason.ends_with("datagrams arrived"), "{reason}");
        let totals = &ran.result().0["totals"];
        assert!(totals["latency"].is_null() || name == "stream", "{totals}");
        assert!(number(&totals["lost-datagrams"]) > 0, "{totals}");
        server.assert_unchanged();
    }
}

/// A message that was lost once arrives after the retransmission timeout: a window that ends before it proves nothing.
#[test]
fn bytes_that_do_not_arrive_are_a_failure_once_they_would_have_been_repeated() {
    // Port 20000 is that of the session.
    const MESSAGES: &str = "tcp dport != 20000 ip length > 900";
    for (window, has_failed) in [("700ms", false), ("3500ms", true)] {
        let Some(lab) = Lab::with_nft(2) else { return };
        let server = lab.serve("");
        lab.drop(SERVER, MESSAGES);
        let ran = lab.run(&format!("net crr {} -l 900 -t {window} --json", SERVER.v4()));
        if has_failed {
            let reason = ran.fell_short("failed");
            assert!(reason.ends_with("none of 900 sent bytes arrived"), "{reason}");
        } else {
            let result = ran.completed();
            assert_eq!(number(&result.0["totals"]["pending-rounds"]["count"]), 1, "{}", result.0["totals"]);
            assert!(result.0["totals"]["latency"].is_null(), "{}", result.0["totals"]);
            assert!(notes(&result).contains("no round ended; the oldest had taken"), "{}", notes(&result));
        }
        server.assert_unchanged();
    }
}

#[test]
fn lost_datagrams_are_noted() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let _server = lab.serve("");
    lab.drop(SERVER, "udp length > 200 numgen inc mod 2 == 0");
    let ran = lab.run(&format!("net stream {} --protocols udp -l 1470 -t 300ms", SERVER.v4()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("datagrams sent by the client were lost ("), "{ran:?}");
}

// Open rounds were in the maximum only, so a server that stopped improved the latencies.
#[test]
fn a_round_that_is_pending_at_the_end_is_in_the_latencies() {
    for threads in ["", "--max-threads 1"] {
        let Some(lab) = Lab::with_nft(2) else { return };
        let server = lab.serve("");
        let profile = connected(2, "protocol=tcp", &rr("duration=2s", "64", "64"));
        let client = lab.start_profile(&profile, threads);
        server.receives(100_000);
        lab.drop(SERVER, "tcp dport != 20000");
        sleep(Duration::from_millis(2200));
        lab.stop_dropping(SERVER);
        let result = client.finish().completed();
        let pending = &result.0["totals"]["pending-rounds"];
        assert_eq!(number(&pending["count"]), 2, "{pending}");
        let at_least = number(&pending["at-least-ns"]);
        assert!(at_least > 500_000_000, "{pending}");
        let latency = &result.0["totals"]["latency"];
        assert_eq!(number(&latency["max-ns"]), at_least, "{latency}");
        assert!(number(&latency["p99-ns"]) < 500_000_000, "{latency}");
        assert!(notes(&result).contains("open at the end of the window"), "{}", notes(&result));
        server.assert_unchanged();
    }
}

#[test]
fn with_a_rate_the_response_time_is_the_headline() {
    let Some(lab) = Lab::alone(2) else { return };
    let server = lab.serve("");
    let profile = connected(1, "protocol=tcp tcp_nodelay", &rr("duration=2s rate=1000", "64", "64"));
    let client = lab.start_profile(&profile, "--xml result.xml");
    server.receives(30_000);
    server.signal(Signal::STOP);
    sleep(Duration::from_millis(700));
    server.signal(Signal::CONT);
    let result = client.finish().completed();
    let totals = &result.0["totals"];
    assert!(number(&totals["response"]["p99-ns"]) > 500_000_000, "{}", totals["response"]);
    assert!(number(&totals["latency"]["p99-ns"]) < 100_000_000, "{}", totals["latency"]);
    let xml = std::fs::read_to_string(lab.path("result.xml")).unwrap();
    let summary = &xml[xml.find("<summary").unwrap()..];
    assert!(summary.find("of=\"response\"").unwrap() < summary.find("of=\"round\"").unwrap(), "{xml}");
}

// Rounds that a rate scheduled and that never began were in no figure.
#[test]
fn due_rounds_that_a_server_prevented_are_in_the_response_time() {
    let Some(lab) = Lab::alone(2) else { return };
    let server = lab.serve("");
    for threads in ["", "--max-threads 1"] {
        let profile = connected(2, "protocol=tcp tcp_nodelay", &rr("duration=2s rate=100", "64", "64"));
        let before = server.received();
        let client = lab.start_profile(&profile, threads);
        server.receives(before + 8000);
        server.signal(Signal::STOP);
        sleep(Duration::from_millis(2200));
        server.signal(Signal::CONT);
        let result = client.finish().completed();
        let totals = &result.0["totals"];
        let (open, scheduled) = (number(&totals["pending-rounds"]["count"]), &totals["scheduled-rounds"]);
        assert_eq!((open, number(&scheduled["due"])), (2, 400), "{totals}");
        assert_eq!(result.rounds() + open + number(&scheduled["not-started"]), 400, "{totals}");
        let response = &totals["response"];
        assert_eq!((number(&response["count"]), number(&response["pending"])), (400, 400 - result.rounds()));
        assert!(number(&response["p99-ns"]) > 500_000_000, "{response}");
        assert!(number(&totals["latency"]["count"]) == result.rounds() + open, "{totals}");
    }
}

#[test]
fn the_schedule_of_a_flowop_begins_with_it() {
    let Some(lab) = Lab::alone(2) else { return };
    let _server = lab.serve("");
    // Three times 300 ms of thinking and 15 messages at 50 a second.
    let flowops = flowop("think", "duration=300ms") + &flowop("write", "size=64 count=15 rate=50");
    let result = lab.run_profile(&connected(1, "protocol=tcp", &transaction("iterations=3", &flowops)), "").completed();
    let paced = result.transaction(0, 1);
    let seconds = paced["seconds"].as_f64().unwrap();
    assert!(seconds > 1.74, "{seconds} s");
    // One after the other, without a round of thinking between them.
    let flowops = flowop("write", "size=64 rate=50");
    let result =
        lab.run_profile(&connected(1, "protocol=tcp", &transaction("iterations=30", &flowops)), "").completed();
    let seconds = result.transaction(0, 1)["seconds"].as_f64().unwrap();
    assert!(seconds > 0.57, "{seconds} s");
}

// An execution that was due at the very end of the duration still began.
#[test]
fn a_flowop_with_a_duration_and_a_rate_runs_as_often_as_both_say() {
    let Some(lab) = Lab::alone(2) else { return };
    let _server = lab.serve("");
    for (time, rate, expected) in [("1s", 100, 100), ("500ms", 30, 15), ("250ms", 10, 3)] {
        let flowops = flowop("write", &format!("size=64 duration={time} rate={rate}"));
        for threads in ["", "--max-threads 1"] {
            let profile = connected(1, "protocol=tcp tcp_nodelay tos=0x10", &transaction("iterations=1", &flowops));
            let result = lab.run_profile(&profile, threads).completed();
            let write = &result.transaction(0, 1)["flowops"][0];
            assert_eq!(number(&write["client"]["count"]), expected, "{time} {rate} {threads}: {write}");
        }
    }
}

#[test]
fn strands_of_one_rate_are_spread_over_the_period() {
    let Some(lab) = Lab::alone(2) else { return };
    let _server = lab.serve("");
    let profile = connected(20, "protocol=tcp tcp_nodelay", &rr("duration=2s rate=10", "64", "64"));
    lab.run_profile(&profile, "--raw responses").completed();
    let log = std::fs::read_to_string(lab.path("responses")).unwrap();
    let times = log.lines().filter(|line| line.contains("\twrite\t")).filter_map(|line| line.split('\t').next());
    let mut bins = [0_u32; 10];
    let mut begin = None;
    for time in times.map(|time| time.parse::<f64>().unwrap()) {
        let begin = *begin.get_or_insert(time);
        bins[((time - begin).rem_euclid(0.1) / 0.01) as usize % 10] += 1;
    }
    let all: u32 = bins.iter().sum();
    assert!(all >= 300 && bins.iter().all(|count| *count < all / 3), "{bins:?}");
}

#[test]
fn iterations_at_a_rate_last_for_whole_periods() {
    let Some(lab) = Lab::alone(2) else { return };
    let _server = lab.serve("");
    let profile = connected(1, "protocol=tcp tcp_nodelay", &rr("iterations=20 rate=50", "64", "64"));
    let result = lab.run_profile(&profile, "").completed();
    let rate = result.0["totals"]["rounds-per-second"].as_f64().unwrap();
    assert!(rate <= 50.01, "{rate} rounds per second");
}

#[test]
fn an_answer_that_was_given_up_is_not_taken_for_a_later_one() {
    for threads in ["", "--max-threads 1"] {
        let Some(lab) = Lab::new(2) else { return };
        let server = lab.serve("");
        // The server thinks before its first answer; sizes tell the answers apart.
        let first = flowop("write", "size=64")
            + &flowop("read", "size=5000 timeout=50ms canfail")
            + &flowop("write", "size=64")
            + &flowop("read", "size=3000");
        let think = flowop("think", "duration=100ms");
        let round = first.replacen("<flowop type='read'", &format!("{think}<flowop type='read'"), 1);
        let profile = connected(2, "protocol=tcp", &transaction("iterations=5", &round));
        let result = lab.run_profile(&profile, threads).completed();
        assert_eq!(result.transaction(0, 1)["sent-bytes"], result.transaction(0, 1)["received-bytes"]);
        let reads = &result.transaction(0, 1)["flowops"];
        assert_eq!(number(&reads[4]["client"]["count"]), 10, "{reads}");
        server.assert_unchanged();
    }
}

#[test]
fn a_stream_that_ends_by_time_settles_before_its_connection_is_closed() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    for protocol in ["tcp", "ssl", "quic"] {
        for kind in ["write", "read"] {
            let flowops = flowop("connect", &format!("remotehost=there protocol={protocol}"))
                + &flowop(kind, "duration=40ms size=16k")
                + &flowop("disconnect", "");
            let profile = profile(&format!("<group nthreads=2>{}</group>", transaction("iterations=4", &flowops)));
            for threads in ["", "--max-threads 1"] {
                let result = lab.run_profile(&profile, threads).completed();
                assert_eq!(result.rounds(), 8, "{protocol} {kind}");
            }
        }
    }
    server.assert_unchanged();
}

#[test]
fn tls_connections_are_opened_and_closed_in_one_transaction() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let flowops = flowop("connect", "remotehost=there protocol=ssl wndsz=2k tcp_nodelay")
        + &flowop("write", "count=2 size=64")
        + &flowop("disconnect", "");
    for threads in ["", "--max-threads 1"] {
        let profile = profile(&format!("<group nthreads=1>{}</group>", transaction("iterations=50", &flowops)));
        for _ in 0..5 {
            assert_eq!(lab.run_profile(&profile, threads).completed().rounds(), 50);
        }
    }
    server.assert_unchanged();
}

#[test]
fn groups_draw_different_random_sizes() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve("");
    let middle = rr("iterations=20", "rand(1,1m)", "64");
    let groups = group("nthreads=1", "protocol=tcp", &middle) + &group("nthreads=1", "protocol=tcp", &middle);
    let result = lab.run_profile(&profile(&groups), "--seed 7").completed();
    let bytes = |group| number(&result.transaction(group, 1)["sent-bytes"]);
    assert_ne!(bytes(0), bytes(1));
}

#[test]
fn names_of_a_profile_are_escaped_in_the_log_of_a_server() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("--max-strands 1");
    let middle = rr("iterations=1", "64", "64");
    let group = group("name='evil\u{1b}[2J&#10;10.0.0.9:1: done' nthreads=1", "protocol=tcp port=20000", &middle);
    lab.run_profile(&profile(&group), "").fell_short("failed");
    let log = server.stderr();
    assert!(!log.contains('\u{1b}') && !log.contains("\n10.0.0.9"), "{log:?}");
}

#[test]
fn refused_connections_are_logged_once() {
    let Some(lab) = Lab::new(2) else { return };
    let server = lab.serve("");
    let script = format!("for i in {{1..40}}; do echo hello > /dev/tcp/{}/20000; done", SERVER.v4());
    let mut bash = lab.command(super::lab::CLIENT, "bash");
    bash.args(["-c", &script]);
    super::program::Program::start(bash, &lab.path("bash")).finish();
    server.wait_for_stderr("refused: ");
    lab.run_profile(&connected(1, "protocol=tcp", &rr("iterations=1", "64", "64")), "").completed();
    assert_eq!(server.stderr().matches("refused: ").count(), 1, "{}", server.stderr());
}

#[test]
fn a_window_that_the_kernel_limits_is_noted() {
    let Some(lab) = Lab::new(2) else { return };
    let _server = lab.serve("");
    let run = |size: &str| {
        let options = format!("protocol=tcp wndsz={size}");
        notes(&lab.run_profile(&connected(1, &options, &rr("iterations=5", "64", "64")), "").completed())
    };
    assert_eq!(run("64k"), "[]");
    let notes = run("900m");
    for limit in ["client: ", "server: ", "net.core.wmem_max", "net.core.rmem_max", "instead of wndsz=943718400"] {
        assert!(notes.contains(limit), "{notes}");
    }
}

/// `--omit`, `--mss`, `--congestion` and `--tos` of presets.
#[test]
fn preset_options_reach_the_connections() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let server = lab.serve("");
    // Packets as they are, not in bundles: then those that do not have the requested size and type are dropped.
    lab.network.run(CLIENT, &["ip", "link", "set", "eth0", "gso_max_segs", "1"]).unwrap();
    lab.drop(SERVER, "tcp dport != 20000 meta length > 100 ip dscp != 4 drop\ntcp dport != 20000 meta length > 600");
    let line =
        format!("net stream {} -t 300ms --omit 100ms --mss 500 --congestion reno --tos 0x10 --json", SERVER.v4());
    let result = lab.run(&line).completed();
    let transactions = result.group(0)["transactions"].as_array().unwrap().clone();
    let is_data = transactions.iter().map(|one| one["is-data-phase"].as_bool().unwrap());
    assert_eq!(is_data.collect::<Vec<_>>(), [false, false, true, false]);
    let seconds = result.0["totals"]["seconds"].as_f64().unwrap();
    assert!((0.29..0.4).contains(&seconds), "{seconds}");
    let omitted = transactions[1]["received-bytes"].as_u64().unwrap();
    assert!(omitted > 0 && result.bytes().1 == transactions[2]["received-bytes"].as_u64().unwrap(), "{omitted}");
    let ran = lab.run(&format!("net crr {} --omit 1", SERVER.v4()));
    assert!(ran.code == Some(1) && ran.err.contains("--omit has no effect on `net crr`"), "{ran:?}");
    for (flag, message) in [("--mss 10", "from 88 to 32767"), ("--tos 256", "from 0 to 255"), ("--congestion no", "no")]
    {
        let ran = lab.run(&format!("net stream {} -t 300ms {flag}", SERVER.v4()));
        assert!(ran.code != Some(0) && ran.err.contains(message), "{flag}: {ran:?}");
    }
    drop(server);
}

#[test]
fn datagram_streams_have_jitter_and_losses() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let server = lab.serve("");
    lab.drop(SERVER, "meta l4proto udp numgen inc mod 4 0");
    let ran = lab.run(&format!("net stream {} -t 1 --protocols udp --rate 1k/s -l 200", SERVER.v4()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("; jitter: ") && ran.out.contains("datagrams: lost"), "{}", ran.out);
    drop(server);
}

#[test]
fn a_stream_of_which_nothing_arrives_is_no_measurement() {
    let Some(lab) = Lab::with_nft(2) else { return };
    let server = lab.serve("");
    // Connections open, but data does not get through.
    lab.drop(SERVER, "tcp dport != 20000 meta length > 200");
    let ran = lab.run(&format!("net stream {} -t 300ms --json", SERVER.v4()));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    drop(server);
}
