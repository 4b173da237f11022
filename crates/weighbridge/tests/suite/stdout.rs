//! Recording the standard output of declarative tests.

use crate::lab::Lab;

/// A test that writes 100,000 bytes that no metric reads.
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

/// Length of each sample's recorded standard output; `None` if nothing is recorded.
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
fn max_stdout_limits_the_recorded_output_of_a_run() {
    let lab = Lab::new();
    lab.define("wordy", &WORDY.replace("STDOUT", "stdout = \"keep\""));
    lab.write("wordy.toml", PLAN);
    let ran = lab.weighbridge("run --plan wordy.toml --into R");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let (full, truncated) = (Some(100_000), Some(65_536));
    assert_eq!(recorded(&lab, "R"), [full, full, truncated, truncated, truncated, truncated]);
    // Output recorded by earlier entries counts, too.
    let more = lab.weighbridge("run --plan wordy.toml --into R --samples 7");
    assert_eq!(more.code, 0, "{}", more.transcript());
    assert_eq!(recorded(&lab, "R")[6], truncated);
    let summary = lab.weighbridge("summary R").out.split_whitespace().collect::<Vec<_>>().join(" ");
    let finding = "standard output truncated to 64 KiB of 97.7 KiB: ";
    assert!(summary.contains(finding) && summary.contains("(in 5 of 7 samples)"), "{summary}");
}

#[test]
fn unused_standard_output_is_not_recorded() {
    let lab = Lab::new();
    lab.define("wordy", &WORDY.replace("STDOUT", ""));
    lab.write("wordy.toml", PLAN);
    let ran = lab.weighbridge("run --plan wordy.toml --into R");
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert_eq!(recorded(&lab, "R"), [None; 6]);
}
