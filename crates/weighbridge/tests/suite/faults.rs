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
    let ran = lab.weighbridge(&format!("run absent steady {QUICK} --into R")).expect_code(3);
    ran.expect_stdout("apt-get install nosuchpackage");
    assert!(ran.out.contains("measured"), "the rest of the plan is measured: {}", ran.out);
}

#[test]
fn folder_with_other_files_is_refused() {
    let lab = Lab::new();
    lab.write("mine/letter.txt", "dear diary");
    lab.weighbridge("run steady --into mine").expect_code(1).expect_stderr("is not a run folder");
    lab.weighbridge("summary nowhere").expect_code(1).expect_stderr("cannot read run `nowhere`: no such folder");
}

#[test]
fn missing_definition_is_rewritten_and_missing_journal_is_an_error() {
    let lab = Lab::new();
    let line = format!("run steady {QUICK} --into R");
    lab.weighbridge(&line).expect_code(0);
    std::fs::remove_file(lab.path("R/Localhost/steady/0000/definition.json")).unwrap();
    lab.weighbridge("summary R").expect_code(1).expect_stderr("missing definition of `Localhost/steady/0000:kind=a`");
    lab.weighbridge(&line).expect_code(4);
    lab.weighbridge("summary R").expect_code(0);
    std::fs::remove_file(lab.path("R/journal.jsonl")).unwrap();
    for line in ["summary R", &line] {
        let ran = lab.weighbridge(line).expect_code(1);
        ran.expect_stderr("missing journal ").expect_stderr("help: restore it");
    }
}

#[test]
fn run_can_be_read_without_its_test_definitions() {
    let lab = Lab::new();
    lab.weighbridge(&format!("run steady {QUICK} --into R")).expect_code(0);
    std::fs::remove_dir_all(lab.path("config")).unwrap();
    lab.weighbridge("summary R").expect_code(0);
    std::fs::remove_dir_all(lab.path("R/tests.d")).unwrap();
    let ran = lab.weighbridge("summary R");
    ran.expect_stderr("unknown test `steady` in the run: pass the folder of its definition with --tests-d");
}

#[test]
fn exhausted_budget_is_reported() {
    let lab = Lab::new();
    let line = "run steady --min-time 1ms --budget 1ms --retakes 0 --into R";
    let ran = lab.weighbridge(line).expect_code(3);
    ran.expect_stdout("0 valid samples of at least 6; its time budget of 1ms is spent");
    lab.weighbridge(line).expect_code(3).expect_stderr("measured as far as possible: 1 cell incomplete");
}

#[test]
fn two_controllers_cannot_share_a_folder() {
    let lab = Lab::new();
    let mut first = lab.start("run steady --min-time 1ms --samples 30 --into R");
    let journal = lab.path("R/journal.jsonl");
    wb_test_net::wait_until("the journal", || std::fs::metadata(&journal).is_ok_and(|file| file.len() > 0));
    lab.weighbridge("run steady --into R").expect_code(1).expect_stderr("another weighbridge is writing");
    first.wait().unwrap();
}
