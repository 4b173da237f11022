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
fn attempts_that_fail_now_and_then_are_counted_with_their_cause() {
    let lab = Lab::new();
    // Every third execution fails, also that of the sampling rule's calibration.
    let script = "n={definition-folder}/n; echo x >> $n; if [ $(($(wc -l < $n) % 3)) = 0 ]; then echo no luck >&2; exit 7; fi; \
                  echo figure: $(($(wc -l < $n) % 5 + 100))";
    lab.define_script("flaky", script);
    let ran = lab.weighbridge(&format!("run flaky {QUICK} --into R")).expect_code(0);
    let failures = lab.weighbridge("summary R --json").json()["cells"][0]["failures"].clone();
    let (failed, attempts) = (failures["failed"].as_u64().unwrap(), failures["attempts"].as_u64().unwrap());
    assert!(failed > 0 && attempts == failed + 6, "{failures}");
    assert!(failures["cause"].as_str().unwrap().contains("no luck"), "{failures}");
    let counted = format!("{failed} of {attempts} attempts failed");
    for (line, out) in
        [("run", ran.out), ("summary R", String::new()), ("format R", String::new()), ("report R", String::new())]
    {
        let out = if out.is_empty() { lab.weighbridge(line).out } else { out };
        // Tables are wrapped.
        let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("{counted}: ")) && words.contains("no luck"), "{line}: {out}");
    }
    lab.weighbridge("report R --html page.html --csv figures").expect_code(0);
    assert!(lab.read("page.html").contains(&format!("✕ {counted}")));
    assert!(lab.read("figures.csv").lines().nth(1).unwrap().contains(&format!(",{failed},{attempts},0,")));
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
        ran.expect_stderr("missing or empty journal ").expect_stderr("help: restore it");
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
