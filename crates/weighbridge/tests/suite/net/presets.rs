//! Network presets with one combination and with several.

use insta::assert_snapshot;

use super::place::{NetLab, masked};

#[test]
fn stream_prints_sender_and_receiver() {
    let (place, server) = NetLab::with_server();
    let ran = place.net(&format!("stream 127.0.0.1 -P {} -t 300ms -q", server.port));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.transcript());
    assert_snapshot!(masked(&ran.out, &server), @r"
      time bytes throughput messages difference
    client, sender # # # #
    server, receiver # # # # #
    rounds: # CPU: client # 127.0.0.1 # retransmits: #

      mean p50 p90 p99 p99.9 p99.99 max
    rounds # # # # # # #
    ");
}

#[test]
fn every_preset_measures() {
    let (place, server) = NetLab::with_server();
    for preset in ["stream", "maerts", "bidirec", "rr", "crr", "udp-rr"] {
        let ran = place.net(&format!("{preset} 127.0.0.1:{} -t 200ms -n 2 --json", server.port));
        assert_eq!(ran.code, 0, "{preset}: {}", ran.transcript());
        let results = ran.json();
        assert_eq!(results.as_array().unwrap().len(), 1);
        let totals = &results[0]["totals"];
        assert!(totals["received-bytes"].as_u64().unwrap() > 0, "{preset}: {totals}");
        assert!(totals["rounds"].as_u64().unwrap() > 0, "{preset}: {totals}");
    }
}

#[test]
fn handshakes_are_counted_without_messages() {
    let (place, server) = NetLab::with_server();
    for flags in ["", "--protocols tcp", "-n 4 --max-threads 1"] {
        let ran = place.net(&format!("handshakes 127.0.0.1:{} -t 300ms {flags} --json", server.port));
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        let results = ran.json();
        let totals = &results[0]["totals"];
        assert!(totals["rounds"].as_u64().unwrap() > 0, "{totals}");
        assert_eq!(totals["received-bytes"].as_u64(), Some(0), "{totals}");
    }
}

#[test]
fn a_rate_is_not_exceeded_and_has_response_times() {
    let (place, server) = NetLab::with_server();
    // 90 bytes are 720 bits, in each of 500 rounds.
    for rate in ["1k/s", "720k"] {
        let ran = place.net(&format!("rr 127.0.0.1:{} -t 500ms --rate {rate} --json", server.port));
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        let results = ran.json();
        let rounds = results[0]["totals"]["rounds"].as_u64().unwrap();
        assert!((1..=500).contains(&rounds), "{rate}: {rounds}");
        assert!(results[0].to_string().contains("\"response\""), "{}", results[0]);
    }
}

#[test]
fn segmentation_offload_moves_the_same_datagrams() {
    let (place, server) = NetLab::with_server();
    for preset in ["stream", "maerts", "bidirec", "stream --max-threads 1 -n 3"] {
        let (name, flags) = preset.split_once(' ').unwrap_or((preset, ""));
        let line = format!("{name} 127.0.0.1:{} {flags} --protocols udp --gso --rate 200M", server.port);
        let ran = place.net(&format!("{line} -t 300ms --json"));
        assert_eq!(ran.code, 0, "{preset}: {}", ran.transcript());
        let result = &ran.json()[0];
        assert!(result["notes"].to_string().contains("(gso)"), "{preset}: {}", result["notes"]);
        let totals = &result["totals"];
        let count = |name: &str| totals[name].as_u64().unwrap();
        assert!(count("rounds") > 0 && count("received-bytes") > 0, "{preset}: {totals}");
        assert_eq!(count("received-bytes") % 1470, 0, "{preset}: {totals}");
        assert!(count("sent-bytes") >= count("received-bytes"), "{preset}: {totals}");
    }
    for refused in ["stream --gso", "udp-rr --gso", "stream --protocols udp,tcp --gso"] {
        let (name, flags) = refused.split_once(' ').unwrap();
        let ran = place.net(&format!("{name} 127.0.0.1:{} {flags}", server.port));
        assert_eq!(ran.code, 1, "{refused}: {}", ran.transcript());
        let expected = match name {
            "stream" => "invalid --gso: expected a stream of UDP",
            _ => "--gso has no effect on `net udp-rr`",
        };
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn progress_lines_cover_only_the_data_phase() {
    let (place, server) = NetLab::with_server();
    let ran = place.net(&format!("stream 127.0.0.1 -P {} -t 400ms -i 100ms", server.port));
    let lines: Vec<&str> =
        ran.out.lines().filter(|line| line.contains(" received ") && line.contains(" sent ")).collect();
    assert!(lines.len() >= 3, "{}", ran.transcript());
    assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{}", ran.out);
    assert!(!ran.out.contains("NaN") && !ran.out.contains("inf "), "{}", ran.out);
}

#[test]
fn several_combinations_are_printed_as_one_table() {
    let (place, server) = NetLab::with_server();
    let ran = place.net(&format!("rr 127.0.0.1 -P {} -t 200ms -l 64,1k -n 1,2 --protocols tcp,unix -q", server.port));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert_snapshot!(masked(&ran.out, &server), @r"
        throughput rounds p50 p99 CPU/GB outcome
    tcp, #, n=1 # # # # # completed
    tcp, #, n=2 # # # # # completed
    tcp, 1k, n=1 # # # # # completed
    tcp, 1k, n=2 # # # # # completed
    unix, #, n=1 # # # # # completed
    unix, #, n=2 # # # # # completed
    unix, 1k, n=1 # # # # # completed
    unix, 1k, n=2 # # # # # completed
    ");
}

#[test]
fn unsupported_combination_is_a_row_of_the_table() {
    let (place, server) = NetLab::with_server();
    // RDS is never implemented, whatever the kernel supports.
    let ran = place.net(&format!("rr 127.0.0.1 -P {} -t 200ms --protocols rds,tcp -q", server.port)).expect_code(3);
    ran.expect_stdout("unsupported").expect_stdout("completed");
    let alone = place.net(&format!("rr 127.0.0.1 -P {} -t 200ms --protocols rds -q", server.port));
    assert_eq!((alone.code, alone.out.as_str()), (3, ""), "{}", alone.transcript());
    assert!(alone.err.starts_with("error: unsupported protocol rds: "), "{}", alone.err);
}

#[test]
fn what_is_counted_for_flowops_is_printed() {
    let (place, server) = NetLab::with_server();
    for sizes in ["64", "64,128"] {
        let text = place.net(&format!("rr 127.0.0.1 -P {} -t 100ms -q -p -l {sizes}", server.port)).expect_code(0).out;
        let tables = text.matches("executions of flowops").count();
        assert_eq!(tables, sizes.split(',').count(), "{text}");
    }
}

#[test]
fn partial_last_interval_is_printed() {
    let (place, server) = NetLab::with_server();
    let ran = place.net(&format!("rr 127.0.0.1 -P {} -t 700ms -i 400ms", server.port));
    let last = ran.out.lines().rfind(|line| line.contains(" received ") && line.contains(" sent ")).unwrap();
    assert!(last.trim_start().starts_with("0.7 s"), "{}", ran.out);
}

#[test]
fn invalid_arguments_are_refused() {
    let place = NetLab::new();
    for (flags, part) in [
        ("-n 0", "expected a whole number from 1"),
        ("-l 0", "from 1 byte to 1g"),
        ("-l 2g", "from 1 byte to 1g"),
        ("-t 0", "expected a time above 0"),
        ("-t 5parsec", "invalid time `5parsec`"),
        ("-i 1ms", "at least 10ms"),
        ("--max-duration 0", "expected a time above 0"),
        ("--protocols udp -l 70000", "at most 65507 bytes fit"),
        ("-R --json", "mutually exclusive"),
        ("--protocols tpc", "expected one of tcp, udp, ssl, sctp, unix, unix-dgram, vsock, quic, rds"),
    ] {
        let ran = place.net(&format!("stream 127.0.0.1 {flags}"));
        assert_eq!(ran.code, 1, "{flags}: {}", ran.transcript());
        assert!(ran.err.contains(part), "{flags}: {}", ran.err);
    }
}
