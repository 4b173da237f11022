//! Failures of tools, files and runs, and how they are reported.

use crate::lab::Lab;

const QUICK: &str = "--min-time 1ms --samples 6 --warm-up 0 --attempts 2 --retakes 0 --precision 100";

#[test]
fn hanging_tool_is_killed_at_the_time_limit() {
    let lab = Lab::new();
    let command = r#"["sh", "-c", "trap '' TERM; sleep 100 & wait; sleep 100"]"#;
    lab.define_figure("hangs", &format!("name = \"hangs\"\nsummary = \"hangs\"\nversion = 1\ncommand = {command}\n"));
    let ran = lab.weighbridge(&format!("run hangs {QUICK} --limit 300ms --into R --json"));
    let outcome = ran.json()["cells"][0]["outcome"].clone();
    assert_eq!((ran.code, outcome["outcome"].as_str()), (3, Some("failed")));
    let reason = outcome["reason"].as_str().unwrap();
    assert!(reason.contains("timeout after 300ms"), "{reason}");
    assert_eq!(lab.wait_for_processes(), [""; 0]);
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
