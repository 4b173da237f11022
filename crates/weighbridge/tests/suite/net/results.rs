//! Output of `net run` in every format.

use insta::assert_snapshot;

use crate::json_schema::validate;

use super::place::{NetLab, masked};

const PROFILE: &str = r#"<profile name="pair">
  <group nthreads="2" name="pair">
    <transaction><flowop type="connect" options="remotehost=$h protocol=tcp tcp_nodelay"/></transaction>
    <transaction duration="300ms" rate="100">
      <flowop type="write" options="size=64"/>
      <flowop type="read" options="size=1k"/>
    </transaction>
    <transaction><flowop type="disconnect"/></transaction>
  </group>
</profile>"#;

#[test]
fn summary_is_printed_by_default() {
    let (place, server) = NetLab::with_server();
    place.lab.write("pair.xml", PROFILE);
    let ran = place.net(&format!("run pair.xml --var h=127.0.0.1 -P {} -q", server.port));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.transcript());
    // On a busy machine a round may be open for long when the window ends, which is noted.
    let summary = ran.out.split("\nnote: ").next().unwrap();
    assert_snapshot!(masked(summary, &server), @r"
    transactions
        time received throughput operations per second
      Txn0 # # # # #
      Txn1 # # # # #
      Txn2 # # # # #

    machines
        sent received CPU waits preemptions strands are
      client # # # # # thread per strand
      127.0.0.1 # # # # # thread per strand

    total
      time #
      throughput # received, #
      sent # difference #
      bytes # received, # sent
      operations #, #
      rounds #, #

        mean p50 p90 p99 p99.9 p99.99 max
      response # # # # # # #
      service # # # # # # #
    ");
}

#[test]
fn all_sections_are_printed_for_both_sides() {
    let (place, server) = NetLab::with_server();
    place.lab.write("pair.xml", PROFILE);
    let ran = place.net(&format!("run pair.xml --var h=127.0.0.1 -P {} -q -a -k -p --nested -i 100ms", server.port));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.transcript());
    let titles: Vec<&str> = ran.out.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')).collect();
    // The number of intervals with rounds depends on timing.
    let titles =
        titles.join("\n").replace("over 2 of them", "over # of them").replace("over 3 of them", "over # of them");
    assert_snapshot!(titles, @r"
    strands, and the rounds of each
    executions of flowops
    client against server
    rounds of transactions
    groups
    rounds of groups
    CPU and context switches of groups
    connections
    network interfaces
    network protocols
    Txn1: rounds of each 100 ms, over # of them
    transactions
    machines
    total
    ");
    let output = masked(&ran.out, &server);
    for row in [
        "    write, client # # # # # # # #",
        "    read, server # # # # # # # #",
        "    service # # # # # # # # #",
        "    lag # # # # # # # # #",
        "  Txn1 the generator lagged by # on average, # at p99, # at most",
        "    messages of this run # # # # # #",
        "  pair, server # # # # # #",
        "  p99.9 # # # # # # # #",
    ] {
        assert!(output.lines().any(|line| line == row), "{row}: {output}");
    }
}

#[test]
fn no_statistics_prints_only_counts() {
    let (place, server) = NetLab::with_server();
    place.lab.write("pair.xml", PROFILE);
    let ran = place.net(&format!("run pair.xml --var h=127.0.0.1 -P {} -q -n", server.port)).expect_code(0);
    assert!(!ran.out.contains("p99"), "{}", ran.out);
}

#[test]
fn max_duration_stops_the_run_with_a_note() {
    let (place, server) = NetLab::with_server();
    place.lab.write("pair.xml", &PROFILE.replace("300ms", "60min"));
    let ran = place.net(&format!("run pair.xml --var h=127.0.0.1 -P {} -q --max-duration 200ms", server.port));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.transcript());
    ran.expect_stdout("note: group pair, Txn1: cut after 0.2 s of 3600 s");
}

#[test]
fn json_result_matches_its_schema() {
    let (place, server) = NetLab::with_server();
    place.lab.write("pair.xml", PROFILE);
    let run = place.net(&format!("run pair.xml --var h=127.0.0.1 -P {} --json -p --seed 7", server.port));
    let presets = place.net(&format!("rr 127.0.0.1 -P {} --json -t 100ms -l 1,2", server.port));
    assert_eq!((run.code, presets.code), (0, 0), "{}{}", run.transcript(), presets.transcript());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/net-result.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let results = presets.json();
    for result in results.as_array().unwrap().iter().chain([&run.json()]) {
        validate(&schema, result).unwrap();
    }
    assert_eq!(run.json()["seed"], 7);
    assert_eq!(results.as_array().unwrap().len(), 2);
}

#[test]
fn timestamped_progress_has_the_format_of_uperf() {
    let (place, server) = NetLab::with_server();
    place.lab.write("pair.xml", PROFILE);
    let ran = place.net(&format!("run pair.xml --var h=127.0.0.1 -P {} -R -i 50ms", server.port));
    let timestamped: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("timestamp_ms:")).collect();
    let begins: Vec<&str> = timestamped.iter().copied().filter(|line| line.contains(" nr_bytes:0 nr_ops:0 ")).collect();
    assert!(begins[0].contains(" name:Txn0 "), "{}", ran.out);
    let last = timestamped.iter().rfind(|line| line.contains(" name:Txn1 ")).unwrap();
    let fields: Vec<&str> = last.split([' ', ':']).collect();
    assert!(fields[1].parse::<f64>().unwrap() > 1.7e12, "{last}");
    assert!(fields[5].parse::<u64>().unwrap() > 0 && fields[7].parse::<u64>().unwrap() > 0, "{last}");
}
