//! What a run records of the standard output of declarative tests.

use crate::lab::Lab;

/// Writes 100,000 bytes that nothing reads.
const WORDY: &str = r#"
name = "wordy"
summary = "much output"
version = 1
command = ["head", "-c", "100000", "/dev/zero"]
STDOUT
[[metric]]
name = "time"
class = "latency"
unit = "s"
primary = true
from = "elapsed"
"#;

const PLAN: &str = r#"
[sampling]
min-time = "1ms"
warm-up = 0
min-samples = 6
max-samples = 6
retakes = 0
precision = 100
max-stdout = "250000"

[[test]]
name = "wordy"
"#;

/// The length of each sample's recorded standard output; none where nothing is recorded.
fn recorded(lab: &Lab, run: &str) -> Vec<Option<u64>> {
    let journal = lab.journal(run);
    let attempts = journal.iter().filter(|line| line["event"] == "attempt-ended");
    let length = |line: &serde_json::Value| {
        let artefacts = line["artefacts"].as_array().unwrap();
        artefacts.iter().find(|artefact| artefact["path"] == "run.stdout")?["bytes"].as_u64()
    };
    attempts.map(length).collect()
}

#[test]
fn a_run_records_no_more_standard_output_than_its_plan_says() {
    let lab = Lab::new();
    lab.define("wordy", &WORDY.replace("STDOUT", "stdout = \"keep\""));
    lab.write("wordy.toml", PLAN);
    let ran = lab.weighbridge("run --plan wordy.toml --into R");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let (whole, cut) = (Some(100_000), Some(65_536));
    assert_eq!(recorded(&lab, "R"), [whole, whole, cut, cut, cut, cut]);
    // What earlier entries recorded counts too.
    let more = lab.weighbridge("run --plan wordy.toml --into R --samples 7");
    assert_eq!(more.code, 0, "{}", more.seen());
    assert_eq!(recorded(&lab, "R")[6], cut);
    let summary = lab.weighbridge("summary R").out;
    let finding = "the first 64 KiB of 97.7 KiB of standard output are recorded: ";
    assert!(summary.contains(finding) && summary.contains("(in 5 of 7 samples)"), "{summary}");
}

#[test]
fn standard_output_that_nothing_reads_is_not_recorded() {
    let lab = Lab::new();
    lab.define("wordy", &WORDY.replace("STDOUT", ""));
    lab.write("wordy.toml", PLAN);
    let ran = lab.weighbridge("run --plan wordy.toml --into R");
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(recorded(&lab, "R"), [None; 6]);
}
