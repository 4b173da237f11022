//! Declarative tests: every shipped one for real, and small ones that do wrong on purpose.

use std::sync::Arc;

use crate::common::{Cell, Sample, has, text, with_cell, with_cell_of};
use wb_model::{Bytes, Gate, Nanos, ParamValue, Validity};
use wb_tests::{DeclarativeTest, Failure};

/// A short sample of a shipped test, which must count; nothing where a program is not there.
fn shipped(test: &str, programs: &[&str], given: &[(&str, ParamValue)], something: impl AsyncFnOnce(Cell, Sample)) {
    if programs.iter().all(|program| has(program)) {
        with_cell(test, given, async |cell| {
            assert_eq!(cell.why_unsupported(), None);
            let sample = cell.sample().await.unwrap();
            sample.is_valid();
            something(cell, sample).await;
        });
    }
}

/// A test of this command, whose figure is the number after `value`.
fn small(command: &str, more: &str) -> Arc<DeclarativeTest> {
    let definition = format!(
        r#"
name = "small"
summary = "a small test"
version = 1
command = {command}
{more}
[[metric]]
name = "value"
class = "throughput"
unit = "ops/s"
primary = true
regex = 'value (?<value>\S+) (?<unit>\S+)'
units = {{ "ops" = 1, "kops" = 1000 }}
"#
    );
    Arc::new(DeclarativeTest::parse("small.toml", &definition, None).unwrap_or_else(|error| panic!("{error}")))
}

/// A test of a shell script whose figure is how long it runs.
fn timed(script: &str, more: &str) -> Arc<DeclarativeTest> {
    let definition = format!(
        r#"
name = "timed"
summary = "a timed test"
version = 1
command = ["sh", "-c", {script:?}]
{more}
[[metric]]
name = "time"
class = "latency"
unit = "s"
primary = true
from = "elapsed"
"#
    );
    Arc::new(DeclarativeTest::parse("timed.toml", &definition, None).unwrap_or_else(|error| panic!("{error}")))
}

fn rejected(sample: &Sample) -> (Gate, &str) {
    match &sample.measured.validity {
        Validity::Invalid { gate, figures } => (*gate, figures),
        Validity::Valid => panic!("it counts: {:?}", sample.measured),
    }
}

#[test]
fn sysbench_cpu_does_all_its_events() {
    shipped("sysbench-cpu", &["sysbench"], &[], async |cell, sample| {
        let work = sample.work.unwrap();
        assert_eq!(sample.value("check/done"), work as f64);
        assert!(sample.value("throughput/events") > 0.0 && sample.value("latency/mean") > 1000.0);
        assert!(sample.has("calibration-1.process.json") && sample.has("probe.process.json"));
        assert!(!sample.has("calibration-1.stdout") && sample.has("run.stdout"));
        let again = cell.sample_of(Some(work)).await.unwrap();
        assert_eq!(again.is_valid().work, Some(work));
        assert!(!again.has("calibration-1.process.json"));
    });
}

#[test]
fn sysbench_memory_transfers_all_its_memory() {
    shipped("sysbench-memory", &["sysbench"], &[], async |_, sample| {
        assert!(sample.value("throughput/bandwidth") > 1.0);
        assert_eq!(sample.value("check/transferred"), sample.work.unwrap() as f64);
    });
}

#[test]
fn stress_ng_runs_the_stressor_that_is_asked_for() {
    let given = [
        ("stressor", text("switch")),
        ("instances", ParamValue::Integer(1)),
        ("options", text("--switch-method pipe")),
    ];
    shipped("stress-ng", &["stress-ng"], &given, async |_, sample| {
        assert!(sample.value("throughput/operations") > 0.0);
        assert!(sample.text("files/stress-ng.yaml").contains("stressor: switch"));
    });
}

#[test]
fn a_stressor_that_does_not_exist_fails_with_what_stress_ng_says() {
    if has("stress-ng") {
        with_cell("stress-ng", &[("stressor", text("nosuch"))], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
            assert!(status.starts_with("stress-ng: exit status 1"), "{status}");
        });
    }
}

#[test]
fn openssl_speed_adds_its_processes_up() {
    let given = [("algorithm", text("sha256")), ("processes", ParamValue::Integer(2)), ("block-size", text("1k"))];
    shipped("openssl-speed", &["openssl"], &given, async |_, sample| {
        assert!(sample.value("throughput/bandwidth") > 0.1);
        assert!(sample.text("run.process.json").contains("\"-multi\",\n    \"2\""));
    });
}

#[test]
fn seven_zip_rates_compression_and_decompression() {
    let given = [("dictionary", ParamValue::Integer(18)), ("threads", ParamValue::Integer(1))];
    shipped("7z", &["7zz"], &given, async |_, sample| {
        assert!(sample.value("throughput/rating") > 1.0);
        assert!(sample.value("throughput/compress") > 0.0 && sample.value("throughput/decompress") > 0.0);
    });
}

#[test]
fn sockperf_measures_round_trips_over_either_protocol() {
    for protocol in ["tcp", "udp"] {
        shipped("sockperf", &["sockperf"], &[("protocol", text(protocol))], async |_, sample| {
            let [p50, p99, max] = ["p50", "p99", "max"].map(|name| sample.value(&format!("latency/{name}")));
            assert!(1_000.0 < p50 && p50 <= p99 && p99 <= max, "{protocol}: {p50} {p99} {max}");
            assert!(sample.text("service-0.stdout").contains("127.0.0.1"), "{protocol}");
        });
    }
}

#[test]
fn iperf3_counts_what_was_received() {
    for reverse in [false, true] {
        shipped("iperf3", &["iperf3"], &[("reverse", ParamValue::Bool(reverse))], async |_, sample| {
            assert!(sample.value("throughput/bandwidth") > 1e6);
            assert!(sample.value("check/received") > 0.0);
            assert_eq!(sample.text("run.process.json").contains("\"-R\""), reverse);
        });
    }
}

#[test]
fn hpcc_runs_in_a_folder_of_its_own() {
    let given = [("n", ParamValue::Integer(200)), ("processes", ParamValue::Integer(1))];
    shipped("hpcc", &["hpcc", "mpirun"], &given, async |_, sample| {
        for metric in ["hpl", "dgemm", "fft", "stream-triad", "ptrans", "random-access"] {
            assert!(sample.value(&format!("throughput/{metric}")) > 0.0, "{metric}");
        }
        assert_eq!(sample.value("check/order"), 200.0);
        assert!(sample.findings.iter().any(|finding| finding.contains("is not known")), "{:?}", sample.findings);
    });
    assert!(!std::path::Path::new("hpccoutf.txt").exists());
}

#[test]
fn a_c_program_is_built_with_the_compiler_and_the_flags_that_are_asked_for() {
    let mut hashes = Vec::new();
    for (cc, flags) in [("gcc", "-O1"), ("gcc", "-O3 -march=native"), ("clang", "-O2 '-DUNUSED=a b'")] {
        shipped("compile-c", &[cc], &[("cc", text(cc)), ("flags", text(flags))], async |_, sample| {
            assert_eq!(sample.value("check/passes"), sample.work.unwrap() as f64);
            assert!(sample.value("throughput/updates") > 1e6);
            hashes.push(sample.measured.provenance["built affine sha256"].clone());
        });
    }
    hashes.sort();
    let all = hashes.len();
    hashes.dedup();
    assert_eq!(hashes.len(), all);
}

#[test]
fn a_program_that_cannot_be_built_fails_with_what_the_compiler_says() {
    if has("gcc") {
        with_cell("compile-c", &[("flags", text("-O2 --no-such-flag"))], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
            assert!(status.starts_with("gcc: exit status 1"), "{status}");
        });
    }
}

#[test]
fn a_sleep_does_not_pass_for_work() {
    let sleep = small(r#"["sh", "-c", "sleep 1.5; echo value $0 ops", "{work}"]"#, "");
    with_cell_of(sleep, &[], async |cell| {
        let Err(Failure::Refused { reason }) = cell.sample().await else { panic!() };
        assert!(reason.starts_with("its time does not follow its work: 1 took "), "{reason}");
        // Whoever asks for work that was never calibrated is told by the gate.
        let sample = cell.sample_of(Some(32)).await.unwrap();
        let (gate, figures) = rejected(&sample);
        assert_eq!(gate, Gate::Effort);
        assert!(figures.starts_with("a work of 32 took "), "{figures}");
    });
}

/// Longer than anything takes here, on however busy a machine.
const HOUR: Nanos = Nanos(3_600_000_000_000);

#[test]
fn what_never_takes_long_is_not_tried_for_ever() {
    let instant = small(r#"["sh", "-c", "echo value $0 ops", "{work}"]"#, "work.most = 1000");
    with_cell_of(instant, &[], async |mut cell| {
        cell.min_time = HOUR;
        let Err(Failure::Refused { reason }) = cell.sample().await else { panic!() };
        let start = "its time does not follow its work: 1000, the most that is tried, took ";
        assert!(reason.starts_with(start), "{reason}");
    });
}

#[test]
fn a_command_that_ends_before_its_time_is_noticed() {
    let early = small(r#"["sh", "-c", "echo value $0 ops", "{seconds:ms}"]"#, "");
    with_cell_of(early, &[], async |mut cell| {
        cell.min_time = HOUR;
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.value("throughput/value"), 3_600_000.0);
        let (gate, figures) = rejected(&sample);
        assert_eq!(gate, Gate::Effort);
        assert!(
            figures.starts_with("it ended after ") && figures.ends_with(" and was told to take 3600 s"),
            "{figures}"
        );
    });
}

#[test]
fn a_fixed_command_says_that_nothing_is_known_of_its_effort() {
    with_cell_of(small("'echo value 3 kops'", ""), &[], async |cell| {
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.is_valid().value("throughput/value"), 3000.0);
        let process = sample.json("run.process.json");
        assert_eq!(process["stdout-bytes"], 13);
        assert_eq!(process["stdout-sha256"], wb_model::Sha256::of(b"value 3 kops\n").as_str());
        let told = "whether its time follows its work is not known: its command has neither a {work} nor a {seconds}";
        assert_eq!(sample.findings, [told]);
    });
}

#[test]
fn output_that_is_not_as_declared_does_not_count() {
    for (output, gate, told) in [
        ("garbage", Gate::Output, "value: it is not there"),
        ("value 1 ops value 2 ops", Gate::Output, "value: 2 figures match where one was expected"),
        ("value 1.5.2 ops", Gate::Output, "value: `1.5.2` is no number"),
        ("value nan ops", Gate::Output, "value: it is NaN"),
        ("value 1e999 ops", Gate::Output, "value: it is inf"),
        ("value 12 Mops", Gate::Output, "value: it is 12 in `Mops`, and only kops, ops is known"),
        ("value 0 ops", Gate::Work, "value is 0 ops/s"),
        ("value -3 ops", Gate::Possible, "value is -3 ops/s"),
    ] {
        with_cell_of(small(&format!("'echo {output}'"), ""), &[], async |cell| {
            let sample = cell.sample().await.unwrap();
            assert_eq!(rejected(&sample), (gate, told), "{output}");
        });
    }
}

#[test]
fn checks_reject_with_their_figures() {
    let checks = r#"
[[param]]
name = "n"
help = "what is printed"
kind = "integer"
default = 3
[[check]]
description = "what was asked for was done"
metric = "value"
equals = "{n}"
gate = "work"
[[check]]
description = "nothing went wrong"
from = "stderr"
must-not = 'error.*'
"#;
    let command = r#"["sh", "-c", "echo value 3 ops; echo $0 >&2", "{text}"]"#;
    let text_param = "[[param]]\nname = \"text\"\nhelp = \"what is said\"\nkind = \"text\"\ndefault = \"fine\"\n";
    with_cell_of(small(command, &format!("{text_param}{checks}")), &[], async |mut cell| {
        cell.sample().await.unwrap().is_valid();
        cell.set("text", text("error 7: all is lost"));
        let sample = cell.sample().await.unwrap();
        let told = "nothing went wrong: standard error says `error 7: all is lost`";
        assert_eq!(rejected(&sample), (Gate::Answer, told));
        cell.set("n", ParamValue::Integer(4));
        let sample = cell.sample().await.unwrap();
        let told = "what was asked for was done: throughput/value is 3, 4 was expected";
        assert_eq!(rejected(&sample), (Gate::Work, told));
    });
}

#[test]
fn files_setup_services_and_cleanup_come_in_order() {
    let definition = r#"
name = "story"
summary = "everything once"
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
    assert_eq!(error.to_string(), "story.toml:10:8: `name` has another meaning in plans: choose another name");

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
description = "all was there"
must = 'hello\nx is x'
"#
    );
    let test = DeclarativeTest::parse("story.toml", &definition, None).unwrap_or_else(|error| panic!("{error}"));
    with_cell_of(Arc::new(test), &[], async |cell| {
        let sample = cell.sample().await.unwrap();
        assert_eq!(sample.is_valid().value("throughput/value"), 1.0);
        assert_eq!(sample.text("service-0.stdout"), "ready now\n");
        assert_eq!(sample.text("files/out.txt"), "value 1\n");
    });
}

#[test]
fn a_service_that_is_never_ready_says_so() {
    let service = "[[service]]\ncommand = \"sh -c 'exit 3'\"\nready = { line = \"ready\" }\n";
    with_cell_of(small("'echo value 1 ops'", service), &[], async |cell| {
        let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
        assert_eq!(status, "sh ended, or was not ready after 30s: no line `ready`");
    });
    let service = "[[service]]\ncommand = \"sleep 1000\"\nready = { port = \"{port}\" }\nlimit = \"200ms\"\n";
    with_cell_of(small("'echo value 1 ops'", service), &[], async |cell| {
        let Err(Failure::Crashed { status }) = cell.sample().await else { panic!() };
        assert!(status.starts_with("sleep (port 2") || status.starts_with("sleep (port 3"), "{status}");
        assert!(status.ends_with("was not ready after 200ms"), "{status}");
    });
}

#[test]
fn standard_output_is_kept_hashed_or_discarded() {
    let hash = wb_model::Sha256::of(b"hello\n");
    for (more, capture, recorded, is_kept) in [
        ("", "hash", Some(&hash), false),
        ("stdout = \"hash\"", "hash", Some(&hash), false),
        ("stdout = \"keep\"", "keep", Some(&hash), true),
        ("stdout = \"discard\"", "discard", None, false),
    ] {
        with_cell_of(timed("echo hello", more), &[], async |cell| {
            let sample = cell.sample().await.unwrap();
            let process = sample.is_valid().json("run.process.json");
            assert_eq!(process["stdout"], capture);
            assert_eq!(process["stdout-bytes"].as_u64(), recorded.map(|_| 6), "{more}");
            assert_eq!(process["stdout-sha256"].as_str(), recorded.map(|hash| hash.as_str()), "{more}");
            assert_eq!(sample.has("run.stdout"), is_kept, "{more}");
        });
    }
}

#[test]
fn more_standard_output_than_is_kept_ends_a_command_only_where_it_is_to_be_kept() {
    let much = "head -c 67108865 /dev/zero";
    with_cell_of(timed(much, ""), &[], async |cell| {
        let process = cell.sample().await.unwrap().is_valid().json("run.process.json");
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
        crash(timed(much, "stdout = \"keep\"")),
        "sh: killed for writing more than 64 MiB to standard output: let the command write less, or remove \
         `stdout = \"keep\"` from its definition"
    );
    assert_eq!(
        crash(small(&format!(r#"["sh", "-c", "{much}"]"#), "")),
        "sh: killed for writing more than 64 MiB to standard output: let the command write less, or write what is read \
         to a file, which metrics and checks name by `file`"
    );
    assert_eq!(
        crash(timed(&format!("{much} >&2"), "")),
        "sh: killed for writing more than 64 MiB to standard error, the most that is kept"
    );
    // The message ends with the last line of output, unless that is no text.
    assert_eq!(crash(timed("echo no space; exit 3", "")), "sh: exit status 3: no space");
    assert_eq!(crash(timed(r"printf '\377\376'; exit 3", "")), "sh: exit status 3");
}

#[test]
fn no_figure_is_read_from_standard_output_that_was_cut() {
    let long = small(r#"["sh", "-c", "echo value 3 ops; head -c 100000 /dev/zero"]"#, "");
    with_cell_of(long, &[], async |mut cell| {
        cell.sample().await.unwrap().is_valid();
        cell.stdout_room = Bytes(100_012);
        cell.sample().await.unwrap().is_valid();
        cell.stdout_room = Bytes(100_011);
        let sample = cell.sample().await.unwrap();
        let (gate, figures) = rejected(&sample);
        assert_eq!(gate, Gate::Output);
        assert_eq!(
            figures,
            "value: only 64 KiB of 97.7 KiB of standard output are recorded, since the run had no room for more: raise \
             `max-stdout`, let the command write less, or read a `file`"
        );
        assert_eq!(sample.text("run.stdout").len(), 65_536);
        let cut = "the first 64 KiB of 97.7 KiB of standard output are recorded: ";
        assert!(sample.findings.iter().any(|finding| finding.starts_with(cut)), "{:?}", sample.findings);
    });
}
