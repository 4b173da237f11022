//! External runners: the example, and runners that violate the protocol.

use std::path::Path;
use std::sync::Arc;

use wb_declarative::DeclarativeTest;
use wb_model::{Gate, ParamValue, Validity};
use wb_test::Failure;

use crate::common::{has, parse_test, text, with_cell_of};

/// A runner that runs these lines of shell after its event `hello`.
fn runner(lines: &str) -> Arc<DeclarativeTest> {
    parse_test(&format!(
        r#"
name = "small"
summary = "a small runner"
version = 1
runner = ["sh", "{{scratch}}/runner.sh"]
[[file]]
name = "runner.sh"
text = '''
cat >task.json
echo '{{"event":"hello","protocol":1}}'
{lines}
'''
[[metric]]
name = "value"
class = "throughput"
unit = "ops/s"
primary = true
units = {{ "kops/s" = 1000 }}
"#
    ))
}

const METRIC: &str = r#"echo '{"event":"metric","class":"throughput","name":"value","value":2,"unit":"kops/s"}'"#;
const DONE: &str = r#"echo '{"event":"done"}'"#;

#[test]
fn the_example_measures_and_does_the_same_work_again() {
    if !has("python3") {
        return;
    }
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/runner.toml");
    let example = Arc::new(DeclarativeTest::read(Path::new(examples), None).unwrap());
    with_cell_of(example, &[("block", ParamValue::Integer(64))], async |cell| {
        let first = cell.sample().await.unwrap();
        let (rate, latency) = (first.assert_valid().value("throughput/hashes"), first.value("latency/hash"));
        assert!((rate * latency / 1e9 - 1.0).abs() < 1e-6, "{rate} {latency}");
        assert_eq!(first.findings, [""; 0]);
        assert_eq!(first.text("runner/digest.txt").len(), 65);
        let again = cell.sample_with_work(first.work).await.unwrap();
        assert_eq!(again.assert_valid().work, first.work);
    });
}

#[test]
fn a_runner_receives_its_task() {
    let script = format!(
        "{METRIC}\necho \"{{\\\"event\\\":\\\"artefact\\\",\\\"name\\\":\\\"t\\\",\\\"base64\\\":\\\"$(base64 -w0 task.json)\\\"}}\"\n{DONE}"
    );
    with_cell_of(runner(&script), &[("aslr", text("off"))], async |cell| {
        let sample = cell.sample_with_work(Some(7)).await.unwrap();
        assert_eq!(sample.assert_valid().value("throughput/value"), 2000.0);
        let task: serde_json::Value = serde_json::from_str(&sample.text("runner/t")).unwrap();
        assert_eq!((&task["protocol"], &task["work"], &task["min-time"]), (&1.into(), &7.into(), &0.1.into()));
        assert_eq!((&task["params"]["aslr"], &task["purpose"]), (&"off".into(), &"sample".into()));
        let finding = "cannot verify that the run time depends on the work: the runner reported no probe";
        assert_eq!(sample.findings, [finding]);
    });
}

#[test]
fn a_violation_of_the_protocol_is_a_crash_with_its_reason() {
    for (lines, message) in [
        (METRIC.to_owned(), "missing event `done` at the end of the runner's output, after 2 lines"),
        (format!("{METRIC}\necho oops\n{DONE}"), "invalid event on line 3 of the runner's output: expected value"),
        (format!("{DONE}\n{METRIC}"), "unexpected line 3 of the runner's output after event `done`"),
        (r#"echo '{"event":"failed","reason":"no disk"}'"#.to_owned(), "the runner could not take the sample: no disk"),
        (format!("{METRIC}\n{DONE}\necho broken >&2\nexit 4"), "sh: exit status 4: broken"),
    ] {
        with_cell_of(runner(&lines), &[], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!("{message}") };
            assert!(status.starts_with(message), "{status}");
        });
    }
}

#[test]
fn undeclared_and_invalid_figures_are_rejected() {
    for (lines, gate, message) in [
        (String::new(), Gate::Output, "value: not found in the output"),
        (METRIC.replace("kops/s", "MB/s"), Gate::Output, "value: unknown unit `MB/s` of 2: expected kops/s"),
        (
            METRIC.replace("value\",", "speed\","),
            Gate::Output,
            "the runner reported an undeclared metric throughput/speed",
        ),
        (format!("{METRIC}\n{METRIC}"), Gate::Output, "value: expected one match, found 2"),
        (
            format!(
                "{METRIC}\necho '{{\"event\":\"check\",\"name\":\"sum\",\"passed\":false,\"figures\":\"3, not 4\"}}'"
            ),
            Gate::Answer,
            "sum: 3, not 4",
        ),
        (
            format!(
                "{METRIC}\necho '{{\"event\":\"probe\",\"amount\":2,\"seconds\":1.0}}'\n\
                 echo '{{\"event\":\"work\",\"amount\":32,\"seconds\":1.01}}'"
            ),
            Gate::Effort,
            "run time does not grow with the work: 32 took 1.0100 s, 2 took 1.0000 s",
        ),
    ] {
        with_cell_of(runner(&format!("{lines}\n{DONE}")), &[], async |cell| {
            let sample = cell.sample().await.unwrap();
            let Validity::Invalid { gate: found, figures } = &sample.measurement.validity else { panic!("{message}") };
            assert_eq!((*found, figures.as_str()), (gate, message));
        });
    }
}
