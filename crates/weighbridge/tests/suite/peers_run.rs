//! `peers run`: the cells of a matrix are measured, and endpoints that lie or fail are found.

use std::path::Path;

use serde_json::Value;

use crate::archive::rerun;
use crate::lab::{CommandResult, Lab};
use crate::ssh;

/// Flags for one small sample.
pub(crate) const QUICK: &str = "--samples 1 --warm-up 0 --attempts 1 --iterations 3 --upload-bytes 4m --download-bytes 4m \
    --latency-iterations 20";

/// Flags for two of them.
pub(crate) fn quick_twice() -> String {
    QUICK.replace("--samples 1", "--samples 2")
}

/// Flags for a sample of transfers that take long enough to tell what their times consist of.
const LARGE: &str = "--samples 1 --warm-up 0 --attempts 1 --iterations 5 --upload-bytes 64m --download-bytes 64m \
    --latency-iterations 20";

/// The program of an endpoint, as a part of a command.
struct Program {
    words: String,
    keys: String,
}

/// The endpoint in Python, as a script at a path.
pub(crate) fn script_matrix(script: &str, ids: &[&str]) -> String {
    let keys = format!("files = [\"{script}\"]");
    matrix_of(&Program { words: format!("\"python3\", \"{script}\""), keys }, ids)
}

/// A matrix of endpoints, each with a fault or without, with plain TCP.
pub(crate) fn matrix(ids: &[&str]) -> String {
    let keys = "duration = true".to_owned();
    matrix_of(&Program { words: format!("\"{}\"", wb_test_endpoint::PROGRAM), keys }, ids)
}

fn matrix_of(program: &Program, ids: &[&str]) -> String {
    let Program { words, keys } = program;
    let endpoint = |id: &&str| {
        let fault = if *id == "good" || *id == "better" { String::new() } else { format!(r#""--fault", "{id}","#) };
        let axes = r#"["--transport", "{transport}"], ["--muxer", "{muxer}"]"#;
        format!(
            r#"
[[endpoints]]
id = "{id}"
supports = {{ transport = ["tcp", "udp"], muxer = ["none"] }}
{keys}
listener = {{ command = [{words}, "listen", {fault} {axes}, "--host", "{{host}}"] }}
dialer = {{ command = [{words}, "dial", {fault} {axes}, "--address", "{{address}}", ["--send", "{{send}}",
    "--receive", "{{receive}}"], ["--duration", "{{duration}}", "--interval", "{{interval}}", "--direction", "{{direction}}"],
    "--iterations", "{{iterations}}"] }}
"#
        )
    };
    let endpoints: String = ids.iter().map(endpoint).collect();
    format!(
        r#"
axes = ["transport", "muxer"]

[[rules]]
when = {{ transport = "udp" }}
drop = ["muxer"]
{endpoints}"#
    )
}

fn lab(ids: &[&str]) -> Lab {
    let lab = Lab::new();
    lab.write("peers.toml", &matrix(ids));
    lab
}

/// The only cell of a run of one pair, with two small samples.
fn measure(dialer: &str, listener: &str) -> (CommandResult, Value) {
    measure_with(dialer, listener, QUICK)
}

/// The only cell of a run of one pair.
fn measure_with(dialer: &str, listener: &str, flags: &str) -> (CommandResult, Value) {
    let ids: Vec<&str> = if dialer == listener { vec![dialer] } else { vec![dialer, listener] };
    let lab = lab(&ids);
    let name = format!("{dialer}?x?{listener}?(tcp,?none)");
    let ran = lab.weighbridge(&format!("peers run peers.toml --select {name} --into R {flags}"));
    let study = lab.weighbridge("summary R --json").json();
    assert_eq!(lab.wait_for_processes(), [""; 0]);
    (ran, study["cells"][0].clone())
}

pub(crate) fn median(cell: &Value, metric: &str) -> f64 {
    let mut metrics = cell["metrics"].as_array().unwrap().iter();
    let found = metrics.find(|one| one["metric"]["name"] == metric).unwrap_or_else(|| panic!("{metric}: {cell:#}"));
    found["summary"]["median"].as_f64().unwrap_or_else(|| panic!("{metric}: {found:#}"))
}

/// Asserts that a latency is of round trips over a network. The endpoint connects for each of them, and that is what wakes
/// its listener up: only with it does an iteration contain all that a raw connection whose sides sleep does.
pub(crate) fn assert_round_trip(cell: &Value, metric: &str) {
    let [latency, connect, raw] = [metric, "connect", "raw-round-trip"].map(|metric| median(cell, metric));
    assert!(raw > 0.0 && latency + connect > raw, "{metric}: {latency} + {connect} ns, raw {raw} ns: {cell:#}");
}

#[test]
fn each_pair_is_measured_over_what_both_support() {
    let lab = lab(&["good", "better"]);
    let ran = lab.weighbridge(&format!("peers run peers.toml --into R --impl-ignore better {QUICK}")).expect_code(0);
    ran.expect_stdout("muxer=none, transport=tcp").expect_stdout("transport=udp");
    let study = lab.weighbridge("summary R --json").json();
    let cell = &study["cells"][0];
    assert!(median(cell, "upload") > 1e6 && median(cell, "download") > 1e6, "{cell:#}");
    assert_round_trip(cell, "round-trip");
    assert!((0.0..150.0).contains(&median(cell, "upload-of-ceiling")), "{cell:#}");
    assert!(median(cell, "connect") > 0.0 && median(cell, "first-byte") > 0.0, "{cell:#}");
    let ran = lab.weighbridge("peers report R").expect_code(0);
    ran.expect_stderr("files in R/peers-report");
    let results = std::fs::read_to_string(lab.path("R/peers-report/results.yaml")).unwrap();
    assert!(results.contains("name: good x good (tcp, none)") && results.contains("status: pass"), "{results}");
    assert!(lab.path("R/peers-report/boxplot-upload.png").is_file());
    // Resumed with more cells: the first two are complete, their samples stay.
    lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(0);
    let cells = lab.weighbridge("summary R --json").json()["cells"].as_array().unwrap().len();
    assert_eq!(cells, 8);
    lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(4).expect_stderr("nothing to do");
}

#[test]
fn endpoints_that_lie_are_found() {
    for (dialer, listener, gate, figures) in [
        ("header-16", "good", "work", "the listener reported"),
        ("sleep", "good", "work", "the listener reported"),
        ("good", "close-early", "work", "1.53 MiB received"),
        ("milliseconds", "good", "plausibility", "times in another unit"),
        ("kiloseconds", "good", "plausibility", "a raw TCP connection between the same CPUs reached"),
        ("drops-timeouts", "good", "work", "2 of 3 iterations were reported"),
        ("wrong-muxer", "good", "work", "muxer `other` was negotiated instead of `none`"),
        ("further-axis", "good", "work", "security `noise` was negotiated, which the cell does not have"),
        ("good", "further-axis", "work", "security `noise` was negotiated, which the cell does not have"),
        ("good", "wrong-muxer", "work", "muxer `other` was negotiated instead of `none`"),
    ] {
        let (ran, cell) = measure(dialer, listener);
        assert_eq!(ran.code, 3, "{}", ran.transcript());
        for attempt in cell["attempts"].as_array().unwrap() {
            let validity = &attempt["validity"];
            assert_eq!(validity["validity"], "invalid", "{dialer} x {listener}: {cell:#}");
            assert_eq!(validity["gate"], gate, "{dialer} x {listener}: {validity}");
            assert!(validity["figures"].as_str().unwrap().contains(figures), "{dialer} x {listener}: {validity}");
        }
    }
}

#[test]
fn times_that_are_not_those_of_the_transfers_are_found() {
    for (fault, gate, figures) in [
        // Their transfers are slow, so that no part of the time is beyond a raw connection, which another gate finds.
        ("half", "plausibility", "times that are divided"),
        ("third", "plausibility", "times that are divided"),
        ("half-durations", "plausibility", "times that are divided"),
        ("connecting", "plausibility", "in connecting that no iteration reports"),
        // What is measured comes after the transfer.
        ("early", "effort", "the time does not depend on them"),
    ] {
        let flags = LARGE.replace("--latency-iterations 20", "--latency-iterations 0").replace("64m", "32m");
        let (ran, cell) = measure_with(fault, "good", &flags);
        assert_eq!(ran.code, 3, "{}", ran.transcript());
        for attempt in cell["attempts"].as_array().unwrap() {
            let validity = &attempt["validity"];
            assert_eq!(validity["gate"], gate, "{fault}: {cell:#}");
            assert!(validity["figures"].as_str().unwrap().contains(figures), "{fault}: {validity}");
        }
    }
}

// The ratio of the shortest times of two sizes accused endpoints that take long to set up a stream.
#[test]
fn setting_up_each_stream_for_long_is_no_lie() {
    let (ran, cell) = measure_with("set-up", "good", &LARGE.replace("--iterations 5", "--iterations 10"));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let findings = cell["findings"].to_string();
    assert!(findings.contains("do not depend on the bytes") && findings.contains("GiB"), "{findings}");
}

// A UNIX socket crosses no interface, so the counters of interfaces contradict an honest endpoint.
#[test]
fn bytes_that_cross_no_interface_are_not_held_against_payload_that_stays_local() {
    let Some(lab) = Lab::with_own_network() else { return };
    let text = matrix(&["unix"]);
    lab.write("peers.toml", &text);
    let line = format!("peers run peers.toml --transport-select tcp {QUICK}");
    let ran = lab.weighbridge(&format!("{line} --into R")).expect_code(3);
    ran.expect_stderr("but the interfaces of the dialer's host counted");
    for payload in ["local", "transformed"] {
        lab.write("peers.toml", &text.replace("supports =", &format!("payload = \"{payload}\"\nsupports =")));
        lab.weighbridge(&format!("{line} --into {payload}")).expect_code(0);
        let cell = lab.weighbridge(&format!("summary {payload} --json")).json()["cells"][0].clone();
        assert!(cell.to_string().contains(&format!("the payload is {payload}")), "{cell:#}");
    }
    lab.write("peers.toml", &text.replace("supports =", "payload = \"remote\"\nsupports ="));
    lab.weighbridge(&format!("{line} --into X")).expect_code(1).expect_stderr("expected one of");
}

#[test]
fn both_sides_lying_alike_are_found_by_the_counters_of_the_kernel() {
    // In a network namespace of its own, where other tests move no bytes.
    let Some((hosts, _)) = ssh::lab(1) else { return };
    let lab = Lab::with_ssh(&hosts);
    lab.write("peers.toml", &matrix(&["lie"]));
    let line =
        format!("peers run peers.toml --transport-select tcp --hosts {} --into R {QUICK}", ssh::addresses(1..=1));
    ssh::weighbridge(&hosts, &lab, &line).expect_code(3);
    let validity = lab.weighbridge("summary R --json").json()["cells"][0]["attempts"][0]["validity"].clone();
    assert_eq!(validity["gate"], "work", "{validity}");
    let figures = validity["figures"].as_str().unwrap();
    assert!(figures.contains("but the interfaces of the dialer's host counted"), "{figures}");
}

#[test]
fn failures_are_typed_with_the_last_lines_of_the_logs() {
    for (dialer, listener, flags, failure) in [
        ("good", "never-ready", "", "timeout: `never-ready` accepted no connections within 1s"),
        ("good", "killed", "", "crash: the listener of `killed` ended with killed by signal 9"),
        ("killed-dialer", "good", "", "crash: upload-probe: killed by signal 9 after 1 of 3 iterations"),
    ] {
        let lab = lab(&[dialer, listener]);
        let text = std::fs::read_to_string(lab.path("peers.toml")).unwrap();
        lab.write("plan.toml", "[[peers]]\nfile = \"peers.toml\"\nready-limit = \"1s\"\niterations = 3\n");
        lab.write("peers.toml", &text);
        let name = format!("{dialer}?x?{listener}?(tcp,?none)");
        let ran = lab.weighbridge(&format!(
            "run --plan plan.toml --select {name} --into R --samples 1 --warm-up 0 --attempts 1 --retakes 0 {flags}"
        ));
        assert_eq!(ran.code, 3, "{}", ran.transcript());
        ran.expect_stdout(failure);
        assert_eq!(lab.wait_for_processes(), [""; 0]);
    }
}

#[test]
fn a_taken_port_is_reported_with_the_log_of_the_listener() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let lab = lab(&["good"]);
    let text = lab.read("peers.toml").replace("\"--host\", \"{host}\"", &format!("\"--taken\", \"{port}\""));
    lab.write("peers.toml", &text);
    let ran = lab.weighbridge(&format!("peers run peers.toml --into R --transport-select tcp {QUICK}")).expect_code(3);
    ran.expect_stderr("crash: `good` ended before it accepted connections; listener: ").expect_stderr("in use");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn a_cell_whose_command_was_changed_is_not_resumed() {
    let lab = lab(&["good"]);
    let line =
        "peers run peers.toml --into R --transport-select tcp --iterations 2 --upload-bytes 1m --download-bytes 0";
    lab.weighbridge(&format!("{line} --samples 1 --warm-up 0 --retakes 0")).expect_code(0);
    let text = lab.read("peers.toml");
    lab.write("peers.toml", &text.replace("\"dial\",", "\"dial\", \"--fault\", \"none\","));
    let ran = lab.weighbridge(&format!("{line} --samples 2 --warm-up 0 --retakes 0")).expect_code(1);
    ran.expect_stderr("dialer definition");
    // What only builds it does not matter.
    lab.write("peers.toml", &text.replace("supports =", "build = [\"make\"]\nsupports ="));
    lab.weighbridge(&format!("{line} --samples 2 --warm-up 0 --retakes 0")).expect_code(0);
}

#[test]
fn noise_and_an_exit_by_sigterm_do_not_matter() {
    for (dialer, finding) in [
        ("noise", "lines of standard output were not JSON"),
        ("binary", "lines of standard output were not JSON"),
        ("exit-143", "ended with exit status 143"),
    ] {
        let (ran, cell) = measure(dialer, "good");
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        assert!(cell.to_string().contains(finding), "{dialer}: {cell:#}");
    }
}

#[test]
fn what_cannot_be_started_is_unsupported_and_the_others_are_measured() {
    let lab = lab(&["good"]);
    let text = std::fs::read_to_string(lab.path("peers.toml")).unwrap();
    let missing = r#"
[[endpoints]]
id = "missing"
supports = { transport = ["udp"] }
listener = { command = ["./none", "listen"] }
dialer = { command = ["./none", "dial"] }
"#;
    lab.write("peers.toml", &format!("{text}{missing}"));
    let ran = lab.weighbridge(&format!("peers run peers.toml --into R --transport-select udp {QUICK}")).expect_code(3);
    ran.expect_stdout("no such program on local");
    let outcomes: Vec<Value> = lab.weighbridge("summary R --json").json()["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["outcome"]["outcome"].clone())
        .collect();
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "unsupported").count(), 3, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| *outcome == "unsupported").count() + 1, outcomes.len());
}

#[test]
fn expected_failures_are_named_whether_they_fail_or_not() {
    let lab = lab(&["good", "header-16"]);
    let text = std::fs::read_to_string(lab.path("peers.toml")).unwrap();
    let expect = |cells: &str, until: &str| {
        format!("{text}\n[[expected-failures]]\ncells = \"{cells}\"\nreason = \"issue 7\"\nuntil = \"{until}\"\n")
    };
    let select = "--test-select glob:header-16?x?good* --transport-select tcp";
    let cases = [
        ("header-16 x good", "2999-01-01", 0, "failed as expected until 2999-01-01"),
        ("header-16 x good", "2020-01-01", 3, "expected to fail until 2020-01-01, which is over"),
        ("good x good", "2999-01-01", 0, "passed, but expected to fail until 2999-01-01"),
    ];
    for (number, (cells, until, code, message)) in cases.into_iter().enumerate() {
        lab.write("peers.toml", &expect(cells, until));
        let select = if cells == "good x good" { "--test-select glob:good?x?good?(tcp*" } else { select };
        let ran = lab.weighbridge(&format!("peers run peers.toml {select} --into R{number} {QUICK}"));
        assert_eq!(ran.code, code, "{}", ran.transcript());
        ran.expect_stderr(message).expect_stderr("issue 7");
    }
    lab.write("peers.toml", &expect("~none", "2999-01-01"));
    let ran = lab.weighbridge("peers run peers.toml --into X");
    ran.expect_code(1).expect_stderr("unknown alias").expect_stderr("1 │ peers run peers.toml\n");
}

#[test]
fn invalid_matrices_are_refused_before_anything_is_measured() {
    let lab = lab(&["good"]);
    for (line, message) in [
        ("peers run none.toml", "none.toml"),
        ("peers run peers.toml --test-select ~none", "unknown alias"),
        ("peers run peers.toml --test-select nothing", "no cell of the matrix is selected"),
        ("run peers", "missing `file`"),
    ] {
        let ran = lab.weighbridge(&format!("{line} --into R"));
        assert!(ran.code == 1 || ran.code == 4, "{}", ran.transcript());
        ran.expect_stderr(message);
        assert!(!lab.path("R").exists(), "{line}");
    }
}

#[test]
fn a_killed_run_is_resumed_in_the_middle_of_the_matrix() {
    let lab = lab(&["good", "better"]);
    let line = format!("peers run peers.toml --into R {}", quick_twice());
    let mut child = lab.start(&line);
    let ended = || {
        std::fs::read_to_string(lab.path("R/journal.jsonl"))
            .is_ok_and(|text| text.matches("\"attempt-ended\"").count() >= 3)
    };
    wb_test_net::wait_until("three attempts to end", ended);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lab.read("R/journal.jsonl").matches("\"attempt-ended\"").count();
    lab.weighbridge(&line).expect_code(0);
    let study = lab.weighbridge("summary R --json").json();
    let attempts = |cell: &Value| cell["attempts"].as_array().unwrap().len();
    let all: usize = study["cells"].as_array().unwrap().iter().map(attempts).sum();
    // Eight cells of two samples; the attempt that was killed may have left an entry, none was repeated.
    assert!((16..=17).contains(&all) && before < 16, "{all} attempts, {before} before the kill");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn both_sides_are_measured_on_different_machines() {
    let Some((hosts, _)) = ssh::lab(2) else { return };
    let lab = Lab::with_ssh(&hosts);
    lab.write("peers.toml", &matrix(&["good"]));
    let sides = "--dialer-on host1 --listener-on host2";
    let line = format!("peers run peers.toml --hosts {} {sides} --into R {QUICK}", ssh::addresses(1..=2));
    ssh::weighbridge(&hosts, &lab, &line).expect_code(0);
    let study = lab.weighbridge("summary R --json").json();
    let cell = &study["cells"][0];
    assert_eq!(cell["params"]["sides"], "apart", "{cell:#}");
    assert!(median(cell, "upload") > 1e6, "{cell:#}");
    let folder = cell["attempts"][0]["folder"].as_str().unwrap();
    let address = wb_test_net::Host(2).v4().to_string();
    assert!(lab.read(format!("R/{folder}/listener.stdout")).contains(&address), "{cell:#}");
    hosts.wait_until_idle(wb_test_net::Host(2));
}

#[test]
fn hosts_may_be_called_by_the_names_of_the_ssh_configuration() {
    let Some((hosts, _)) = ssh::lab(2) else { return };
    let lab = Lab::with_ssh(&hosts);
    lab.write("peers.toml", &matrix(&["good"]));
    let alias = |name: &str, host: u8| format!("Host {name}\n  HostName {}\n", wb_test_net::Host(host).v4());
    let config = std::fs::read_to_string(hosts.path("config")).unwrap();
    lab.write("ssh-config", &format!("{}{}Host *\n{config}", alias("near", 1), alias("far", 2)));
    let sides = "--dialer-on near --listener-on far --transport-select tcp";
    let line = format!("peers run peers.toml --hosts near,far {sides} --into R --ssh-config ssh-config {QUICK}");
    lab.weighbridge(&line).expect_code(0);
    let cell = lab.weighbridge("summary R --json").json()["cells"][0].clone();
    let folder = cell["attempts"][0]["folder"].as_str().unwrap();
    let address = wb_test_net::Host(2).v4().to_string();
    assert!(lab.read(format!("R/{folder}/listener.stdout")).contains(&address), "{cell:#}");
    hosts.wait_until_idle(wb_test_net::Host(2));
}

#[test]
fn a_listener_whose_host_is_disconnected_is_lost() {
    let Some((hosts, _)) = ssh::lab(2) else { return };
    let lab = Lab::with_ssh(&hosts);
    lab.write("peers.toml", &matrix(&["never-ready"]));
    let sides = "--dialer-on host1 --listener-on host2 --transport-select tcp";
    let line = format!("peers run peers.toml --hosts {} {sides} --into R {QUICK}", ssh::addresses(1..=2));
    let mut command = lab.command(&format!("{line} --ssh-config {}", hosts.path("config").display()));
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let listens = || {
        let processes = hosts.network.processes(wb_test_net::Host(2));
        let command = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        processes.iter().any(|pid| command(pid).contains("never-ready"))
    };
    wb_test_net::wait_until("the listener", listens);
    hosts.network.disconnect(wb_test_net::Host(2));
    let ran = CommandResult::wait_for(child).expect_code(3);
    let cell = lab.weighbridge("summary R --json").json()["cells"][0].clone();
    let outcome = &cell["attempts"][0]["outcome"];
    assert_eq!((&outcome["outcome"], &outcome["worker"]), (&"lost".into(), &"host2".into()), "{}", ran.transcript());
    hosts.wait_until_idle(wb_test_net::Host(1));
    hosts.wait_until_idle(wb_test_net::Host(2));
}

#[test]
fn a_snapshot_measures_the_matrix_again_with_the_packed_endpoints() {
    let lab = Lab::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/endpoint.py");
    lab.write("peers.toml", &script_matrix(script, &["good"]));
    lab.weighbridge(&format!("peers run peers.toml --into R {} --transport-select tcp", quick_twice())).expect_code(0);
    let inputs = lab.read_json("R/inputs.json");
    assert_eq!(inputs["programs"][0]["as"], "programs/peers/fixtures/endpoint.py", "{inputs:#}");
    lab.weighbridge("snapshot R -o S.tar.gz").expect_code(0);
    lab.weighbridge("unpack S.tar.gz -C elsewhere").expect_code(0);
    let peers = lab.read("elsewhere/inputs/peers/peers.toml");
    assert!(!peers.contains("tests/fixtures/endpoint.py"), "{peers}");
    rerun(&lab, "elsewhere", &[]).expect_code(0);
    let study = lab.weighbridge("summary elsewhere/rerun-1 --json").json();
    assert_eq!(study["cells"][0]["attempts"][1]["counted"], true, "{study:#}");
    // The same matrix is compared, wherever its file is.
    let checks = lab.weighbridge("compare elsewhere/run elsewhere/rerun-1 --json").json()["checks"].clone();
    let checks = checks.as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["verdict"] != "incomparable"), "{checks:#?}");
}

/// A matrix of endpoints in the dialect of libp2p's suites.
fn suite_matrix(dialect: &str, ids: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/suite_endpoint.py");
    let script = script.display();
    let unified = if dialect == "unified-testing" { r#", "unified""# } else { "" };
    let endpoint = |id: &&str| {
        format!(
            r#"
[[endpoints]]
id = "{id}"
dialect = "{dialect}"
supports = {{ transport = ["tcp"] }}
listener = {{ command = ["python3", "{script}", "{id}"{unified}] }}
dialer = {{ command = ["python3", "{script}", "{id}"{unified}] }}
"#
        )
    };
    format!("axes = [\"transport\"]\n{}", ids.iter().map(endpoint).collect::<String>())
}

#[test]
fn endpoints_of_the_suites_are_measured() {
    for dialect in ["test-plans", "unified-testing"] {
        let lab = Lab::new();
        lab.write("peers.toml", &suite_matrix(dialect, &["good"]));
        lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(0);
        let cell = lab.weighbridge("summary R --json").json()["cells"][0].clone();
        assert!(median(&cell, "upload") > 1e6 && median(&cell, "download") > 1e6, "{cell:#}");
        assert!(median(&cell, "round-trip") > median(&cell, "raw-round-trip"), "{cell:#}");
        assert_eq!(lab.wait_for_processes(), [""; 0]);
    }
}

#[test]
fn lies_and_failures_of_endpoints_of_the_suites_are_found() {
    for (id, text) in [
        ("empty-download", "invalid"),
        ("microseconds", "times in another unit"),
        ("redis-gone", "the redis of the endpoints ended with exit status 0"),
    ] {
        let Some(lab) = Lab::with_own_network() else { return };
        lab.write("peers.toml", &suite_matrix("test-plans", &[id]));
        let ran = lab.weighbridge(&format!("peers run peers.toml --into R {QUICK}")).expect_code(3);
        let cell = lab.weighbridge("summary R --json").json()["cells"][0].clone();
        assert!(cell.to_string().contains(text), "{id}: {cell:#}\n{}", ran.transcript());
        assert_eq!(lab.wait_for_processes(), [""; 0]);
    }
}

#[test]
#[ignore = "needs the endpoints that ship: make test-peers"]
fn shipped_endpoints_are_measured_and_measured_again_from_a_snapshot() {
    let lab = Lab::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let file = root.join("examples/peers/libp2p.toml");
    let select = "--impl-select rust-libp2p|go-libp2p --transport-ignore ws --baseline-select weighbridge|quic-go";
    let samples = "--samples 1 --warm-up 0 --retakes 0";
    let line = format!("peers run {} {select} {samples} --into R", file.display());
    lab.weighbridge(&line).expect_code(0);
    let study = lab.weighbridge("summary R --json").json();
    // Over tcp 4 + 2 + 2 + 2, over QUIC 4; the engine over three transports, and quic-go.
    assert_eq!(study["cells"].as_array().unwrap().len(), 18, "{study:#}");
    lab.weighbridge("peers report R").expect_code(0);
    lab.weighbridge("snapshot R -o S.tar.gz").expect_code(0);
    lab.weighbridge("unpack S.tar.gz -C elsewhere").expect_code(0);
    rerun(&lab, "elsewhere", &[]).expect_code(0);
}

#[test]
fn versions_of_an_implementation_are_compared_within_one_matrix() {
    let lab = lab(&["good", "better"]);
    let flags = "--samples 6 --warm-up 0 --iterations 2 --upload-bytes 1m --download-bytes 1m --latency-iterations 5";
    let select = "--transport-select tcp --impl-select good|better";
    lab.weighbridge(&format!("peers run peers.toml --into R {select} {flags}")).expect_code(0);
    let compared = |pair: &str| lab.weighbridge(&format!("compare R R --map-value {pair} --json"));
    let ran = compared("good=better").expect_code_of(&[0, 2]);
    let checks = ran.json()["checks"].clone();
    let named = |check: &Value| check["id"].as_str().unwrap().contains("dialer=good,listener=good");
    let means: Vec<&Value> = checks.as_array().unwrap().iter().filter(|check| named(check)).collect();
    assert!(!means.is_empty() && means.iter().all(|check| check["verdict"] != "incomparable"), "{means:#?}");
    let within = lab.weighbridge("compare R --by dialer --json").expect_code_of(&[0, 2]).json();
    let sides =
        |check: &Value| (check["primary"] == true && check["statistic"] == "mean").then(|| check["sides"].clone());
    let sides: Vec<Value> = within["checks"].as_array().unwrap().iter().filter_map(sides).collect();
    // Upload, download and latency, from each of both listeners.
    assert_eq!(sides, vec![serde_json::json!(["dialer=good", "dialer=better"]); 6], "{within:#}");
    compared("good=bett").expect_code(1).expect_stderr("unknown value of an axis `bett`");
}

#[test]
fn a_container_engine_that_does_not_run_makes_its_cells_unsupported_at_once() {
    let lab = Lab::new();
    lab.program("docker", "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n");
    let text = matrix(&["good"]).replace("supports =", "container = { image = \"none\" }\nsupports =");
    lab.write("peers.toml", &text);
    let ran = lab.weighbridge(&format!("peers run peers.toml --into R --container-engine docker {QUICK}"));
    ran.expect_code(3).expect_stdout("`docker` on local lacks a container engine that runs");
    let cells = lab.weighbridge("summary R --json").json()["cells"].clone();
    for cell in cells.as_array().unwrap() {
        assert_eq!(
            (&cell["outcome"]["outcome"], cell["attempts"].as_array().unwrap().len()),
            (&"unsupported".into(), 0)
        );
    }
}

#[test]
fn a_selection_that_matches_nothing_is_named_beside_others() {
    let lab = lab(&["good"]);
    let line = format!("peers run peers.toml --select *udp* --select nosuch* --into R {QUICK}");
    lab.weighbridge(&line).expect_code(0).expect_stderr("warning: no cell matches `nosuch*` of `--select`");
    // The name of a cell in the matrix, which selects it, is no part of its name in the plan.
    let line = format!("peers run peers.toml --select good?x?good?(tcp,* --into S {QUICK}");
    let ran = lab.weighbridge(&line).expect_code(0);
    assert!(!ran.err.contains("no cell matches"), "{}", ran.err);
    let ran = lab.weighbridge("peers run peers.toml --select nosuch* --into T").expect_code(4);
    ran.expect_stderr("no cell matches `nosuch*`\nhelp: `weighbridge peers list peers.toml` lists all cells");
}
