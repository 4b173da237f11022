//! `net iperf3` beside Debian's iperf3.

use std::collections::BTreeSet;

use serde_json::Value;
use wb_test_net::Host;

use super::serve;
use crate::net_faults::lab::{CLIENT, Lab, SERVER};
use crate::net_faults::program::{Program, eventually};

const WEIGHBRIDGE: &str = env!("CARGO_BIN_EXE_weighbridge");
const PORT: u16 = 5201;

/// Whether iperf3 is installed; says so if not.
fn has_iperf3() -> bool {
    let found = std::process::Command::new("iperf3").arg("--version").output().is_ok();
    if !found {
        wb_test_skip::skip!("comparing with iperf3 needs iperf3");
    }
    found
}

/// Runs a test on both hosts of a lab; returns the outputs of client and server.
fn measure(lab: &Lab, program: &str, server: &str, client: &str) -> (String, String) {
    let words = if program == WEIGHBRIDGE { "net iperf3 " } else { "" };
    let server = serve(lab, program, &format!("{words}-s -1 {server}"), PORT);
    let mut command = lab.command(CLIENT, program);
    command.args(format!("{words}-c {} {client}", SERVER.v4()).split_whitespace());
    let client = Program::start(command, &lab.path("client")).finish();
    assert_eq!(client.code, Some(0), "{client:?}");
    (client.out, server.finish().out)
}

fn measure_here(client: &str) -> Option<(String, String)> {
    Some(measure(&Lab::new(2)?, WEIGHBRIDGE, "", client))
}

/// The paths of all keys of a JSON document.
fn keys(text: &str) -> BTreeSet<String> {
    fn collect(value: &Value, path: &str, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let path = format!("{path}.{key}");
                    collect(value, &path, into);
                    into.insert(path);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, &format!("{path}[]"), into)),
            _ => {}
        }
    }
    let mut into = BTreeSet::new();
    collect(&parse(text), "", &mut into);
    into
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_rate_that_is_not_reached_is_a_warning_in_every_form() {
    for (form, expected) in [
        ("", "\nwarning: the rate was not reached: "),
        ("-J", "\"warning\": \"the rate"),
        ("--json-stream", "{\"event\":\"warning\""),
    ] {
        let Some((client, _)) = measure_here(&format!("-t 0.3 -b 9T {form}")) else { return };
        assert!(client.contains(expected), "{client}");
    }
}

#[test]
fn json_has_the_keys_of_iperf3() {
    if !has_iperf3() {
        return;
    }
    let Some(lab) = Lab::new(2) else { return };
    // Of a test that ends within a millisecond, iperf3 sometimes has no interval.
    let cases = ["", "-P 2 -O 1", "-R", "--bidir", "-n 500M", "-k 4000", "-u -b 10M", "-u -R", "-u --bidir", "-M 1000"];
    for case in cases {
        // A limited rate leaves the processor to other tests.
        let time = if case.contains("-n") || case.contains("-k") {
            ""
        } else if case.contains("-u") {
            "-t 1"
        } else {
            "-t 1 -b 100M"
        };
        let line = format!("{case} {time} -J");
        let reference = measure(&lab, "iperf3", "-J", &line);
        let actual = measure(&lab, WEIGHBRIDGE, "-J", &line);
        // A busy machine may miss the rate, which iperf3 does not tell.
        let mut client = keys(&actual.0);
        client.retain(|key| key != ".warning");
        assert_eq!(client, keys(&reference.0), "client: {case}");
        assert_eq!(keys(&actual.1), keys(&reference.1), "server: {case}");
    }
}

/// Text without figures: digits, and the units that depend on them, are masked. Layout stays.
fn mask_figures(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<String> = line
            .split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| word.chars().map(|one| if one.is_ascii_digit() { '#' } else { one }).collect::<String>())
            .map(|word| word.replace("##", "#").replace("##", "#").replace("##", "#").replace("#.#", "#"))
            .collect();
        let mut line = words.join(" ");
        for unit in ["K", "M", "G", "T"] {
            line = line.replace(&format!(" {unit}Bytes"), " Bytes").replace(&format!(" {unit}bits"), " bits");
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// The output of a client without the line that a rate was not reached.
fn without_warning(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("warning: the rate was not reached")).collect()
}

#[test]
fn text_has_the_lines_of_iperf3() {
    if !has_iperf3() {
        return;
    }
    let Some(lab) = Lab::new(2) else { return };
    // A limited rate leaves the processor to other tests.
    let cases = ["-t 2", "-P 2 -O 1", "--bidir", "-u", "-i 0", "-f m", "-u -R", "--timestamps=%H:%M:%S-"];
    for case in
        cases.map(|case| if case.contains("-t") { format!("{case} -b 10M") } else { format!("-t 1 -b 10M {case}") })
    {
        let case = &case[..];
        let reference = measure(&lab, "iperf3", "", case);
        // Other tests may keep the processor from a rate, which is a warning.
        let (client, server) = measure(&lab, WEIGHBRIDGE, "", case);
        let actual = (without_warning(&client), server);
        assert_eq!(mask_figures(&actual.0), mask_figures(&reference.0), "client: {case}\n{}", reference.0);
        // iperf3's server has an interval more, of the milliseconds after the end, and lines on streams as they come.
        let header = |text: &str| mask_figures(text).lines().take(5).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(header(&actual.1), header(&reference.1), "server: {case}");
    }
}

#[test]
fn json_can_be_imported() {
    let Some(lab) = Lab::new(2) else { return };
    let (client, server) = measure(&lab, WEIGHBRIDGE, "-J", "-t 0.3 -b 10M -J --get-server-output");
    let server = parse(&server);
    // A server knows its own CPU time, and not that of the client, nor the rate at which it sends.
    let cpu = &server["end"]["cpu_utilization_percent"];
    assert!(cpu["host_total"].as_f64().unwrap() > 0.0 && cpu["remote_total"].is_null(), "{cpu}");
    assert!(server["start"]["test_start"]["target_bitrate"].is_null(), "{server}");
    assert!(parse(&client)["server_output_json"]["end"]["sum_received"]["bytes"].as_u64().unwrap() > 0);
    lab.write("report.json", &client);
    let imported = lab.run("import report.json --into R");
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let summary = lab.run("summary R");
    assert!(summary.out.contains("iperf3-json"), "{summary:?}");
}

#[test]
fn options_are_those_of_iperf3() {
    let line = "-t 0.3 -J -w 64K -M 1000 -C reno -S 0x10 -N -4 -l 10K -A 0 -B 10.77.0.1 -T name";
    let Some((client, _)) = measure_here(line) else { return };
    let report = parse(&client);
    let start = &report["start"];
    assert_eq!(report["title"], "name");
    assert_eq!((&start["test_start"]["blksize"], &start["test_start"]["tos"]), (&10_240.into(), &16.into()), "{start}");
    assert_eq!((&start["sock_bufsize"], &start["sndbuf_actual"]), (&65_536.into(), &131_072.into()), "{start}");
    assert_eq!(start["connected"][0]["local_host"], CLIENT.v4().to_string(), "{start}");
    assert_eq!(start["connected"][0]["remote_port"], PORT, "{start}");
    assert_eq!(report["end"]["sender_tcp_congestion"], "reno");
    assert_eq!((&start["tcp_mss"], &start["tcp_mss_default"]), (&1000.into(), &Value::Null), "{start}");
}

#[test]
fn further_options_do_what_they_do_in_iperf3() {
    let Some(lab) = Lab::new(2) else { return };
    let json = |options: &str| parse(&measure(&lab, WEIGHBRIDGE, "", &format!("-t 1 -J {options}")).0);
    let report = json("--cport 40000 -P 2 --bidir -b 1M --dscp af11 --extra-data more --repeating-payload");
    let ports = report["start"]["connected"].as_array().unwrap().iter().map(|one| one["local_port"].as_u64().unwrap());
    assert_eq!(ports.collect::<Vec<_>>(), [40_000, 40_001, 40_002, 40_003]);
    assert_eq!((&report["start"]["test_start"]["tos"], &report["extra_data"]), (&40.into(), &"more".into()));
    let blocks = |report: &Value| report["end"]["sum_sent"]["bytes"].as_u64().unwrap() / 1000;
    // Ten blocks at once, of which the last burst may have begun with the end of the window.
    for options in ["-b 800k/10", "-b 800k --pacing-timer 100k"] {
        let sent = blocks(&json(&format!("{options} -l 1000")));
        assert!(sent.is_multiple_of(10) && (50..=110).contains(&sent), "{options}: {sent}");
    }
    // The kernel paces what the program sends as fast as it can.
    let rate = json("--fq-rate 20M")["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!(rate < 60e6, "{rate}");
    // Larger than a packet on the route.
    let server = serve(&lab, WEIGHBRIDGE, "net iperf3 -s -1", PORT);
    let ran = lab.run(&format!("net iperf3 -c {} -u -l 9000 --dont-fragment --udp-counters-64bit -t 1", SERVER.v4()));
    assert!(ran.code == Some(1) && ran.err.contains("Message too long"), "{ran:?}");
    drop(server);
}

#[test]
fn a_verbose_test_names_its_parameters_and_resources() {
    if !has_iperf3() {
        return;
    }
    let Some(lab) = Lab::new(2) else { return };
    // Of the kernel's names and the control connection's segments nothing is compared.
    let lines = |text: &str| {
        let lines = mask_figures(text);
        let lines = lines.lines().filter(|line| {
            !["iperf", "weighbridge", "Linux", "Control", "Setting"].iter().any(|start| line.starts_with(start))
        });
        let mut lines: Vec<String> = lines.filter(|line| !line.contains("Cookie")).map(str::to_owned).collect();
        // iperf3 prints the segment size before the connection is open.
        lines.sort();
        lines
    };
    for case in ["-V -t 1 -b 10M", "-V -t 1 -u -b 1M"] {
        let reference = measure(&lab, "iperf3", "", case);
        let actual = measure(&lab, WEIGHBRIDGE, "", case);
        let cpu = |line: &String| line.starts_with("CPU Utilization");
        let (reference, actual) = (lines(&reference.0), lines(&actual.0));
        assert!(actual.iter().any(cpu), "{actual:?}");
        let without_cpu = |lines: Vec<String>| lines.into_iter().filter(|line| !cpu(line)).collect::<Vec<_>>();
        assert_eq!(without_cpu(actual), without_cpu(reference), "{case}");
    }
}

#[test]
fn a_silent_or_unacknowledged_connection_ends_a_test() {
    let Some(lab) = Lab::with_nft(2) else { return };
    for (options, expected) in [("-R --rcv-timeout 500", "timed out"), ("--snd-timeout 500", "timed out")] {
        let server = serve(&lab, WEIGHBRIDGE, "net iperf3 -s -1", PORT);
        let client = lab.start(CLIENT, &format!("net iperf3 -c {} -t 20 -b 10M {options}", SERVER.v4()));
        std::thread::sleep(std::time::Duration::from_millis(1500));
        // The control connection has the same port, and small packets.
        lab.drop(SERVER, "ip length > 900");
        lab.drop(CLIENT, "ip length > 900");
        let ran = client.finish();
        assert!(ran.code == Some(1) && ran.err.contains(expected), "{options}: {ran:?}");
        lab.stop_dropping(SERVER);
        lab.stop_dropping(CLIENT);
        drop(server);
    }
}

#[test]
fn a_server_limits_the_rate_and_the_time_without_clients() {
    let Some(lab) = Lab::new(2) else { return };
    let server = serve(&lab, WEIGHBRIDGE, "net iperf3 -s --server-bitrate-limit 20M/1", PORT);
    // As requested, or as measured.
    for options in ["-b 15M -P 2", "-t 20 --fq-rate 100M"] {
        let ran = lab.run(&format!("net iperf3 -c {} {options} -J", SERVER.v4()));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(parse(&ran.out)["error"].as_str().unwrap().contains("--server-bitrate-limit"), "{ran:?}");
    }
    let ran = lab.run(&format!("net iperf3 -c {} -b 5M -P 2 -t 1", SERVER.v4()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    drop(server);
    let idle = lab.run("net iperf3 -s -1 --idle-timeout 1");
    assert_eq!(idle.code, Some(0), "{idle:?}");
}

#[test]
fn a_server_runs_in_the_background() {
    let Some(lab) = Lab::new(2) else { return };
    let mut command = lab.command(SERVER, WEIGHBRIDGE);
    command.args("net iperf3 -s -1 -D".split_whitespace());
    let started = Program::start(command, &lab.path("daemon")).finish();
    assert_eq!(started.code, Some(0), "{started:?}");
    eventually("the server listens", || {
        let listening = lab.network.run(SERVER, &["ss", "-Hltn", "sport", "=", ":5201"])?;
        if listening.is_empty() { Err("not yet".to_owned()) } else { Ok(()) }
    });
    let (_, pid) = started.err.trim().rsplit_once(' ').unwrap();
    let process = format!("/proc/{}", pid.parse::<u32>().unwrap());
    let ran = lab.run(&format!("net iperf3 -c {} -t 0.3", SERVER.v4()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    eventually(
        "the server ends",
        || {
            if std::path::Path::new(&process).exists() { Err(process.clone()) } else { Ok(()) }
        },
    );
}

#[test]
fn what_is_not_supported_is_refused_with_the_reason() {
    let Some(lab) = Lab::new(2) else { return };
    for (options, reason) in [
        ("-I file", "-I is not supported: -D prints"),
        ("-F file", "-F is not supported: messages have generated content"),
        ("--bind-dev eth0", "--bind-dev is not supported"),
        ("-d", "-d is not supported"),
        ("-X name --sctp", "-X is not supported"),
        ("--nstreams 2 --sctp", "--nstreams is not supported"),
        ("-L 7", "-L is not supported"),
        ("-Z", "-Z is not supported: messages are copied"),
        ("--username me", "--username is not supported: client and server prove that they know a token"),
    ] {
        let ran = lab.run(&format!("net iperf3 -c {} {options}", SERVER.v4()));
        assert!(ran.code == Some(1) && ran.err.contains(reason), "{options}: {ran:?}");
    }
    assert!(lab.run("net iperf3 --version").out.contains("with the options of iperf3 3.12"));
}

#[test]
fn output_is_streamed_or_appended_to_a_file() {
    let Some(lab) = Lab::new(2) else { return };
    let (stream, _) = measure(&lab, WEIGHBRIDGE, "", "-t 0.4 -i 0.2 --json-stream");
    let events: Vec<Value> = stream.lines().map(parse).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["start", "interval", "interval", "end"]);
    // What the sender counts after the last interval is in it.
    let bytes = |sum: &Value| sum["bytes"].as_u64().unwrap();
    let intervals = events[1..3].iter().map(|event| bytes(&event["data"]["sum"])).sum::<u64>();
    assert_eq!(intervals, bytes(&events[3]["data"]["sum_sent"]), "{stream}");
    for _ in 0..2 {
        let (out, _) = measure(&lab, WEIGHBRIDGE, "", "-t 0.3 --logfile log");
        assert_eq!(out, "");
    }
    let log = std::fs::read_to_string(lab.path("log")).unwrap();
    assert_eq!(log.matches("iperf Done.").count(), 2, "{log}");
}

#[test]
fn ipv6_is_used_on_request() {
    let Some(lab) = Lab::new(2) else { return };
    let server = serve(&lab, WEIGHBRIDGE, "net iperf3 -s -1", PORT);
    let ran = lab.run(&format!("net iperf3 -6 -c {} -t 0.3 -J", SERVER.v6()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(parse(&ran.out)["start"]["connected"][0]["remote_host"], SERVER.v6().to_string());
    drop(server);
    let ran = lab.run(&format!("net iperf3 -6 -c {} -t 1", SERVER.v4()));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("has no address of the requested family (IPv6)"), "{ran:?}");
}

/// The CPUs on which the strands of a process may run.
fn strand_cpus(pid: u32) -> Result<Vec<String>, String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| error.to_string())?;
    let statuses = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    let strands = statuses.filter(|status| field(status, "Name:").starts_with("strand-"));
    Ok(strands.map(|status| field(&status, "Cpus_allowed_list:")).collect())
}

#[test]
fn a_client_sets_the_cpu_of_the_server_too() {
    let Some(lab) = Lab::new(2) else { return };
    let last = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() - 1);
    for (own, expected) in [("", last), ("-A 0", 0)] {
        let server = serve(&lab, WEIGHBRIDGE, &format!("net iperf3 -s -1 {own}"), PORT);
        let client = lab.start(CLIENT, &format!("net iperf3 -c {} -t 20 -A 0,{last}", SERVER.v4()));
        for (pid, expected) in [(server.pid(), expected), (client.pid(), 0)] {
            eventually("strands are pinned", || {
                let cpus = strand_cpus(pid)?;
                if cpus == [expected.to_string()] { Ok(()) } else { Err(format!("{cpus:?}")) }
            });
        }
        client.signal(rustix::process::Signal::INT);
        assert_eq!(client.finish().code, Some(1));
        server.finish();
    }
    let server = serve(&lab, WEIGHBRIDGE, "net iperf3 -s -1", PORT);
    let ran = lab.run(&format!("net iperf3 -c {} -t 1 -A 0,4096", SERVER.v4()));
    assert!(ran.code != Some(0) && ran.err.contains("CPU 4096: the server's are 0 to"), "{ran:?}");
    server.finish();
}

#[test]
fn errors_are_in_the_json_too() {
    let Some(lab) = Lab::new(2) else { return };
    let ran = lab.run(&format!("net iperf3 -c {} -J", SERVER.v4()));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let error = parse(&ran.out)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("connection refused"), "{error}");
    for (line, expected) in [
        ("-c no.such.host.invalid -J", "cannot resolve host"),
        (&format!("-c {} -u -l 8 -J", SERVER.v4())[..], "expected 16 to 65507 bytes"),
        ("-s -B 198.51.100.1 -J", "cannot listen on"),
    ] {
        let ran = lab.run(&format!("net iperf3 {line}"));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(parse(&ran.out)["error"].as_str().unwrap().contains(expected), "{ran:?}");
    }
    assert!(ran.err.contains("help: `weighbridge net iperf3 -s` must run there"), "{ran:?}");
    for (line, message) in [
        ("-c h -s", "mutually exclusive"),
        ("-c h -P 129", "expected a number from 1 to 128"),
        ("-c h -b 1M/0", "expected 1 to 1000 blocks after `/`"),
        ("-c h -u -l 70000", "expected 16 to 65507 bytes"),
        ("-c h -u -l 8", "expected 16 to 65507 bytes"),
        ("-s -t 5", "mutually exclusive"),
    ] {
        let ran = lab.run(&format!("net iperf3 {line}").replace(" h", &format!(" {}", SERVER.v4())));
        assert!(ran.code == Some(1) && ran.err.contains(message), "{line}: {ran:?}");
    }
}

#[test]
fn losses_and_jitter_are_those_of_the_receiver() {
    let Some(lab) = Lab::with_nft(2) else { return };
    // One datagram in ten.
    lab.drop(SERVER, "meta l4proto udp numgen inc mod 10 0");
    for amount in ["-t 2", "-k 2000"] {
        let server = serve(&lab, WEIGHBRIDGE, "net iperf3 -s -1", PORT);
        let ran = lab.run(&format!("net iperf3 -c {} -u -b 4M -l 500 {amount} -J", SERVER.v4()));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let sum = &parse(&ran.out)["end"]["sum"];
        let lost = sum["lost_percent"].as_f64().unwrap();
        assert!((9.0..11.0).contains(&lost), "{sum}");
        assert!(sum["jitter_ms"].as_f64().unwrap() > 0.0, "{sum}");
        let (packets, bytes) = (sum["packets"].as_u64().unwrap(), sum["bytes"].as_u64().unwrap());
        assert_eq!(packets * 500, bytes, "{sum}");
        // How many fit in a time depends on the machine's scheduling.
        assert!(packets == 2000 || (amount == "-t 2" && packets < 2000), "{sum}");
        drop(server);
    }
}

#[test]
fn a_real_iperf3_is_recognised() {
    if !has_iperf3() {
        return;
    }
    let Some(lab) = Lab::new(3) else { return };
    let foreign = serve(&lab, "iperf3", "-s", PORT);
    let ran = lab.run(&format!("net iperf3 -c {}", SERVER.v4()));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("is iperf3, not `weighbridge net iperf3`"), "{ran:?}");
    drop(foreign);
    let actual = serve(&lab, WEIGHBRIDGE, "net iperf3 -s -p 5202", 5202);
    let mut command = lab.command(Host(2), "iperf3");
    let words = format!("-c {} -p 5202", SERVER.v4());
    let refused = Program::start(
        {
            command.args(words.split_whitespace());
            command
        },
        &lab.path("their-client"),
    )
    .finish();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    actual.wait_for_stderr("is iperf3, not `weighbridge net iperf3`");
}

#[test]
fn finite_amounts_are_exact_over_all_streams() {
    let Some(lab) = Lab::new(2) else { return };
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}"));
    for (line, bytes) in [("-n 5M -P 3", 5 << 20), ("-k 7 -P 3", 7 * (128 << 10)), ("-n 1M -P 2 -R", 1 << 20)] {
        let end = parse(&measure(&lab, WEIGHBRIDGE, "", &format!("{line} -J")).0)["end"].clone();
        let moved = (number(&end["sum_sent"]["bytes"]), number(&end["sum_received"]["bytes"]));
        assert_eq!(moved, (bytes, bytes), "{line}: {end}");
    }
    // Every datagram is received or lost, also those behind the last that arrived.
    let end = parse(&measure(&lab, WEIGHBRIDGE, "", "-n 20M -P 2 -u -b 0 -l 8k -J").0)["end"].clone();
    for stream in end["streams"].as_array().unwrap() {
        assert_eq!(number(&stream["udp"]["packets"]), 1280, "{end}");
    }
    assert_eq!(number(&end["sum_sent"]["bytes"]), 20 << 20, "{end}");
    assert_eq!(number(&end["sum"]["bytes"]), 20 << 20, "{end}");
}

#[test]
fn an_interrupted_test_has_the_figures_until_then() {
    let Some(lab) = Lab::new(2) else { return };
    let server = serve(&lab, WEIGHBRIDGE, "net iperf3 -s -1", PORT);
    let client = lab.start(CLIENT, &format!("net iperf3 -c {} -t 20 -b 100M -J -R", SERVER.v4()));
    std::thread::sleep(std::time::Duration::from_millis(1600));
    client.signal(rustix::process::Signal::INT);
    let ran = client.finish();
    // The status of iperf3, as scripts expect it.
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let report = parse(&ran.out);
    assert_eq!(report["error"], "interrupt - the client has terminated");
    let seconds = report["end"]["sum_received"]["seconds"].as_f64().unwrap();
    // Above the last whole interval; how far depends on when the signal arrives.
    assert!(seconds > 1.01, "{seconds}");
    drop(server);
}
