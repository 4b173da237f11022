//! SIGKILL at random moments: no finished sample is lost or repeated, and the result is that of an uninterrupted run.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::lab::Lab;

const PLAN: &str =
    "run steady:kind=[a,b,c] --min-time 1ms --samples 6 --warm-up 1 --retakes 0 --precision 100 --seed 5 --into";

/// The parts of a study that do not differ from run to run, unlike times, folders and hashes.
fn essence(lab: &Lab, run: &str) -> Vec<String> {
    let study = lab.weighbridge(&format!("study {run} --json")).json();
    let cells = study["cells"].as_array().unwrap().iter();
    cells
        .map(|cell| {
            let values = cell["attempts"].as_array().unwrap().iter().filter(|sample| sample["counted"] == true);
            let mut values: Vec<String> = values.map(|s| format!("{}={}", s["sample"], s["values"])).collect();
            values.sort();
            let summary = &cell["metrics"][0]["summary"];
            format!("{} {} {} {summary} {values:?}", cell["id"], cell["key"], cell["outcome"])
        })
        .collect()
}

/// Checks that every finished attempt finished once and was not repeated.
fn check(lab: &Lab, run: &str) {
    let mut finished = BTreeSet::new();
    for line in lab.journal(run) {
        let sample = format!("{} {} {}", line["cell"], line["purpose"], line["sample"]);
        match line["event"].as_str().unwrap() {
            "attempt-started" => {
                assert!(!finished.contains(&sample), "{run}: {sample} had finished and was started again")
            }
            "attempt-ended" if line["outcome"] == "completed" => {
                assert!(finished.insert(sample.clone()), "{run}: {sample} finished twice");
                for artefact in line["artefacts"].as_array().unwrap() {
                    assert!(artefact["bytes"].as_u64().is_some());
                }
            }
            _ => {}
        }
    }
}

#[test]
fn run_killed_repeatedly_has_the_same_result() {
    // Side by side, as they wait for most of the time.
    std::thread::scope(|scope| {
        for seed in 20..22 {
            scope.spawn(move || kill_runs(4, seed));
        }
    });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn soak_run_killed_many_times_has_the_same_result() {
    kill_runs(200, 20);
}

/// Kills runs until so many were running when they were killed.
fn kill_runs(kills: usize, seed: u64) {
    let lab = Lab::new();
    lab.weighbridge(&format!("{PLAN} whole")).expect_code(0);
    let expected = essence(&lab, "whole");

    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut killed, mut runs) = (0, 0);
    while killed < kills {
        let run = format!("killed-{runs}");
        runs += 1;
        // Kill each run several times, then let it finish.
        for _ in 0..5 {
            let mut child = lab.start(&format!("{PLAN} {run}"));
            std::thread::sleep(Duration::from_millis(rng.random_range(0..1500)));
            let running = child.try_wait().unwrap().is_none();
            child.kill().unwrap();
            child.wait().unwrap();
            killed += usize::from(running);
            if lab.path(&run).join("journal.jsonl").exists() {
                check_readable(&lab, &run);
            }
        }
        let end = lab.weighbridge(&format!("{PLAN} {run}"));
        assert!([0, 4].contains(&end.code), "{run}: {}", end.transcript());
        check(&lab, &run);
        assert_eq!(essence(&lab, &run), expected, "{run}");
    }
    assert_eq!(lab.wait_for_processes(), [""; 0]);
    println!("{killed} kills in {runs} runs: no finished sample was lost or repeated");
}

/// Checks that after a kill all complete lines of the journal are valid JSON.
fn check_readable(lab: &Lab, run: &str) {
    let text = lab.read(format!("{run}/journal.jsonl"));
    let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
    for line in complete.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}
