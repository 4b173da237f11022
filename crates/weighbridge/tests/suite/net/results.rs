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

/// Bits per second in the columns of a line of progress: received and sent.
fn interval_rates(line: &str) -> Option<[f64; 2]> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let rate = |name| {
        let position = words.iter().position(|word| *word == name)?;
        let prefix = words[position - 1].strip_suffix("bit/s")?;
        let factor = ["", "k", "M", "G"].iter().position(|one| *one == prefix)?;
        Some(words[position - 2].parse::<f64>().ok()? * 1000_f64.powi(factor as i32))
    };
    Some([rate("received")?, rate("sent")?])
}

/// Both sides cut intervals and windows by their own clocks.
#[test]
fn received_never_exceeds_sent_in_any_output() {
    let (place, server) = NetLab::with_server();
    let cases = ["stream", "maerts", "bidirec", "rr --rate 300/s", "rr -n 4", "stream --protocols udp --rate 20M"];
    for case in cases {
        let line = format!("{case} 127.0.0.1 --port {} -t 250ms -i 30ms", server.port);
        let text = place.net(&line).expect_code(0).out;
        let intervals: Vec<_> = text.lines().filter_map(interval_rates).collect();
        assert!(intervals.len() > 5, "{text}");
        assert!(intervals.iter().all(|[received, sent]| received <= sent), "{case}: {text}");
        let result = place.net(&format!("{line} --json")).expect_code(0).json()[0].take();
        let at_most = |what: &str, received: &serde_json::Value, sent: &serde_json::Value| {
            let [received, sent] = [received, sent].map(|figure| figure.as_f64().unwrap());
            assert!(received <= sent, "{case}, {what}: {received} received, {sent} sent");
        };
        let transactions =
            || result["groups"].as_array().unwrap().iter().flat_map(|group| group["transactions"].as_array().unwrap());
        for totals in
            result["groups"].as_array().unwrap().iter().map(|group| &group["totals"]).chain([&result["totals"]])
        {
            at_most("bytes", &totals["received-bytes"], &totals["sent-bytes"]);
            at_most("throughput", &totals["throughput"], &totals["sent-throughput"]);
        }
        transactions().for_each(|one| at_most("transaction", &one["received-bytes"], &one["sent-bytes"]));
        for flowop in transactions().flat_map(|one| one["flowops"].as_array().unwrap()) {
            let (client, server) = (&flowop["client"], &flowop["server"]);
            let is_sent_by_client = match flowop["name"].as_str().unwrap() {
                "write" => true,
                "read" => false,
                _ => continue,
            };
            let (sender, receiver) = if is_sent_by_client { (client, server) } else { (server, client) };
            for name in ["bytes", "count", "throughput"] {
                at_most(name, &receiver[name], &sender[name]);
            }
        }
        let [client, server] = [0, 1].map(|index| &result["machines"][index]);
        for (sender, receiver) in [(client, server), (server, client)] {
            at_most("machine", &receiver["received-bytes"], &sender["sent-bytes"]);
            let points = |machine: &serde_json::Value, name: &str| -> Vec<(f64, f64, u64)> {
                let seconds = |point: &serde_json::Value, name: &str| point[name].as_f64().unwrap();
                let points = machine["progress"].as_array().unwrap().iter();
                points
                    .map(|one| (seconds(one, "end-seconds"), seconds(one, "seconds"), one[name].as_u64().unwrap()))
                    .collect()
            };
            let received = points(receiver, "received-bytes");
            let mut all_sent = 0;
            for (end, length, sent) in points(sender, "sent-bytes") {
                all_sent += sent;
                // Intervals of both machines that end at about the same time are the same.
                let until = received.iter().filter(|(other, ..)| *other < end + length * 0.1);
                let all_received: u64 = until.map(|(.., received)| received).sum();
                assert!(all_received <= all_sent, "{case}: {all_received} received, {all_sent} sent");
            }
        }
    }
}

/// A profile whose rounds take longer than the thinking in them, in a window of 900 ms.
fn slow_rounds(strands: u32, rate: &str, think: &str) -> String {
    let think = format!(r#"<flowop type="think" options="duration={think}"/><flowop type="read""#);
    let window = format!(r#"duration="900ms" {rate}"#);
    let profile = PROFILE.replace(r#"duration="300ms" rate="100""#, &window);
    profile.replace(r#"nthreads="2""#, &format!(r#"nthreads="{strands}""#)).replace(r#"<flowop type="read""#, &think)
}

#[test]
fn due_rounds_that_never_began_are_in_every_output() {
    let (place, server) = NetLab::with_server();
    place.lab.write("slow.xml", &slow_rounds(2, r#"rate="20""#, "200ms"));
    for flags in ["", "--max-threads 1", "-n"] {
        let line = format!("run slow.xml --var h=127.0.0.1 -P {} -q {flags} --xml slow.out", server.port);
        let text = place.net(&line).expect_code(0);
        let first = text.out.lines().next().unwrap();
        assert!(first.contains("the rate was not reached: ") && first.contains(" of 36 rounds"), "{}", text.out);
        let xml = std::fs::read_to_string(place.lab.path("slow.out")).unwrap();
        assert!(xml.contains("due-rounds=\"36\"") && xml.contains("<note>the rate was not reached"), "{xml}");
        let result = place.net(&format!("{line} --json")).expect_code(0).json();
        let totals = &result["totals"];
        let scheduled = &totals["scheduled-rounds"];
        assert_eq!(scheduled["due"], 36, "{flags} {totals}");
        let [rounds, not_started] = [&totals["rounds"], &scheduled["not-started"]].map(|count| count.as_u64().unwrap());
        if flags == "-n" {
            assert!(rounds + not_started <= 36 && totals["response"].is_null(), "{totals}");
            continue;
        }
        let open = totals["pending-rounds"]["count"].as_u64().unwrap();
        assert_eq!((rounds + open + not_started, totals["response"]["count"].as_u64()), (36, Some(36)), "{totals}");
        assert_eq!(totals["response"]["pending"].as_u64(), Some(open + not_started), "{totals}");
        // The last due round waits for 50 ms, the first that cannot begin for 700 ms.
        assert!(totals["response"]["p50-ns"].as_u64().unwrap() > 150_000_000, "{totals}");
        assert!(scheduled["at-least-ns"].as_u64().unwrap() > 400_000_000, "{totals}");
    }
}

#[test]
fn rates_of_flowops_and_iterations_that_are_not_reached_are_in_the_first_line() {
    let (place, server) = NetLab::with_server();
    let think = r#"<flowop type="think" options="duration=50ms"/>"#;
    let window = r#"duration="300ms""#;
    // A single execution per round; a schedule of a number, or of a duration; rounds of a number of iterations.
    let cases = [
        (window, format!(r#"{think}<flowop type="write" options="size=64 rate=100"/>"#), "executions of `write`"),
        (window, r#"<flowop type="write" options="size=64 rate=100m count=20000"/>"#.into(), "executions of `write`"),
        (
            window,
            r#"<flowop type="write" options="size=64 rate=100m duration=100ms"/>"#.into(),
            "executions of `write`",
        ),
        (r#"iterations="4" rate="100""#, think.to_owned() + r#"<flowop type="write" options="size=64"/>"#, "rounds"),
    ];
    for (extent, flowops, expected) in cases {
        let profile = PROFILE.replace(r#"duration="300ms" rate="100""#, extent);
        let (start, end) =
            (profile.find("      <flowop type=\"write").unwrap(), profile.find("size=1k\"/>\n").unwrap() + 11);
        place.lab.write("paced.xml", &(profile[..start].to_owned() + &flowops + &profile[end..]));
        let text = place.net(&format!("run paced.xml --var h=127.0.0.1 -P {} -q", server.port)).expect_code(0);
        let first = text.out.lines().next().unwrap();
        assert!(first.contains("the rate was not reached: ") && first.contains(expected), "{flowops} {}", text.out);
    }
}

#[test]
fn the_rate_of_a_flowop_does_not_slip_by_the_time_of_waking() {
    let (place, server) = NetLab::with_server();
    let profile = PROFILE.replace(" rate=\"100\"", "").replace("size=64", "size=64 rate=100");
    place.lab.write("paced.xml", &profile);
    let result =
        place.net(&format!("run paced.xml --var h=127.0.0.1 -P {} -q --json", server.port)).expect_code(0).json();
    let write = &result["groups"][0]["transactions"][1]["flowops"][0]["client"];
    assert!(write["lag"]["mean-ns"].as_f64().unwrap() > 0.0, "the start is late, and the schedule is kept: {write}");
}

/// Little's law: as many rounds are in progress as there are connections, so that their rate times their mean duration is
/// that number, if none is left out.
#[test]
fn rounds_that_are_open_at_the_end_are_in_the_mean() {
    let (place, server) = NetLab::with_server();
    let (threads, event_loop) = ("", "--max-threads 1");
    for (strands, think, flags) in [
        (1, "400ms", threads),
        (20, "400ms", event_loop),
        (20, "130ms", threads),
        (20, "130ms", event_loop),
        // The strands wait for their turn, also before the first round.
        (300, "1ms busy", event_loop),
    ] {
        place.lab.write("slow.xml", &slow_rounds(strands, "", think));
        let line = format!("run slow.xml --var h=127.0.0.1 -P {} --json {flags}", server.port);
        let result = place.net(&line).expect_code(0).json();
        let latency = &result["totals"]["latency"];
        let [count, mean] = ["count", "mean-ns"].map(|name| latency[name].as_f64().unwrap());
        let seconds = result["totals"]["seconds"].as_f64().unwrap();
        let in_progress = count / seconds * mean / 1e9;
        assert!((in_progress / f64::from(strands) - 1.0).abs() < 0.05, "{in_progress} of {strands}: {latency}");
        assert!(result["notes"].to_string().contains("rounds were open at the end"), "{}", result["notes"]);
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
    let results = presets.json();
    for (schema, result) in [("net-result", &run.json()), ("net-results", &results)] {
        let path = format!("{}/../../schemas/{schema}.json", env!("CARGO_MANIFEST_DIR"));
        validate(&serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(), result).unwrap();
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
    let begins: Vec<&str> = timestamped.iter().copied().filter(|line| line.ends_with(" nr_bytes:0 nr_ops:0")).collect();
    // Transactions are counted from 1, and the last field ends the line.
    assert!(begins[0].contains(" name:Txn1 "), "{}", ran.out);
    let last = timestamped.iter().rfind(|line| line.contains(" name:Txn2 ")).unwrap();
    let fields: Vec<&str> = last.split([' ', ':']).collect();
    assert!(fields[1].parse::<f64>().unwrap() > 1.7e12, "{last}");
    assert!(fields[5].parse::<u64>().unwrap() > 0 && fields[7].parse::<u64>().unwrap() > 0, "{last}");
    assert!(timestamped.last().unwrap().contains(" name:Total "), "{}", ran.out);
}
