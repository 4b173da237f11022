//! External runners: the example, and ones that break the protocol.

use std::path::Path;
use std::sync::Arc;

use crate::common::{has, text, with_cell_of};
use wb_model::{Gate, ParamValue, Validity};
use wb_tests::{DeclarativeTest, Failure};

/// A runner that says these lines after its greeting.
fn runner(lines: &str) -> Arc<DeclarativeTest> {
    let definition = format!(
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
    );
    Arc::new(DeclarativeTest::parse("small.toml", &definition, None).unwrap_or_else(|error| panic!("{error}")))
}

const METRIC: &str = r#"echo '{"event":"metric","class":"throughput","name":"value","value":2,"unit":"kops/s"}'"#;
const DONE: &str = r#"echo '{"event":"done"}'"#;

#[test]
fn the_example_measures_and_does_the_same_work_again() {
    if !has("python3") {
        return;
    }
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/runner.toml");
    let example = Arc::new(DeclarativeTest::read(Path::new(examples)).unwrap());
    with_cell_of(example, &[("block", ParamValue::Integer(64))], async |cell| {
        let first = cell.sample().await.unwrap();
        let (rate, latency) = (first.is_valid().value("throughput/hashes"), first.value("latency/hash"));
        assert!((rate * latency / 1e9 - 1.0).abs() < 1e-6, "{rate} {latency}");
        assert_eq!(first.findings, [""; 0]);
        assert_eq!(first.text("runner/digest.txt").len(), 65);
        let again = cell.sample_of(first.work).await.unwrap();
        assert_eq!(again.is_valid().work, first.work);
    });
}

#[test]
fn a_runner_is_told_its_task() {
    let say = format!(
        "{METRIC}\necho \"{{\\\"event\\\":\\\"artefact\\\",\\\"name\\\":\\\"t\\\",\\\"base64\\\":\\\"$(base64 -w0 task.json)\\\"}}\"\n{DONE}"
    );
    with_cell_of(runner(&say), &[("aslr", text("off"))], async |cell| {
        let sample = cell.sample_of(Some(7)).await.unwrap();
        assert_eq!(sample.is_valid().value("throughput/value"), 2000.0);
        let task: serde_json::Value = serde_json::from_str(&sample.text("runner/t")).unwrap();
        assert_eq!((&task["protocol"], &task["work"], &task["min-time"]), (&1.into(), &7.into(), &0.1.into()));
        assert_eq!((&task["params"]["aslr"], &task["purpose"]), (&"off".into(), &"sample".into()));
        let told = "whether its time follows its work is not known: the runner gives no probe to compare with";
        assert_eq!(sample.findings, [told]);
    });
}

#[test]
fn a_runner_that_breaks_the_protocol_crashes_with_its_reason() {
    for (lines, told) in [
        (METRIC.to_owned(), "the runner ended without an event `done`, after 2 lines"),
        (format!("{METRIC}\necho oops\n{DONE}"), "line 3 of the runner is no event of the protocol: expected value"),
        (format!("{DONE}\n{METRIC}"), "line 3 of the runner comes after its event `done`"),
        (r#"echo '{"event":"failed","reason":"no disk"}'"#.to_owned(), "the runner could not take the sample: no disk"),
        (format!("{METRIC}\n{DONE}\necho broken >&2\nexit 4"), "sh: exit status 4: broken"),
    ] {
        with_cell_of(runner(&lines), &[], async |cell| {
            let Err(Failure::Crashed { status }) = cell.sample().await else { panic!("{told}") };
            assert!(status.starts_with(told), "{status}");
        });
    }
}

#[test]
fn figures_that_were_not_declared_do_not_count() {
    for (lines, gate, told) in [
        (String::new(), Gate::Output, "value: it is not there"),
        (METRIC.replace("kops/s", "MB/s"), Gate::Output, "value: it is 2 in `MB/s`, and only kops/s is known"),
        (
            METRIC.replace("value\",", "speed\","),
            Gate::Output,
            "the runner measured throughput/speed, which is not declared",
        ),
        (format!("{METRIC}\n{METRIC}"), Gate::Output, "value: 2 figures match where one was expected"),
        (
            format!(
                "{METRIC}\necho '{{\"event\":\"check\",\"name\":\"sum\",\"passed\":false,\"figures\":\"3, not 4\"}}'"
            ),
            Gate::Answer,
            "sum: 3, not 4",
        ),
        (
            format!(
                "{METRIC}\necho '{{\"event\":\"probe\",\"done\":2,\"seconds\":1.0}}'\n\
                 echo '{{\"event\":\"work\",\"done\":32,\"seconds\":1.01}}'"
            ),
            Gate::Effort,
            "a work of 32 took 1.0100 s and one of 2 took 1.0000 s",
        ),
    ] {
        with_cell_of(runner(&format!("{lines}\n{DONE}")), &[], async |cell| {
            let sample = cell.sample().await.unwrap();
            let Validity::Invalid { gate: found, figures } = &sample.measured.validity else { panic!("{told}") };
            assert_eq!((*found, figures.as_str()), (gate, told));
        });
    }
}
