//! Runs whose results are not those of their records: what compares them takes the figures of the records, or refuses.

use std::time::Duration;

use serde_json::Value;

use crate::lab::{Lab, Ran, copy_folder};

const QUICK: &str = "--min-time 1ms --warm-up 0 --retakes 0 --attempts 1";

/// A test that prints about 1000 six times and then about 700. With the file `deadly` it ends its agent from the twelfth
/// time on.
fn define(lab: &Lab) {
    lab.write("count", "0");
    let script = "n=$(($(cat COUNT) + 1)); echo $n >COUNT; sleep 0.02; \
                  [ -e DEADLY ] && [ $n -ge 12 ] && kill -9 $PPID && sleep 5; \
                  [ $n -gt 6 ] && echo figure: $((700 + n % 5)) || echo figure: $((1000 + n % 5))";
    let path = |name: &str| lab.path(name).display().to_string();
    let script = script.replace("COUNT", &path("count")).replace("DEADLY", &path("deadly"));
    let command = serde_json::to_string(&script).unwrap();
    lab.define_figure(
        "falling",
        &format!("name = \"falling\"\nsummary = \"falls\"\nversion = 1\ncommand = [\"sh\", \"-c\", {command}]\n"),
    );
}

/// A lab with the runs `old` and `new`, which are of the same six samples.
fn lab() -> Lab {
    let lab = Lab::new();
    define(&lab);
    let ran = lab.weighbridge(&format!("run falling {QUICK} --samples 6 --into new"));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    copy_folder(&lab.path("new"), &lab.path("old"));
    lab
}

/// Begins to measure 60 samples into a folder, and kills the controller when so many are there.
fn kill_after(lab: &Lab, samples: usize, run: &str) {
    let mut child = lab.start(&format!("run falling {QUICK} --samples 60 --into {run}"));
    let journal = lab.path(run).join("journal.jsonl");
    let ended = || std::fs::read_to_string(&journal).unwrap_or_default().matches("\"attempt-ended\"").count();
    for _ in 0..3000 {
        if ended() >= samples {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(child.try_wait().unwrap().is_none(), "it is still measuring");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lab.processes_left(), [""; 0]);
}

/// The counted samples of the only cell and the mean of its metric, in a study.
fn of_study(lab: &Lab, run: &str) -> (u64, f64) {
    let study = lab.weighbridge(&format!("summary {run} --json")).json();
    let cell = &study["cells"][0];
    let counted = cell["samples"].as_array().unwrap().iter().filter(|sample| sample["counted"] == true).count();
    (counted as u64, cell["metrics"][0]["summary"]["mean"].as_f64().unwrap())
}

/// The same in the last build of a comparison.
fn of_comparison(outcome: &Value) -> (u64, f64) {
    let check = outcome["checks"].as_array().unwrap().iter().find(|check| check["statistic"] == "mean").unwrap();
    (outcome["builds"][1]["samples"]["counted"].as_u64().unwrap(), check["after"].as_f64().unwrap())
}

const NOTE: &str = "note: new: has results that are older than its records; it is studied anew here, and \
                    `weighbridge study` writes its results\n";

#[test]
fn samples_of_a_killed_controller_are_compared() {
    let lab = lab();
    assert_eq!(lab.weighbridge("compare old new --trust-single-run").code, 0);
    kill_after(&lab, 25, "new");
    let ran = lab.weighbridge("compare old new --trust-single-run");
    assert_eq!(ran.code, 2, "{}", ran.seen());
    assert!(ran.out.contains("loss         Localhost/falling/0000:-/throughput/figure#mean"), "{}", ran.out);
    assert!(ran.err.contains(NOTE), "{}", ran.err);
    let outcome = lab.weighbridge("compare old new --json").json();
    let expected = of_study(&lab, "new");
    assert_eq!(of_comparison(&outcome), expected);
    assert!(expected.0 >= 25, "{expected:?}");
    let table = lab.weighbridge("analyze new");
    assert!(table.out.contains(&format!(",{}\n", expected.1)), "{} is in {}", expected.1, table.out);
    assert_eq!(lab.weighbridge("compare old new --strict").code, 1);
    assert_eq!(lab.weighbridge("study new").code, 3, "it has fewer than the 60 samples that were asked for");
    let studied = lab.weighbridge("compare old new --json --strict");
    assert_eq!((of_comparison(&studied.json()), studied.err.as_str()), (expected, ""));
}

#[test]
fn a_first_entry_that_was_killed_is_compared_too() {
    let lab = lab();
    kill_after(&lab, 8, "killed");
    assert!(!lab.path("killed/Localhost/falling/0000/result.json").exists());
    let ran = lab.weighbridge("compare old killed --json");
    assert_eq!(of_comparison(&ran.json()), of_study(&lab, "killed"));
    let answers = lab.weighbridge("solve killed");
    assert_eq!(answers.code, 0, "{}", answers.seen());
}

#[test]
fn a_run_whose_agent_is_lost_has_results() {
    let lab = lab();
    lab.write("deadly", "");
    let ran = lab.weighbridge(&format!("run falling {QUICK} --samples 60 --into new"));
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let outcome = lab.weighbridge("compare old new --json --strict");
    assert!(!outcome.err.contains("older"), "{}", outcome.err);
    let expected = of_study(&lab, "new");
    assert_eq!((of_comparison(&outcome.json()), expected.0), (expected, 11));
    // One that has nothing but the loss is an error with its text.
    let ran = lab.weighbridge(&format!("run falling {QUICK} --samples 6 --into lost"));
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let ran = lab.weighbridge("compare old lost");
    assert_eq!(ran.code, 3, "{}", ran.seen());
    let text: Vec<&str> = ran.out.split_whitespace().collect();
    assert!(
        text.join(" ").contains("error Localhost/falling/0000:- `lost` failed: lost (local: its agent ended"),
        "{}",
        ran.out
    );
}

/// Cuts a file of the fourth sample of `new` short.
fn damage(lab: &Lab) {
    let sample = lab.path("new/Localhost/falling/0000/-/0003.0");
    let files = std::fs::read_dir(sample).unwrap().flatten().map(|entry| entry.path());
    let output = files.into_iter().find(|path| path.extension().is_some_and(|name| name == "stdout")).unwrap();
    let text = std::fs::read(&output).unwrap();
    std::fs::write(output, &text[..text.len() / 2]).unwrap();
}

#[test]
fn a_damaged_sample_does_not_count_and_is_an_error() {
    let lab = lab();
    damage(&lab);
    for flags in ["", " -q"] {
        let ran = lab.weighbridge(&format!("compare old new{flags}"));
        assert_eq!(ran.code, 3, "{}", ran.seen());
        let text: Vec<&str> = ran.out.split_whitespace().collect();
        let error = "error Localhost/falling/0000:- `new` failed: 1 damaged sample: Localhost/falling/0000/-/0003.0/";
        assert!(text.join(" ").contains(error), "{}", ran.out);
    }
    let outcome = lab.weighbridge("compare old new --json").json();
    assert_eq!(of_comparison(&outcome), of_study(&lab, "new"));
    assert_eq!(outcome["builds"][1]["samples"]["counted"], 5);
    for line in ["analyze new -q", "model fit --linear -o model.json new", "nearest new old"] {
        let ran = lab.weighbridge(line);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{line}: {}", ran.seen());
        assert!(ran.err.contains("error: new: `Localhost/falling/0000:-` has 1 damaged sample: "), "{}", ran.err);
    }
    // Results that were written afterwards make it no better.
    assert_eq!(lab.weighbridge("study new").code, 3);
    assert_eq!(lab.weighbridge("compare old new").code, 3);
    // The same line takes it again.
    assert_eq!(lab.weighbridge(&format!("run falling {QUICK} --samples 6 --into new")).code, 0);
    let ran = lab.weighbridge("compare old new");
    assert!(!ran.out.contains("damaged"), "{}", ran.seen());
}

#[test]
fn a_sample_that_has_another_text_of_the_same_length_is_damaged() {
    let lab = lab();
    let sample = lab.path("new/Localhost/falling/0000/-/0003.0");
    let files = std::fs::read_dir(sample).unwrap().flatten().map(|entry| entry.path());
    let output = files.into_iter().find(|path| path.extension().is_some_and(|name| name == "stdout")).unwrap();
    let text = std::fs::read_to_string(&output).unwrap();
    std::fs::write(&output, text.replace("100", "200")).unwrap();
    let ran = lab.weighbridge("compare old new");
    assert_eq!(ran.code, 3, "{}", ran.seen());
    assert!(ran.out.contains("1 damaged sample"), "{}", ran.out);
}

/// What is refused with the exit status of failures, however quiet.
fn refused(lab: &Lab, why: &str) {
    let refused = |ran: &Ran| ran.code == 3 && ran.out.is_empty() && ran.err.contains(why);
    for line in ["compare old new", "compare -q old new", "analyze -q new", "model fit --linear -q -o model.json new"] {
        let ran = lab.weighbridge(line);
        assert!(refused(&ran), "{line}: {}", ran.seen());
    }
}

#[test]
fn damaged_records_of_a_run_are_refused() {
    let lab = lab();
    let head = std::fs::read_to_string(lab.path("new/run.json")).unwrap();
    lab.write("new/run.json", &head[..head.len() / 2]);
    refused(&lab, "error: cannot compare new: new/run.json:");
    std::fs::remove_file(lab.path("new/run.json")).unwrap();
    refused(&lab, "error: cannot compare new: new is no run: it has no run.json");
    lab.write("new/run.json", &head);
    lab.write("new/journal.jsonl", "");
    refused(&lab, "error: cannot compare new: new/journal.jsonl is gone");
}

#[test]
fn results_that_cannot_be_derived_again_are_refused_with_the_way_out() {
    let lab = lab();
    let path = lab.path("new/Localhost/falling/0000/result.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert_eq!(lab.weighbridge("compare old new").code, 0, "results that are cut short are derived again");
    std::fs::remove_dir_all(lab.path("config")).unwrap();
    std::fs::remove_dir_all(lab.path("new/tests.d")).unwrap();
    refused(&lab, "error: new has results that are older than its records, and they cannot be studied: ");
    assert!(lab.weighbridge("compare old new").err.contains("help: `weighbridge study new` writes results"));
}

#[test]
fn what_is_done_around_measuring_leaves_results_as_they_are() {
    let lab = Lab::new();
    define(&lab);
    let ran = lab.weighbridge(&format!("run falling {QUICK} --samples 6 --publish true --into R"));
    assert_eq!(ran.code, 0, "{}", ran.seen());
    assert_eq!(lab.journal("R").last().unwrap()["event"], "published");
    let ran = lab.weighbridge("compare R R --strict");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn a_copy_of_a_run_is_not_another_run() {
    let lab = lab();
    for (build, copy) in [("old,new old", "new is a copy of old"), ("old new,old", "old is a copy of new")] {
        let ran = lab.weighbridge(&format!("compare {build}"));
        assert_eq!(ran.code, 1, "{}", ran.seen());
        assert!(ran.err.contains(&format!("error: {copy}: a run counts once\nhelp: ")), "{}", ran.err);
    }
    assert_eq!(lab.weighbridge("compare old new").code, 0, "on both sides it is a comparison with itself");
}
