//! SIGKILL at any moment: nothing finished is lost or done twice, and the end is the same as without.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::lab::Lab;

const PLAN: &str =
    "run steady:kind=[a,b,c] --min-time 1ms --samples 6 --warm-up 1 --retakes 0 --precision 100 --seed 5 --into";
const KILLS: usize = 100;

/// What a study says, without what differs from run to run: times, folders, hashes.
fn essence(lab: &Lab, run: &str) -> Vec<String> {
    let study = lab.weighbridge(&format!("study {run} --json")).json();
    let cells = study["cells"].as_array().unwrap().iter();
    cells
        .map(|cell| {
            let values = cell["samples"].as_array().unwrap().iter().filter(|sample| sample["counted"] == true);
            let mut values: Vec<String> = values.map(|s| format!("{}={}", s["sample"], s["values"])).collect();
            values.sort();
            let summary = &cell["metrics"][0]["summary"];
            format!("{} {} {} {summary} {values:?}", cell["cell"], cell["key"], cell["outcome"])
        })
        .collect()
}

/// Every attempt that finished did so once, and is still as it was written.
fn check(lab: &Lab, run: &str) {
    let mut finished = BTreeSet::new();
    for line in lab.journal(run) {
        let sample = format!("{} {} {}", line["cell"], line["purpose"], line["sample"]);
        match line["event"].as_str().unwrap() {
            "attempt-started" => assert!(!finished.contains(&sample), "{run}: {sample} was finished and began again"),
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
fn a_run_that_is_killed_again_and_again_ends_as_one_that_is_not() {
    let lab = Lab::new();
    let whole = lab.weighbridge(&format!("{PLAN} whole"));
    assert_eq!(whole.code, 0, "{}", whole.seen());
    let wanted = essence(&lab, "whole");

    let mut chance = ChaCha8Rng::seed_from_u64(20);
    let (mut killed, mut runs) = (0, 0);
    while killed < KILLS {
        let run = format!("killed-{runs}");
        runs += 1;
        // Each run is killed a few times and then left to end.
        for _ in 0..5 {
            let mut child = lab.start(&format!("{PLAN} {run}"));
            std::thread::sleep(Duration::from_millis(chance.random_range(0..1500)));
            let running = child.try_wait().unwrap().is_none();
            child.kill().unwrap();
            child.wait().unwrap();
            killed += usize::from(running);
            if lab.path(&run).join("journal.jsonl").exists() {
                check_readable(&lab, &run);
            }
        }
        let end = lab.weighbridge(&format!("{PLAN} {run}"));
        assert!([0, 4].contains(&end.code), "{run}: {}", end.seen());
        check(&lab, &run);
        assert_eq!(essence(&lab, &run), wanted, "{run}");
    }
    assert_eq!(lab.processes_left(), [""; 0]);
    println!("{killed} kills in {runs} runs: nothing finished was lost or done twice");
}

/// Right after a kill, all but a torn last line is whole.
fn check_readable(lab: &Lab, run: &str) {
    let text = std::fs::read_to_string(lab.path(run).join("journal.jsonl")).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    for line in whole.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}
