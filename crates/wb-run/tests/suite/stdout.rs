//! Recording the standard output of declarative tests.

use wb_model::AttemptPurpose;
use wb_plan::Sampling;
use wb_test_worker::FakeProcess;

use crate::testbed::TestBed;

/// A test that writes 100,000 bytes that no metric reads.
const WORDY: &str = r#"
name = "wordy"
summary = "much output"
version = 1
command = ["head", "-c", "100000", "/dev/zero"]

[[metric]]
name = "time"
class = "latency"
unit = "s"
primary = true
from = "elapsed"
"#;

/// Defines the test; its output is limited to 250,000 bytes in all.
fn wordy(toml: &str) -> TestBed {
    let mut bed = TestBed::new(|_| FakeProcess::printing("\0".repeat(100_000)));
    bed.define(toml);
    bed.sampling = serde_json::from_str::<Sampling>(r#"{"warm-up": 0, "max-stdout": "250000"}"#).unwrap();
    bed
}

/// Length of each sample's recorded standard output; `None` if nothing is recorded.
fn recorded(bed: &TestBed) -> Vec<Option<u64>> {
    let ended = bed.ended_attempts();
    assert!(ended.iter().all(|ended| ended.purpose == AttemptPurpose::Sample));
    let length = |artefacts: &[wb_record::Artefact]| {
        Some(artefacts.iter().find(|artefact| artefact.path == "run.stdout")?.bytes)
    };
    ended.iter().map(|ended| length(&ended.artefacts)).collect()
}

#[tokio::test(start_paused = true)]
async fn max_stdout_limits_the_recorded_output_of_a_run() {
    let mut bed = wordy(&WORDY.replace("version = 1", "version = 1\nstdout = \"keep\""));
    bed.measure(&["wordy"]).await;
    let (full, truncated) = (Some(100_000), Some(65_536));
    assert_eq!(recorded(&bed), [full, full, truncated, truncated, truncated, truncated]);
    // Output recorded by earlier invocations counts, too.
    bed.sampling.min_samples = 7;
    bed.measure(&["wordy"]).await;
    assert_eq!(recorded(&bed)[6], truncated);
    let findings = bed.cell().findings;
    let is_truncation = |finding: &&String| {
        finding.contains("standard output truncated to 64 KiB of 97.7 KiB: ") && finding.contains("(in 5 of 7 samples)")
    };
    assert_eq!(findings.iter().filter(is_truncation).count(), 1, "{findings:?}");
}

#[tokio::test(start_paused = true)]
async fn unused_standard_output_is_not_recorded() {
    let bed = wordy(WORDY);
    bed.measure(&["wordy"]).await;
    assert_eq!(recorded(&bed), [None; 6]);
}
