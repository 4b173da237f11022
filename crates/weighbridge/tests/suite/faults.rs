//! Failures of tools, files and runs, and how they are reported.

use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --samples 6 --warm-up 0 --attempts 2 --retakes 0 --precision 100";

/// A test whose command is this shell script.
fn script(lab: &Lab, script: &str) {
    let script = serde_json::to_string(script).unwrap();
    lab.define(
        "broken",
        &format!(
            "name = \"broken\"\nsummary = \"breaks\"\nversion = 1\ncommand = [\"sh\", \"-c\", {script}]\n\n[[metric]]\nname = \"rate\"\nclass = \"throughput\"\nunit = \"MB/s\"\nprimary = true\nregex = 'rate: (\\S+) MB/s'\n"
        ),
    );
}

/// Exit status, outcome and reason of the only cell.
fn outcome(lab: &Lab, flags: &str) -> (i32, String, String) {
    let ran = lab.weighbridge(&format!("run broken {QUICK} {flags} --into R --json"));
    let outcome = ran.json()["cells"][0]["outcome"].clone();
    let text = |field: &str| outcome[field].as_str().unwrap_or_default().to_owned();
    (ran.code, text("outcome"), text("reason"))
}

#[test]
fn crash_reason_contains_the_stderr_of_the_tool() {
    let lab = Lab::new();
    script(&lab, "echo no space on device >&2; exit 7");
    let (code, outcome, reason) = outcome(&lab, "");
    assert_eq!((code, outcome.as_str()), (3, "failed"));
    assert!(reason.contains("exit status 7") && reason.contains("no space on device"), "{reason}");
}

#[test]
fn hanging_tool_is_killed_at_the_time_limit() {
    let lab = Lab::new();
    script(&lab, "trap '' TERM; sleep 100 & wait; sleep 100");
    let (code, outcome, reason) = outcome(&lab, "--limit 300ms");
    assert_eq!((code, outcome.as_str()), (3, "failed"));
    assert!(reason.contains("timeout after 300ms"), "{reason}");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

#[test]
fn invalid_output_is_not_a_value() {
    for output in [
        "echo rate: fast MB/s",
        "echo rate: 12 GB/s",
        "true",
        "echo rate: nan MB/s",
        "echo rate: -3 MB/s",
        "echo rate: 0 MB/s",
    ] {
        let lab = Lab::new();
        script(&lab, output);
        let (code, outcome, reason) = outcome(&lab, "");
        assert_eq!((code, outcome.as_str()), (3, "failed"), "{output}: {reason}");
        assert!(reason.contains("invalid"), "{output}: {reason}");
    }
}

#[test]
fn values_that_differ_by_1000_fail_the_cell() {
    let lab = Lab::new();
    let counter = lab.write("counter", "");
    let counter = counter.display();
    script(
        &lab,
        &format!(
            "echo >>{counter}; if [ $(wc -l <{counter}) -ge 5 ]; then echo rate: 1 MB/s; else echo rate: 1000 MB/s; fi"
        ),
    );
    let (code, outcome, reason) = outcome(&lab, "");
    assert_eq!((code, outcome.as_str()), (3, "failed"));
    let both = "its values contradict each other: rate is 1 GB/s in sample 0 and 1 MB/s in sample 4, a factor of 1000";
    assert_eq!(reason, both);
    let summary = lab.weighbridge("summary R");
    // Lines are wrapped to the width of the terminal.
    let words: Vec<&str> = summary.out.split_whitespace().collect();
    assert!(words.join(" ").contains(both), "{}", summary.out);
    // The outcome stays the same when the run is resumed.
    let again = lab.weighbridge(&format!("run broken {QUICK} --into R"));
    assert_eq!(again.code, 3, "{}", again.transcript());
    assert_eq!(lab.journal("R").iter().filter(|line| line["event"] == "attempt-ended").count(), 5);
}

#[test]
fn missing_tool_is_unsupported_and_names_the_package() {
    let lab = Lab::new();
    lab.define(
        "absent",
        "name = \"absent\"\nsummary = \"needs a missing program\"\nversion = 1\ncommand = [\"nosuchtool\"]\n\n[[requires]]\nprogram = \"nosuchtool\"\npackage = \"nosuchpackage\"\n\n[[metric]]\nname = \"x\"\nclass = \"throughput\"\nunit = \"1/s\"\nprimary = true\nregex = '(\\d+)'\n",
    );
    let ran = lab.weighbridge(&format!("run absent steady {QUICK} --into R"));
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    assert!(ran.out.contains("apt-get install nosuchpackage"), "{}", ran.out);
    assert!(ran.out.contains("measured"), "the rest of the plan is measured: {}", ran.out);
}

#[test]
fn folder_with_other_files_is_refused() {
    let lab = Lab::new();
    lab.write("mine/letter.txt", "dear diary");
    let ran = lab.weighbridge("run steady --into mine");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("is not a run folder"), "{}", ran.err);
    let ran = lab.weighbridge("summary nowhere");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no such run: nowhere"), "{}", ran.err);
}

#[test]
fn other_files_in_a_run_folder_are_preserved() {
    let lab = Lab::new();
    assert_eq!(lab.weighbridge(&format!("run steady {QUICK} --into R")).code, 0);
    lab.write("R/notes.txt", "mine");
    lab.write("R/Localhost/steady/0000/kind=a/notes.txt", "mine");
    assert_eq!(lab.weighbridge("study R").code, 0);
    assert_eq!(std::fs::read_to_string(lab.path("R/notes.txt")).unwrap(), "mine");
}

#[test]
fn journal_is_resumed_after_an_incomplete_last_line_and_refused_after_an_incomplete_middle_line() {
    let lab = Lab::new();
    assert_eq!(lab.weighbridge(&format!("run steady {QUICK} --into R")).code, 0);
    let path = lab.path("R/journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    // Truncate the line that ends the last sample: only that sample is retaken.
    let last = text.rfind("\"event\":\"attempt-ended\"").unwrap();
    std::fs::write(&path, &text[..last + 40]).unwrap();
    let ran = lab.weighbridge(&format!("run steady {QUICK} --into R"));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let ended = lab.journal("R").iter().filter(|line| line["event"] == "attempt-ended").count();
    assert_eq!(ended, 6);
    let truncated = text.replacen("\"event\":\"attempt-ended\"", "\"event\":\"atte", 1);
    std::fs::write(&path, truncated).unwrap();
    let ran = lab.weighbridge("summary R");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("journal.jsonl:3:"), "{}", ran.err);
}

#[test]
fn sample_with_a_changed_artefact_is_retaken() {
    let lab = Lab::new();
    assert_eq!(lab.weighbridge(&format!("run steady {QUICK} --into R")).code, 0);
    let folder = lab.path("R/Localhost/steady/0000/kind=a/0003.0");
    let artefact = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().ends_with(".stdout"))
        .unwrap();
    std::fs::write(artefact.path(), "figure: 999\n").unwrap();
    let study = lab.weighbridge("summary R --json");
    assert!(study.out.contains("its artefacts were modified"), "{}", study.out);
    let study = study.json();
    let samples = study["cells"][0]["samples"].as_array().unwrap();
    assert!(samples.iter().all(|sample| sample["values"]["throughput/figure"] != 999.0), "{samples:?}");
    let ran = lab.weighbridge(&format!("run steady {QUICK} --into R --json"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.json()["cells"][0]["metrics"][0]["summary"]["n"], 6);
}

#[test]
fn missing_definition_is_rewritten_and_missing_journal_is_an_error() {
    let lab = Lab::new();
    let line = format!("run steady {QUICK} --into R");
    assert_eq!(lab.weighbridge(&line).code, 0);
    std::fs::remove_file(lab.path("R/Localhost/steady/0000/definition.json")).unwrap();
    let ran = lab.weighbridge("summary R");
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    assert!(ran.err.contains("missing definition of `Localhost/steady/0000:kind=a`"), "{}", ran.err);
    assert_eq!(lab.weighbridge(&line).code, 4);
    assert_eq!(lab.weighbridge("summary R").code, 0);
    std::fs::remove_file(lab.path("R/journal.jsonl")).unwrap();
    for line in ["summary R", &line] {
        let ran = lab.weighbridge(line);
        assert_eq!(ran.code, 1, "{}", ran.transcript());
        assert!(ran.err.contains("missing journal ") && ran.err.contains("journal.jsonl: restore it"), "{}", ran.err);
    }
}

#[test]
fn run_can_be_read_without_its_test_definitions() {
    let lab = Lab::new();
    assert_eq!(lab.weighbridge(&format!("run steady {QUICK} --into R")).code, 0);
    std::fs::remove_dir_all(lab.path("config")).unwrap();
    assert_eq!(lab.weighbridge("summary R").code, 0);
    std::fs::remove_dir_all(lab.path("R/tests.d")).unwrap();
    let ran = lab.weighbridge("summary R");
    assert!(
        ran.err.contains("unknown test `steady` in the run: pass the folder of its definition with --tests-d"),
        "{}",
        ran.err
    );
}

#[test]
fn exhausted_budget_is_reported() {
    let lab = Lab::new();
    let line = "run steady --min-time 1ms --budget 1ms --retakes 0 --into R";
    let ran = lab.weighbridge(line);
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    assert!(ran.out.contains("0 valid samples of at least 6; its time budget of 1ms is spent"), "{}", ran.out);
    let again = lab.weighbridge(line);
    assert_eq!(again.code, 3, "{}", again.transcript());
    assert!(again.err.contains("nothing left to measure: 1 cell incomplete"), "{}", again.err);
}

#[test]
fn two_controllers_cannot_share_a_folder() {
    let lab = Lab::new();
    let mut first = lab.start("run steady --min-time 1ms --samples 30 --into R");
    let journal = lab.path("R/journal.jsonl");
    for _ in 0..200 {
        if std::fs::metadata(&journal).is_ok_and(|file| file.len() > 0) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let ran = lab.weighbridge("run steady --into R");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("another weighbridge is writing"), "{}", ran.err);
    first.wait().unwrap();
}
