//! Reasons of samples and runs that do not count.

use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0";

/// Flags for `run`, whose samples may be disturbed and vary.
const STEADY: &str = "--retakes 0 --precision 100";

/// Defines a test with a throughput `figure`; its shell script sets `f` depending on `n`, the number of calls.
fn define(lab: &Lab, script: &str) {
    let count = lab.write("count", "0").display().to_string();
    let script = format!("n=$(($(cat {count}) + 1)); echo $n >{count}; f=$((1000 + n % 3)); {script}; echo figure: $f");
    lab.define_script("turns", &script);
}

/// A text with line breaks and runs of spaces collapsed.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn summary_gives_the_reason_of_an_invalid_sample() {
    let lab = Lab::new();
    define(&lab, "[ $n = 4 ] && f=-7");
    lab.weighbridge(&format!("run turns {QUICK} {STEADY} --min-samples 6 --max-samples 8 --into R")).expect_code(0);
    let summary = lab.weighbridge("summary R");
    summary.expect_stdout("1 invalid");
    let text = words(&summary.out);
    assert!(text.contains("sample 3 is invalid (plausibility: ") && text.contains("-7"), "{}", summary.out);
    assert!(text.contains("): it is excluded"), "{}", summary.out);
}

#[test]
fn summary_reports_a_damaged_sample() {
    let lab = Lab::new();
    lab.weighbridge(&format!("run steady {QUICK} {STEADY} --samples 6 --into R")).expect_code(0);
    let sample = lab.path("R/Localhost/steady/0000/kind=a/0002.0");
    let files = std::fs::read_dir(sample).unwrap().flatten().map(|entry| entry.path());
    let output = files.into_iter().find(|path| path.extension().is_some_and(|name| name == "stdout")).unwrap();
    std::fs::write(output, "figure: 98\n").unwrap();
    let summary = lab.weighbridge("summary R").expect_code(3);
    let reason = "sample 2 is invalid (output: its artefacts were modified): it is excluded";
    assert!(words(&summary.out).contains(reason), "{}", summary.out);
}

#[test]
fn calibration_names_the_incomplete_run() {
    let lab = Lab::new();
    define(&lab, "[ $n = 8 ] && f=1");
    let line = format!("calibrate turns {QUICK} --runs 2 --samples 3 --into R");
    let ran = lab.weighbridge(&line).expect_code(3);
    let reason = "failed (its values contradict each other: figure is ";
    assert!(words(&ran.out).contains(&format!("run-001 {reason}")), "{}", ran.out);
    let json = lab.weighbridge(&format!("{line} --json")).json();
    let shortfalls = json["cases"][0]["shortfalls"].as_object().unwrap();
    assert_eq!(shortfalls.keys().collect::<Vec<_>>(), ["run-001"]);
    assert!(shortfalls["run-001"].as_str().unwrap().starts_with(reason), "{shortfalls:?}");
}

#[test]
fn contradictory_variants_report_the_measured_blocks() {
    let lab = Lab::new();
    define(&lab, "[ $n = 9 ] && f=1");
    let ran = lab.weighbridge(&format!("ab turns {QUICK} --into R -- base other:env:A=1")).expect_code(3);
    let end = ran.out.lines().find(|line| line.contains("not decided")).unwrap_or_default().trim();
    let measured = end.strip_prefix("not decided: ").and_then(|rest| rest.split(' ').next());
    assert!(["4", "5"].contains(&measured.unwrap_or_default()), "the ninth sample is in the fifth block: {}", ran.out);
    assert!(end.ends_with(" blocks of at most 30 measured, 0 counted"), "{}", ran.out);
}
