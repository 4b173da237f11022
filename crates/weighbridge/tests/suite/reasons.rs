//! Samples and runs that do not count: whatever shows them says why.

use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --warm-up 0";

/// For `run`, whose samples may be disturbed and vary.
const STEADY: &str = "--retakes 0 --precision 100";

/// A test with a throughput `figure` and a latency `response`, whose shell script sets `f` and `r` by `n`, how often it
/// has been called.
fn define(lab: &Lab, script: &str) {
    let count = lab.write("count", "0").display().to_string();
    let script = format!(
        "n=$(($(cat {count}) + 1)); echo $n >{count}; f=$((1000 + n % 3)); r=1; {script}; echo figure: $f; echo response: $r"
    );
    let command = serde_json::to_string(&script).unwrap();
    lab.define(
        "turns",
        &format!(
            "name = \"turns\"\nsummary = \"turns at some time\"\nversion = 1\ncommand = [\"sh\", \"-c\", {command}]\n\
             [[metric]]\nname = \"figure\"\nclass = \"throughput\"\nunit = \"1/s\"\nprimary = true\nregex = 'figure: (\\S+)'\n\
             [[metric]]\nname = \"response\"\nclass = \"latency\"\nunit = \"s\"\nregex = 'response: (\\S+)'\n"
        ),
    );
}

/// A text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_summary_says_why_a_sample_is_invalid() {
    let lab = Lab::new();
    define(&lab, "[ $n = 4 ] && f=-7");
    let ran = lab.weighbridge(&format!("run turns {QUICK} {STEADY} --min-samples 6 --max-samples 8 --into R"));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let summary = lab.weighbridge("summary R");
    assert!(summary.out.contains("1 invalid"), "{}", summary.out);
    let text = words(&summary.out);
    assert!(text.contains("sample 3 is invalid (possible: ") && text.contains("-7"), "{}", summary.out);
    assert!(text.contains("): it does not count"), "{}", summary.out);
}

#[test]
fn a_summary_says_that_a_sample_is_damaged() {
    let lab = Lab::new();
    assert_eq!(lab.weighbridge(&format!("run steady {QUICK} {STEADY} --samples 6 --into R")).code, 0);
    let sample = lab.path("R/Localhost/steady/0000/kind=a/0002.0");
    let files = std::fs::read_dir(sample).unwrap().flatten().map(|entry| entry.path());
    let output = files.into_iter().find(|path| path.extension().is_some_and(|name| name == "stdout")).unwrap();
    std::fs::write(output, "figure: 98\n").unwrap();
    let summary = lab.weighbridge("summary R");
    assert_eq!(summary.code, 3, "{}", summary.seen());
    let reason = "sample 2 is invalid (output: its artefacts are not as they were written): it does not count";
    assert!(words(&summary.out).contains(reason), "{}", summary.out);
}

#[test]
fn contradictions_of_a_metric_that_is_not_primary_are_told_and_fail_nothing() {
    let lab = Lab::new();
    define(&lab, "[ $n = 3 ] && r=5000");
    let ran = lab.weighbridge(&format!("run turns {QUICK} {STEADY} --samples 6 --into R"));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    let finding = "response is 1 s in sample 0 and 5000 s in sample 2, a factor of 5000: ";
    for line in ["summary R", "format R"] {
        let ran = lab.weighbridge(line);
        assert!(ran.code == 0 && words(&ran.out).contains(finding), "{line}: {}", ran.seen());
    }
}

#[test]
fn a_calibration_says_which_run_fell_short() {
    let lab = Lab::new();
    define(&lab, "[ $n = 8 ] && f=1");
    let line = format!("calibrate turns {QUICK} --runs 2 --samples 3 --into R");
    let ran = lab.weighbridge(&line);
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let reason = "failed (its values contradict each other: figure is ";
    assert!(words(&ran.out).contains(&format!("run-001 {reason}")), "{}", ran.out);
    let json = lab.weighbridge(&format!("{line} --json")).json();
    let shortfalls = json["cases"][0]["shortfalls"].as_object().unwrap();
    assert_eq!(shortfalls.keys().collect::<Vec<_>>(), ["run-001"]);
    assert!(shortfalls["run-001"].as_str().unwrap().starts_with(reason), "{shortfalls:?}");
}

#[test]
fn variants_that_contradict_themselves_say_how_many_blocks_were_measured() {
    let lab = Lab::new();
    define(&lab, "[ $n = 9 ] && f=1");
    let ran = lab.weighbridge(&format!("ab turns {QUICK} --into R -- base other:env:A=1"));
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let end = ran.out.lines().find(|line| line.contains("not decided")).unwrap_or_default().trim();
    let measured = end.strip_prefix("not decided: ").and_then(|rest| rest.split(' ').next());
    assert!(["4", "5"].contains(&measured.unwrap_or_default()), "the ninth sample is in the fifth block: {}", ran.out);
    assert!(end.ends_with(" blocks of at most 30 measured, 0 counted"), "{}", ran.out);
}
