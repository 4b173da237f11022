//! Test setups: the differences between two runs, and the record of one.

use crate::support::{TestFolders, iteration, throughput};
use wb_compare::Builds;
use wb_compare::test_setup::TestSetups;
use wb_results::comparison::ValueChange;

/// Writes a run of one test with these cases, each with a run time.
fn write(lab: &TestFolders, name: &str, cases: &[(&str, u32)]) {
    let of_case = |(case, runtime): &(&str, u32)| {
        let text = iteration(case, "iops", &[throughput("iops", 1.0, 1.0), throughput("bw", 1.0, 1.0)]);
        text.replace("\"primary_metric\"", &format!("\"runtime\": {runtime}, \"primary_metric\""))
    };
    lab.run(name, "Localhost/fio/0000", &cases.iter().map(of_case).collect::<Vec<_>>());
}

fn setups(builds: &Builds, build: usize) -> TestSetups<'_> {
    TestSetups::of_build(builds, &builds.list()[build]).remove(0)
}

/// The differences, one per line.
fn differences(builds: &Builds, other: usize) -> Vec<String> {
    let side = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
    let line = |test: &str, ValueChange { name, before, after, cells }: ValueChange| {
        format!("{test} {name}: {} → {} {cells:?}", side(before), side(after))
    };
    let all = setups(builds, 0).differences(&setups(builds, other));
    all.into_iter().flat_map(|(test, changes)| changes.into_iter().map(move |change| line(&test, change))).collect()
}

#[test]
fn equal_changes_of_several_cases_are_merged_and_cases_on_one_side_are_listed() {
    let lab = TestFolders::new();
    write(&lab, "a", &[("read-4k", 60), ("read-8k", 60), ("write-4k", 60)]);
    write(&lab, "b", &[("read-4k", 60), ("read-8k", 60), ("write-4k", 60)]);
    write(&lab, "c", &[("read-4k", 61), ("read-8k", 61), ("write-8k", 60)]);
    lab.run("c", "Tuned/uperf/0000", &[iteration("rr", "x", &[throughput("x", 1.0, 1.0)])]);
    let builds = lab.read(&["a", "b", "c"]);
    assert_eq!(differences(&builds, 1), [""; 0]);
    let expected = [
        "Localhost/fio/0000 cases on one side only: write-4k → write-8k []",
        "Localhost/fio/0000 runtime: 60 → 61 [\"Localhost/fio/0000:read-4k\", \"Localhost/fio/0000:read-8k\"]",
        "Tuned/uperf/0000 : - → 1 case []",
    ];
    assert_eq!(differences(&builds, 2), expected);
}

#[test]
fn clients_are_compared_by_their_number() {
    let lab = TestFolders::new();
    for (run, clients) in [("a", "10.0.0.1,10.0.0.2"), ("b", "10.0.0.7,10.0.0.8"), ("c", "10.0.0.7")] {
        let text = iteration("rr", "x", &[throughput("x", 1.0, 1.0)]);
        let text = text.replace("\"primary_metric\"", &format!("\"clients\": \"{clients}\", \"primary_metric\""));
        lab.run(run, "Localhost/uperf/0000", &[text]);
    }
    let builds = lab.read(&["a", "b", "c"]);
    assert_eq!(differences(&builds, 1), [""; 0]);
    let one = "Localhost/uperf/0000 clients: 2 clients → 1 client [\"Localhost/uperf/0000:rr\"]";
    assert_eq!(differences(&builds, 2), [one]);
    assert!(setups(&builds, 1).to_json().contains("10.0.0.7,10.0.0.8"), "the record is complete");
}

#[test]
fn a_record_lists_common_values_once() {
    let lab = TestFolders::new();
    write(&lab, "a", &[("read-4k", 60), ("read-8k", 60)]);
    lab.run("a", "Localhost/uperf/0000", &[iteration("rr", "x", &[throughput("x", 1.0, 1.0)])]);
    let builds = lab.read(&["a"]);
    let record: serde_json::Value = serde_json::from_str(&setups(&builds, 0).to_json()).unwrap();
    let expected = serde_json::json!({"Localhost/fio/0000": {
        "parameters": {"primary_metric": "iops", "runtime": "60"},
        "cases": {"read-4k": {"name": "read-4k"}, "read-8k": {"name": "read-8k"}},
    }, "Localhost/uperf/0000": {"parameters": {"primary_metric": "x", "name": "rr"}}});
    assert_eq!(record, expected);
}

#[test]
fn another_test_version_only_differs_in_its_keys_and_programs_are_compared() {
    let lab = TestFolders::new();
    let cell = |case: &str, key: &str, version: &str| {
        format!(
            r#"{{"id": "Localhost/redis/0000:n={case}", "key": "{key}", "params": {{"n": "{case}"}},
                "provenance": {{"redis version": "{version}", "kernel": "6.1", "requests": "{key}"}},
                "metrics": [{{"metric": {{"name": "rate", "class": "throughput", "unit": "1/s", "direction": "higher",
                    "primary": true}}, "worker": null, "summary": {{"mean": 3.5, "stddev_percent": 7.0}}}}],
                "attempts": []}}"#
        )
    };
    for (run, keys, version) in [("a", ["k1", "k2"], "7.0"), ("b", ["k3", "k4"], "7.2")] {
        let cells = format!(r#"{{"cells": [{}, {}]}}"#, cell("1", keys[0], version), cell("2", keys[1], version));
        lab.file(&format!("{run}/Localhost/redis/0000/result.json"), cells);
        lab.file(&format!("{run}/run.json"), r#"{"schema": 1, "invocations": []}"#);
    }
    let builds = lab.try_read(&["a", "b"], &wb_compare::ReadOptions::default()).builds;
    let cells = "[\"Localhost/redis/0000:n=1\", \"Localhost/redis/0000:n=2\"]";
    let expected = [
        format!("Localhost/redis/0000 definition key: 2 keys → 2 keys {cells}"),
        format!("Localhost/redis/0000 redis version: 7.0 → 7.2 {cells}"),
    ];
    assert_eq!(differences(&builds, 1), expected);
}
