//! Runs whose results do not match their records: comparisons use the records, or refuse.

use serde_json::Value;

use crate::lab::{CommandResult, Lab, copy_folder};

const QUICK: &str = "--min-time 1ms --warm-up 0 --retakes 0 --attempts 1";

/// A test that prints about 1000 six times and then about 700. If the file `deadly` exists, it kills its agent from the
/// twelfth time on.
fn define(lab: &Lab) {
    lab.write("count", "0");
    let script = "n=$(($(cat COUNT) + 1)); echo $n >COUNT; sleep 0.02; \
                  [ -e DEADLY ] && [ $n -ge 12 ] && kill -9 $PPID && sleep 5; \
                  [ $n -gt 6 ] && echo figure: $((700 + n % 5)) || echo figure: $((1000 + n % 5))";
    let path = |name: &str| lab.path(name).display().to_string();
    let script = script.replace("COUNT", &path("count")).replace("DEADLY", &path("deadly"));
    lab.define_script("falling", &script);
}

/// A lab with the runs `old` and `new`, which have the same six samples.
fn lab() -> Lab {
    let lab = Lab::new();
    define(&lab);
    lab.weighbridge(&format!("run falling {QUICK} --samples 6 --into new")).expect_code(0);
    copy_folder(&lab.path("new"), &lab.path("old"));
    lab
}

/// Starts to measure 60 samples into a folder, and kills the controller after this many.
fn kill_after(lab: &Lab, samples: usize, run: &str) {
    let mut child = lab.start(&format!("run falling {QUICK} --samples 60 --into {run}"));
    let journal = lab.path(run).join("journal.jsonl");
    let ended = || std::fs::read_to_string(&journal).unwrap_or_default().matches("\"attempt-ended\"").count();
    wb_test_net::wait_until("the samples", || ended() >= samples);
    assert!(child.try_wait().unwrap().is_none(), "the run is still measuring");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lab.wait_for_processes(), [""; 0]);
}

/// Number of counted samples and mean of the only cell, in a study.
fn of_study(lab: &Lab, run: &str) -> (u64, f64) {
    let study = lab.weighbridge(&format!("summary {run} --json")).json();
    let cell = &study["cells"][0];
    let counted = cell["attempts"].as_array().unwrap().iter().filter(|sample| sample["counted"] == true).count();
    (counted as u64, cell["metrics"][0]["summary"]["mean"].as_f64().unwrap())
}

/// Number of counted samples and mean of the last build in a comparison.
fn of_comparison(outcome: &Value) -> (u64, f64) {
    let check = outcome["checks"].as_array().unwrap().iter().find(|check| check["statistic"] == "mean").unwrap();
    (outcome["builds"][1]["samples"]["counted"].as_u64().unwrap(), check["after"].as_f64().unwrap())
}

const NOTE: &str = "note: new: has results that are older than its records; they are recomputed here, and \
                    `weighbridge study` writes them\n";

#[test]
fn samples_of_a_killed_controller_are_compared() {
    let lab = lab();
    lab.weighbridge("compare old new --run-noise 0").expect_code(0);
    kill_after(&lab, 25, "new");
    let ran = lab.weighbridge("compare old new --run-noise 0").expect_code(2);
    ran.expect_stdout("regressed    Localhost/falling/0000:-/throughput/figure#mean").expect_stderr(NOTE);
    let outcome = lab.weighbridge("compare old new --json").json();
    let expected = of_study(&lab, "new");
    assert_eq!(of_comparison(&outcome), expected);
    assert!(expected.0 >= 25, "{expected:?}");
    let table = lab.weighbridge("analyze new");
    assert!(table.out.contains(&format!(",{}\n", expected.1)), "{} is in {}", expected.1, table.out);
    lab.weighbridge("compare old new --strict").expect_code(1);
    assert_eq!(lab.weighbridge("study new").code, 3, "it has fewer than the requested 60 samples");
    let evaluated = lab.weighbridge("compare old new --json --strict");
    assert_eq!((of_comparison(&evaluated.json()), evaluated.err.as_str()), (expected, ""));
}

#[test]
fn run_without_results_is_compared() {
    let lab = lab();
    kill_after(&lab, 8, "killed");
    assert!(!lab.path("killed/Localhost/falling/0000/result.json").exists());
    let ran = lab.weighbridge("compare old killed --json");
    assert_eq!(of_comparison(&ran.json()), of_study(&lab, "killed"));
    lab.weighbridge("solve killed").expect_code(0);
}

#[test]
fn run_with_a_lost_agent_has_results() {
    let lab = lab();
    lab.write("deadly", "");
    lab.weighbridge(&format!("run falling {QUICK} --samples 60 --into new")).expect_code(3);
    let outcome = lab.weighbridge("compare old new --json --strict");
    assert!(!outcome.err.contains("older"), "{}", outcome.err);
    let expected = of_study(&lab, "new");
    assert_eq!((of_comparison(&outcome.json()), expected.0), (expected, 11));
    // A run without any completed sample is an error with the reason.
    lab.weighbridge(&format!("run falling {QUICK} --samples 6 --into lost")).expect_code(3);
    let ran = lab.weighbridge("compare old lost").expect_code(3);
    let text: Vec<&str> = ran.out.split_whitespace().collect();
    assert!(
        text.join(" ").contains("error Localhost/falling/0000:- `lost` failed: lost (local: its agent ended"),
        "{}",
        ran.out
    );
}

/// Truncates a file of the fourth sample of `new`.
fn damage(lab: &Lab) {
    let sample = lab.path("new/Localhost/falling/0000/-/0003.0");
    let files = std::fs::read_dir(sample).unwrap().flatten().map(|entry| entry.path());
    let output = files.into_iter().find(|path| path.extension().is_some_and(|name| name == "stdout")).unwrap();
    let text = std::fs::read(&output).unwrap();
    std::fs::write(output, &text[..text.len() / 2]).unwrap();
}

#[test]
fn damaged_sample_does_not_count_and_is_an_error() {
    let lab = lab();
    damage(&lab);
    for flags in ["", " -q"] {
        let ran = lab.weighbridge(&format!("compare old new{flags}")).expect_code(3);
        let text: Vec<&str> = ran.out.split_whitespace().collect();
        let error = "error Localhost/falling/0000:- `new` failed: 1 damaged sample: Localhost/falling/0000/-/0003.0/";
        assert!(text.join(" ").contains(error), "{}", ran.out);
    }
    let outcome = lab.weighbridge("compare old new --json").json();
    assert_eq!(of_comparison(&outcome), of_study(&lab, "new"));
    assert_eq!(outcome["builds"][1]["samples"]["counted"], 5);
    for line in ["analyze new -q", "model fit --linear -o model.json new", "nearest new old"] {
        let ran = lab.weighbridge(line);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{line}: {}", ran.transcript());
        ran.expect_stderr("error: new: `Localhost/falling/0000:-` has 1 damaged sample: ");
    }
    // Rewriting the results does not help.
    lab.weighbridge("study new").expect_code(3);
    lab.weighbridge("compare old new").expect_code(3);
    // Running the same command again retakes the sample.
    lab.weighbridge(&format!("run falling {QUICK} --samples 6 --into new")).expect_code(0);
    let ran = lab.weighbridge("compare old new");
    assert!(!ran.out.contains("damaged"), "{}", ran.transcript());
}

#[test]
fn sample_changed_at_the_same_length_is_damaged() {
    let lab = lab();
    let sample = lab.path("new/Localhost/falling/0000/-/0003.0");
    let files = std::fs::read_dir(sample).unwrap().flatten().map(|entry| entry.path());
    let output = files.into_iter().find(|path| path.extension().is_some_and(|name| name == "stdout")).unwrap();
    let text = std::fs::read_to_string(&output).unwrap();
    std::fs::write(&output, text.replace("100", "200")).unwrap();
    lab.weighbridge("compare old new").expect_code(3).expect_stdout("1 damaged sample");
}

/// Checks that all comparing commands refuse `new` with exit status 3 and this message.
fn assert_refused(lab: &Lab, message: &str) {
    let refused = |ran: &CommandResult| ran.code == 3 && ran.out.is_empty() && ran.err.contains(message);
    for line in ["compare old new", "compare -q old new", "analyze -q new", "model fit --linear -q -o model.json new"] {
        let ran = lab.weighbridge(line);
        assert!(refused(&ran), "{line}: {}", ran.transcript());
    }
}

#[test]
fn damaged_records_of_a_run_are_refused() {
    let lab = lab();
    let head = lab.read("new/run.json");
    lab.write("new/run.json", &head[..head.len() / 2]);
    assert_refused(&lab, "error: cannot compare new: new/run.json:");
    std::fs::remove_file(lab.path("new/run.json")).unwrap();
    assert_refused(&lab, "error: cannot compare new: `new` is not a run folder: it has no run.json");
    lab.write("new/run.json", &head);
    lab.write("new/journal.jsonl", "");
    assert_refused(&lab, "error: cannot compare new: missing or empty journal `new/journal.jsonl`");
}

#[test]
fn outdated_results_without_definitions_are_refused() {
    let lab = lab();
    let path = lab.path("new/Localhost/falling/0000/result.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert_eq!(lab.weighbridge("compare old new").code, 0, "truncated results are recomputed");
    std::fs::remove_dir_all(lab.path("config")).unwrap();
    std::fs::remove_dir_all(lab.path("new/tests.d")).unwrap();
    assert_refused(&lab, "error: new has results that are older than its records, and cannot be studied: ");
    assert!(lab.weighbridge("compare old new").err.contains("help: `weighbridge study new` recomputes the results"));
}

#[test]
fn publishing_does_not_outdate_results() {
    let lab = Lab::new();
    define(&lab);
    lab.weighbridge(&format!("run falling {QUICK} --samples 6 --publish true --into R")).expect_code(0);
    assert_eq!(lab.journal("R").last().unwrap()["event"], "published");
    let ran = lab.weighbridge("compare R R --strict");
    let note = "note: R is on both sides: a run that is compared with itself shows no difference\n";
    assert_eq!((ran.code, ran.err.as_str()), (0, note));
}

#[test]
fn copy_of_a_run_is_refused() {
    let lab = lab();
    for (build, copy) in [("old,new old", "new is a copy of old"), ("old new,old", "old is a copy of new")] {
        let ran = lab.weighbridge(&format!("compare {build}")).expect_code(1);
        ran.expect_stderr(&format!("error: {copy}, or an import of the same file: a run counts once\nhelp: "));
    }
    assert_eq!(lab.weighbridge("compare old new").code, 0, "a run may be compared with itself");
}

/// Every command that reads a run, with another definition than the run's: unit, direction and metrics are those of the
/// same definition as the values.
#[test]
fn results_are_of_one_definition() {
    let lab = Lab::new();
    let definition = |metric: &str| {
        format!(
            "name = \"timed\"\nsummary = \"a script\"\nversion = 1\ncommand = [\"sleep\", \"0.02\"]\n\
             [[metric]]\nname = \"time\"\nprimary = true\nfrom = \"elapsed\"\n{metric}"
        )
    };
    let seconds = "class = \"latency\"\nunit = \"s\"\n";
    std::fs::create_dir_all(lab.path("t")).unwrap();
    lab.write("t/timed.toml", &definition(seconds));
    lab.weighbridge(&format!("run timed --tests-d t {QUICK} --samples 6 --into R")).expect_code(0);
    lab.weighbridge(&format!("run timed --tests-d t {QUICK} --samples 6 --into R2")).expect_code(0);
    let metric = |line: &str| {
        let cell = lab.weighbridge(line).json()["cells"][0].clone();
        let metric = cell["metrics"][0].clone();
        let of = |name: &str| metric["metric"][name].as_str().unwrap().to_owned();
        let value = metric["summary"]["median"].as_f64().unwrap();
        (of("unit"), of("direction"), value, cell["metrics"].as_array().unwrap().len(), cell["findings"].to_string())
    };
    let original = metric("summary R --json");
    assert_eq!(metric("study R --tests-d t --json"), original);
    assert!(!original.4.contains("another definition"), "{original:?}");
    let added = "\n[[metric]]\nname = \"cpu\"\nclass = \"resource\"\nunit = \"s\"\nfrom = \"cpu-time\"\n";
    for (changed, unit, direction, factor, count) in [
        ("class = \"latency\"\nunit = \"ms\"\nscale = 1000\n".to_owned(), "ms", "lower", 1000.0, 1),
        ("class = \"latency\"\nunit = \"s\"\ndirection = \"higher\"\n".to_owned(), "s", "higher", 1.0, 1),
        ("class = \"throughput\"\nunit = \"ops/s\"\n".to_owned(), "ops/s", "higher", 1.0, 1),
        (format!("{seconds}{added}"), "s", "lower", 1.0, 2),
    ] {
        lab.write("t/timed.toml", &definition(&changed));
        for command in ["summary", "study"] {
            let (of_unit, of_direction, value, metrics, findings) = metric(&format!("{command} R --tests-d t --json"));
            assert_eq!((of_unit.as_str(), of_direction.as_str(), metrics), (unit, direction, count), "{changed}");
            assert!((value / original.2 / factor - 1.0).abs() < 1e-9, "{command} {changed}: {value}");
            assert!(findings.contains("computed with another definition"), "{findings}");
        }
        lab.weighbridge("format R --tests-d t").expect_code(0).expect_stdout("another definition");
        lab.weighbridge("report R --tests-d t --html r.html").expect_code(0);
        // Without it, all of them read the run's own, also after `study`.
        assert_eq!(metric("summary R --json"), original);
        assert_eq!(of_comparison(&lab.weighbridge("compare R2 R --json").json()), of_study(&lab, "R"), "{changed}");
    }
}
