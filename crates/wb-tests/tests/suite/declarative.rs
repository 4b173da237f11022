//! Declarative tests: every built-in one with its real program, and small ones with deliberate errors.

use std::sync::Arc;

use wb_declarative::DeclarativeTest;
use wb_model::{Bytes, Gate, Nanos, ParamValue, Validity};
use wb_test::Failure;

use crate::common::{Cell, Sample, has, parse_test, text, with_cell, with_cell_of};

/// Calls `body` with a valid short sample of a built-in test; skipped if a program is missing.
fn with_builtin(test: &str, programs: &[&str], given: &[(&str, ParamValue)], body: impl AsyncFnOnce(Cell, Sample)) {
    if programs.iter().all(|program| has(program)) {
        with_cell(test, given, async |cell| {
            assert_eq!(cell.why_unsupported(), None);
            let sample = cell.sample().await.unwrap();
            sample.assert_valid();
            body(cell, sample).await;
        });
    }
}

/// A test of a command, whose metric is the number after `value`.
fn value_test(command: &str, extra: &str) -> Arc<DeclarativeTest> {
    let metric = r#"
class = "throughput"
unit = "ops/s"
regex = 'value (?<value>\S+) (?<unit>\S+)'
units = { "ops" = 1, "kops" = 1000 }
"#;
    small_test(command, extra, metric)
}

/// A test of a shell script, whose metric is its run time; that of one unit of work, if it does any.
fn elapsed_test(script: &str, extra: &str) -> Arc<DeclarativeTest> {
    let per_work = script.contains("{work}");
    let metric = format!("class = \"latency\"\nunit = \"s\"\nfrom = \"elapsed\"\nper-work = {per_work}\n");
    small_test(&format!(r#"["sh", "-c", {script:?}]"#), extra, &metric)
}

fn small_test(command: &str, extra: &str, metric: &str) -> Arc<DeclarativeTest> {
    parse_test(&format!(
        r#"
name = "small"
summary = "a small test"
version = 1
command = {command}
{extra}
[[metric]]
name = "value"
primary = true
{metric}
"#
    ))
}

fn rejection(sample: &Sample) -> (Gate, &str) {
    match &sample.measurement.validity {
        Validity::Invalid { gate, figures } => (*gate, figures),
        Validity::Valid => panic!("expected an invalid sample: {:?}", sample.measurement),
    }
}

#[test]
fn sysbench_cpu_does_all_its_events() {
    with_builtin("sysbench-cpu", &["sysbench"], &[], async |cell, sample| {
        let work = sample.work.unwrap();
        assert_eq!(sample.value("check/done"), work as f64);
        assert!(sample.value("throughput/events") > 0.0 && sample.value("latency/mean") > 1000.0);
        assert!(sample.has("calibration-1.process.json") && sample.has("probe.process.json"));
        assert!(!sample.has("calibration-1.stdout") && sample.has("run.stdout"));
        let again = cell.sample_with_work(Some(work)).await.unwrap();
        assert_eq!(again.assert_valid().work, Some(work));
        assert!(!again.has("calibration-1.process.json"));
    });
}

#[test]
fn sysbench_memory_transfers_all_its_memory() {
    with_builtin("sysbench-memory", &["sysbench"], &[], async |_, sample| {
        assert!(sample.value("throughput/bandwidth") > 1.0);
        assert_eq!(sample.value("check/transferred"), sample.work.unwrap() as f64);
    });
}

#[test]
fn stress_ng_runs_the_requested_stressor() {
    let given = [
        ("stressor", text("switch")),
        ("instances", ParamValue::Integer(1)),
        ("options", text("--switch-method pipe")),
    ];
    with_builtin("stress-ng", &["stress-ng"], &given, async |_, sample| {
        assert!(sample.value("throughput/operations") > 0.0);
        assert!(sample.text("files/stress-ng.yaml").contains("stressor: switch"));
    });
}

#[test]
fn an_unknown_stressor_fails_with_the_error_of_stress_ng() {
    if has("stress-ng") {
        with_cell("stress-ng", &[("stressor", text("nosuch"))], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
            assert!(status.starts_with("stress-ng: exit status 1"), "{status}");
        });
    }
}

#[test]
fn openssl_speed_sums_its_processes() {
    let given = [("algorithm", text("sha256")), ("processes", ParamValue::Integer(2)), ("block-size", text("1k"))];
    with_builtin("openssl-speed", &["openssl"], &given, async |_, sample| {
        assert!(sample.value("throughput/bandwidth") > 0.1);
        assert!(sample.text("run.process.json").contains("\"-multi\",\n    \"2\""));
    });
}

#[test]
#[ignore = "7-Zip's benchmark computes for 20 s at its smallest: make test-long"]
fn soak_seven_zip_rates_compression_and_decompression() {
    let given = [("dictionary", ParamValue::Integer(18)), ("threads", ParamValue::Integer(1))];
    with_builtin("7z", &["7zz"], &given, async |_, sample| {
        assert!(sample.value("throughput/rating") > 1.0);
        assert!(sample.value("throughput/compress") > 0.0 && sample.value("throughput/decompress") > 0.0);
    });
}

#[test]
fn sockperf_measures_round_trips_over_either_protocol() {
    for protocol in ["tcp", "udp"] {
        with_builtin("sockperf", &["sockperf"], &[("protocol", text(protocol))], async |_, sample| {
            let [p50, p99, max] = ["p50", "p99", "max"].map(|name| sample.value(&format!("latency/{name}")));
            assert!(1_000.0 < p50 && p50 <= p99 && p99 <= max, "{protocol}: {p50} {p99} {max}");
            assert!(sample.text("service-0.stdout").contains("127.0.0.1"), "{protocol}");
        });
    }
}

#[test]
fn iperf3_counts_received_bytes() {
    for reverse in [false, true] {
        with_builtin("iperf3", &["iperf3"], &[("reverse", ParamValue::Bool(reverse))], async |_, sample| {
            assert!(sample.value("throughput/bandwidth") > 1e6);
            assert!(sample.value("check/received") > 0.0);
            assert_eq!(sample.text("run.process.json").contains("\"-R\""), reverse);
        });
    }
}

#[test]
fn hpcc_runs_in_its_own_folder() {
    let given = [("n", ParamValue::Integer(200)), ("processes", ParamValue::Integer(1))];
    with_builtin("hpcc", &["hpcc", "mpirun"], &given, async |_, sample| {
        for metric in ["hpl", "dgemm", "fft", "stream-triad", "ptrans", "random-access"] {
            assert!(sample.value(&format!("throughput/{metric}")) > 0.0, "{metric}");
        }
        assert_eq!(sample.value("check/order"), 200.0);
        assert!(sample.findings.iter().any(|finding| finding.contains("cannot verify")), "{:?}", sample.findings);
    });
    assert!(!std::path::Path::new("hpccoutf.txt").exists());
}

#[test]
fn a_c_program_is_built_with_the_requested_compiler_and_flags() {
    let mut hashes = Vec::new();
    for (cc, flags) in [("gcc", "-O1"), ("gcc", "-O3 -march=native"), ("clang", "-O2 '-DUNUSED=a b'")] {
        with_builtin("compile-c", &[cc], &[("cc", text(cc)), ("flags", text(flags))], async |_, sample| {
            assert_eq!(sample.value("check/passes"), sample.work.unwrap() as f64);
            assert!(sample.value("throughput/updates") > 1e6);
            hashes.push(sample.measurement.provenance["built affine sha256"].clone());
        });
    }
    hashes.sort();
    let all = hashes.len();
    hashes.dedup();
    assert_eq!(hashes.len(), all);
}

#[test]
fn a_failed_build_fails_with_the_error_of_the_compiler() {
    if has("gcc") {
        with_cell("compile-c", &[("flags", text("-O2 --no-such-flag"))], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
            assert!(status.starts_with("gcc: exit status 1"), "{status}");
        });
    }
}

#[test]
fn a_sleep_does_not_count_as_work() {
    let sleep = value_test(r#"["sh", "-c", "sleep 0.5; echo value $0 ops", "{work}"]"#, "");
    with_cell_of(sleep, &[], async |cell| {
        let Err(Failure::Refused { reason }) = cell.sample().await else { panic!() };
        assert!(reason.starts_with("cannot calibrate: run time does not grow with the work: 1 took "), "{reason}");
        // Work that was not calibrated is rejected by the gate.
        let sample = cell.sample_with_work(Some(32)).await.unwrap();
        let (gate, figures) = rejection(&sample);
        assert_eq!(gate, Gate::Effort);
        assert!(figures.starts_with("run time does not grow with the work: 32 took "), "{figures}");
    });
}

#[test]
fn a_delayed_probe_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let delayed = folder.path().join("delayed").display().to_string();
    // CPU time does not show that the delayed probe did less: neither takes any.
    let script = format!(
        "if [ ! -e {delayed} ]; then touch {delayed}; sleep 3; fi; ms=$(({{work}} * 10)); \
         sleep $((ms / 1000)).$(printf %03d $((ms % 1000)))"
    );
    with_cell_of(elapsed_test(&script, ""), &[], async |cell| {
        let sample = cell.sample_with_work(Some(96)).await.unwrap();
        sample.assert_valid();
        let seconds = |name: &str| sample.json(&format!("{name}.process.json"))["elapsed-seconds"].as_f64().unwrap();
        assert!(seconds("probe-1") > 3.0 && seconds("probe") < seconds("run"));
        assert!(!sample.has("probe-2.process.json"));
    });
}

/// Longer than any command of these tests takes, even on a busy machine.
const HOUR: Nanos = Nanos(3_600_000_000_000);

/// The calibrated work of a command whose runs take longer in the beginning, after what `slow` does; later ones take
/// about a quarter of a millisecond per unit of work.
fn calibrated_work(slow: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs").display().to_string();
    let script = format!(
        "n=$(cat {runs} 2>/dev/null || echo 0); echo $((n+1)) > {runs}; each=300; {slow}; \
         i=0; while [ $i -lt $(({{work}} * each)) ]; do i=$((i+1)); done"
    );
    let mut work = 0;
    with_cell_of(elapsed_test(&script, ""), &[], async |mut cell| {
        // Longer than a busy machine may keep a short run waiting, which would then be long enough.
        cell.min_time = Nanos(300_000_000);
        let sample = cell.sample().await.unwrap();
        assert!(sample.has("run.process.json") && sample.has("calibration-3.process.json"));
        work = sample.assert_valid().work.unwrap();
    });
    work
}

#[test]
fn the_time_of_one_unit_does_not_depend_on_the_amount_of_work() {
    let mut times = Vec::new();
    let script = "i=0; while [ $i -lt $(({work} * 1000)) ]; do i=$((i+1)); done";
    for work in [400, 1600] {
        with_cell_of(elapsed_test(script, ""), &[], async |cell| {
            let sample = cell.sample_with_work(Some(work)).await.unwrap();
            let process = sample.json("run.process.json");
            let elapsed = process["elapsed-seconds"].as_f64().unwrap();
            let time = sample.assert_valid().value("latency/value");
            assert!((time * work as f64 / elapsed - 1.0).abs() < 1e-9, "{time} s of {work}, {elapsed} s in all");
            times.push(time);
        });
    }
    assert!(times[1] < 2.0 * times[0], "{times:?}");
}

#[test]
fn a_reading_that_its_cpu_time_contradicts_is_repeated() {
    // The command waits for something, once: work=1 seems to take the sample's time.
    assert!(calibrated_work("[ $n -gt 0 ] || sleep 0.6") > 20);
}

#[test]
fn a_calibration_that_the_first_sample_contradicts_is_done_again() {
    // The first two runs really compute for long: CPU time agrees with their run time.
    assert!(calibrated_work("[ $n -gt 1 ] || each=1000000") > 20);
}

#[test]
fn calibration_of_an_instant_command_ends() {
    let instant = value_test(r#"["sh", "-c", "echo value $0 ops", "{work}"]"#, "work.max = 1000");
    with_cell_of(instant, &[], async |mut cell| {
        cell.min_time = HOUR;
        let Err(Failure::Refused { reason }) = cell.sample().await else { panic!() };
        let start = "cannot calibrate: run time does not grow with the work: 1000, the maximum, took ";
        assert!(reason.starts_with(start), "{reason}");
    });
}

#[test]
fn a_command_that_ends_before_its_time_is_invalid() {
    let early = value_test(r#"["sh", "-c", "echo value $0 ops", "{seconds:ms}"]"#, "");
    with_cell_of(early, &[], async |mut cell| {
        cell.min_time = HOUR;
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.value("throughput/value"), 3_600_000.0);
        let (gate, figures) = rejection(&sample);
        assert_eq!(gate, Gate::Effort);
        assert!(figures.starts_with("ended after ") && figures.ends_with(" s, requested 3600 s"), "{figures}");
    });
}

#[test]
fn a_fixed_command_has_a_finding_about_its_effort() {
    with_cell_of(value_test("'echo value 3 kops'", ""), &[], async |cell| {
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.assert_valid().value("throughput/value"), 3000.0);
        let process = sample.json("run.process.json");
        assert_eq!(process["stdout-bytes"], 13);
        assert_eq!(process["stdout-sha256"], wb_model::Sha256::digest(b"value 3 kops\n").as_str());
        let finding =
            "cannot verify that the run time depends on the work: the command has neither {work} nor {seconds}";
        assert_eq!(sample.findings, [finding]);
    });
}

#[test]
fn output_that_differs_from_the_definition_is_invalid() {
    for (output, gate, message) in [
        ("garbage", Gate::Output, "value: not found in the output"),
        ("value 1 ops value 2 ops", Gate::Output, "value: expected one match, found 2"),
        ("value 1.5.2 ops", Gate::Output, "value: invalid number `1.5.2`"),
        ("value nan ops", Gate::Output, "value: invalid number `NaN`"),
        ("value 1e999 ops", Gate::Output, "value: invalid number `inf`"),
        ("value 12 Mops", Gate::Output, "value: unknown unit `Mops` of 12: expected kops, ops"),
        ("value 0 ops", Gate::Work, "value is 0 ops/s"),
        ("value -3 ops", Gate::Plausibility, "value is -3 ops/s"),
    ] {
        with_cell_of(value_test(&format!("'echo {output}'"), ""), &[], async |cell| {
            let sample = cell.sample().await.unwrap();
            assert_eq!(rejection(&sample), (gate, message), "{output}");
        });
    }
}

#[test]
fn checks_reject_with_their_figures() {
    let checks = r#"
[[param]]
name = "n"
help = "the expected value"
kind = "integer"
default = 3
[[check]]
description = "the requested work was done"
metric = "value"
equals = "{n}"
gate = "work"
[[check]]
description = "nothing went wrong"
from = "stderr"
must-not = 'error.*'
"#;
    let command = r#"["sh", "-c", "echo value 3 ops; echo $0 >&2", "{text}"]"#;
    let text_param = "[[param]]\nname = \"text\"\nhelp = \"text to print\"\nkind = \"text\"\ndefault = \"fine\"\n";
    with_cell_of(value_test(command, &format!("{text_param}{checks}")), &[], async |mut cell| {
        cell.sample().await.unwrap().assert_valid();
        cell.set("text", text("error 7: all is lost"));
        let sample = cell.sample().await.unwrap();
        let message = "nothing went wrong: standard error matches `error.*`: `error 7: all is lost`";
        assert_eq!(rejection(&sample), (Gate::Answer, message));
        cell.set("n", ParamValue::Integer(4));
        let sample = cell.sample().await.unwrap();
        let message = "the requested work was done: throughput/value is 3, expected 4";
        assert_eq!(rejection(&sample), (Gate::Work, message));
    });
}

#[test]
fn files_setup_services_and_cleanup_come_in_order() {
    let definition = r#"
name = "story"
summary = "every feature once"
version = 1
setup = ["mkdir {scratch}/made"]
command = ["sh", "serve.sh", "ask", "{scratch}"]
cleanup = ["rmdir {scratch}/made"]
env = { WHO = "{name}" }
[[param]]
name = "name"
help = "no"
kind = "text"
default = "x"
"#;
    let error = DeclarativeTest::parse("story.toml", definition, None).unwrap_err();
    assert_eq!(error.to_string(), "story.toml:10:8: name `name` is reserved in plans: choose another name");

    let definition = format!(
        "{}{}",
        definition.replace("{name}", "{who}").replace("name = \"name\"", "name = \"who\""),
        r#"
[[file]]
name = "serve.sh"
in = "sample"
template = true
text = '''
cat "$2/made/greeting"; echo "$WHO is {who}"; echo value 1 >out.txt
'''
[[service]]
command = ["sh", "-c", "echo hello > made/greeting; echo ready now; exec sleep 1000"]
ready = { line = "^ready" }
stop = ["rm", "{scratch}/made/greeting"]
[[metric]]
name = "value"
class = "throughput"
unit = "ops"
primary = true
file = "out.txt"
regex = '^value (\d+)$'
[[check]]
description = "file, environment and service were ready"
must = 'hello\nx is x'
"#
    );
    with_cell_of(parse_test(&definition), &[], async |cell| {
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.assert_valid().value("throughput/value"), 1.0);
        assert_eq!(sample.text("service-0.stdout"), "ready now\n");
        assert_eq!(sample.text("files/out.txt"), "value 1\n");
    });
}

#[test]
fn a_service_that_is_never_ready_is_a_crash() {
    // Its own end is reported, whatever would show that it is ready.
    for ready in ["{ line = \"ready\" }", "{ port = \"{port}\" }", "{ command = \"false\" }"] {
        let command = "sh -c 'echo no licence >&2; exit 3'";
        let service = format!("[[service]]\ncommand = \"{command}\"\nready = {ready}\nlimit = \"100s\"\n");
        with_cell_of(value_test("'echo value 1 ops'", &service), &[], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
            assert_eq!(status, "sh: exit status 3: no licence", "{ready}");
        });
    }
    // One that goes on in the background is waited for.
    let service = "[[service]]\ncommand = \"sh -c 'exec >&- 2>&-; (sleep 0.3; echo >up) & exit 0'\"\n\
                   ready = { command = \"test -e up\" }\n";
    with_cell_of(value_test("'echo value 1 ops'", service), &[], async |cell| {
        cell.sample().await.unwrap().assert_valid();
    });
    let service = "[[service]]\ncommand = \"sleep 1000\"\nready = { port = \"{port}\" }\nlimit = \"200ms\"\n";
    with_cell_of(value_test("'echo value 1 ops'", service), &[], async |cell| {
        let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
        assert!(status.starts_with("sleep (port 2") || status.starts_with("sleep (port 3"), "{status}");
        assert!(status.ends_with("not ready within 200ms"), "{status}");
    });
}

#[test]
fn standard_output_is_kept_hashed_or_discarded() {
    let hash = wb_model::Sha256::digest(b"hello\n");
    for (extra, capture, recorded, is_kept) in [
        ("", "hash", Some(&hash), false),
        ("stdout = \"hash\"", "hash", Some(&hash), false),
        ("stdout = \"keep\"", "keep", Some(&hash), true),
        ("stdout = \"discard\"", "discard", None, false),
    ] {
        with_cell_of(elapsed_test("echo hello", extra), &[], async |cell| {
            let sample = cell.sample().await.unwrap();
            let process = sample.assert_valid().json("run.process.json");
            assert_eq!(process["stdout"], capture);
            assert_eq!(process["stdout-bytes"].as_u64(), recorded.map(|_| 6), "{extra}");
            assert_eq!(process["stdout-sha256"].as_str(), recorded.map(|hash| hash.as_str()), "{extra}");
            assert_eq!(sample.has("run.stdout"), is_kept, "{extra}");
        });
    }
}

#[test]
fn too_much_standard_output_ends_a_command_only_if_it_is_kept() {
    let large_output = "head -c 67108865 /dev/zero";
    with_cell_of(elapsed_test(large_output, ""), &[], async |cell| {
        let process = cell.sample().await.unwrap().assert_valid().json("run.process.json");
        assert_eq!(process["stdout-bytes"], 67_108_865);
    });
    let crash = |test: Arc<DeclarativeTest>| {
        let mut crash = String::new();
        with_cell_of(test, &[], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
            crash = status;
        });
        crash
    };
    assert_eq!(
        crash(elapsed_test(large_output, "stdout = \"keep\"")),
        "sh: killed for writing more than 64 MiB to standard output: reduce the output, or remove \
         `stdout = \"keep\"` from the definition"
    );
    assert_eq!(
        crash(value_test(&format!(r#"["sh", "-c", "{large_output}"]"#), "")),
        "sh: killed for writing more than 64 MiB to standard output: reduce the output, or write the required part to a \
         file, and refer to it by `file` in metrics and checks"
    );
    assert_eq!(
        crash(elapsed_test(&format!("{large_output} >&2"), "")),
        "sh: killed for writing more than 64 MiB to standard error, the limit of captured output"
    );
    // The message ends with the last line of output, if it is UTF-8.
    assert_eq!(crash(elapsed_test("echo no space; exit 3", "")), "sh: exit status 3: no space");
    assert_eq!(crash(elapsed_test(r"printf '\377\376'; exit 3", "")), "sh: exit status 3");
}

#[test]
fn no_figure_is_extracted_from_truncated_standard_output() {
    let long = value_test(r#"["sh", "-c", "echo value 3 ops; head -c 100000 /dev/zero"]"#, "");
    with_cell_of(long, &[], async |mut cell| {
        cell.sample().await.unwrap().assert_valid();
        cell.stdout_limit = Bytes(100_012);
        cell.sample().await.unwrap().assert_valid();
        cell.stdout_limit = Bytes(100_011);
        let sample = cell.sample().await.unwrap();
        let (gate, figures) = rejection(&sample);
        assert_eq!(gate, Gate::Output);
        assert_eq!(
            figures,
            "value: standard output was truncated to 64 KiB of 97.7 KiB: increase `max-stdout`, reduce the output, or use a \
             `file`"
        );
        assert_eq!(sample.text("run.stdout").len(), 65_536);
        let expected = "standard output truncated to 64 KiB of 97.7 KiB: ";
        assert!(sample.findings.iter().any(|finding| finding.starts_with(expected)), "{:?}", sample.findings);
    });
}
