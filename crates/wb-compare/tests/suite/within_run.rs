//! Which parts of a run are compared with each other, and which samples form pairs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wb_compare::comparison::{self, FailOn};
use wb_compare::run_perf::tolerance;
use wb_compare::statistical::{self, Options, Verdict};
use wb_compare::within_run::{SplitOptions, split};
use wb_compare::{Builds, Factor, ReadOptions, WithinRunError};
use wb_results::comparison::{CheckId, Statistic};

use crate::support::TestFolders;

/// A cell of a run, with the value of each sample.
#[derive(Clone)]
struct Cell {
    /// `TEST/SERIAL:CASE`.
    id: &'static str,
    params: Value,
    class: &'static str,
    metric: &'static str,
    values: Vec<f64>,
}

fn cell(id: &'static str, params: Value, level: f64) -> Cell {
    let values = (0..8).map(|n| level * (1.0 + 0.001 * f64::from(n * 3 % 7))).collect();
    Cell { id, params, class: "throughput", metric: "figure", values }
}

impl Cell {
    /// The results; samples are taken in rounds, each `place` seconds after the start of its round.
    fn results(&self, place: usize) -> Value {
        let attempt = |(number, value): (usize, &f64)| {
            json!({"sample": number, "start_seconds": 100 * number + place, "counted": true,
                   "values": {format!("{}/{}", self.class, self.metric): value}})
        };
        let attempts: Vec<Value> = self.values.iter().enumerate().map(attempt).collect();
        let direction = if self.class == "check" { "neither" } else { "higher" };
        let mean = self.values.iter().sum::<f64>() / self.values.len() as f64;
        json!({"id": format!("Localhost/{}", self.id), "key": self.id, "params": self.params, "attempts": attempts,
               "metrics": [{"metric": {"name": self.metric, "class": self.class, "unit": "1/s",
                                       "direction": direction, "primary": true},
                            "worker": null, "summary": {"mean": mean, "stddev_percent": 1.0}}]})
    }
}

/// The run of these cells, in the order of its plan.
fn read(cells: &[Cell]) -> Builds {
    read_with(cells, &ReadOptions { schedule: true, ..ReadOptions::default() })
}

fn read_with(cells: &[Cell], options: &ReadOptions) -> Builds {
    let lab = TestFolders::new();
    lab.file("R/run.json", r#"{"schema": 1, "invocations": []}"#);
    let serials: BTreeSet<&str> = cells.iter().map(|cell| cell.id.split(':').next().unwrap_or_default()).collect();
    for serial in serials {
        let of_serial = cells.iter().enumerate().filter(|(_, cell)| cell.id.starts_with(&format!("{serial}:")));
        let results: Vec<Value> = of_serial.map(|(place, cell)| cell.results(place)).collect();
        lab.file(&format!("R/Localhost/{serial}/result.json"), json!({"cells": results}).to_string());
    }
    lab.try_read(&["R"], options).builds
}

fn param(name: &str) -> SplitOptions {
    options(Factor::Param { name: name.to_owned(), by_test: Default::default() })
}

fn options(factor: Factor) -> SplitOptions {
    SplitOptions { factor, reference: None, allow_different: BTreeSet::new(), cell_names: Default::default() }
}

/// Each compared pair: both sides, and the judged cell.
fn pairs(builds: &Builds) -> Vec<String> {
    let within = builds.within_run().expect("the builds are parts of a run");
    let pair = |row| {
        let ([reference, judged], id) = (within.sides(row), builds.id(row, Statistic::Mean));
        format!("{reference} → {judged}: {}/{}:{}", id.test, id.serial, id.case)
    };
    builds.rows().map(pair).collect()
}

fn verdicts(builds: &Builds) -> Vec<(Verdict, bool)> {
    let compared = statistical::compare(builds, &[], &Options::default()).expect("two sides");
    compared.checks.iter().map(|check| (check.verdict, check.counts.paired)).collect()
}

#[test]
fn cells_of_a_parameter_agree_in_all_others() {
    let cells = [
        cell("t/0000:n=1,size=s", json!({"n": 1, "size": "s"}), 100.0),
        cell("t/0000:n=2,size=s", json!({"n": 2, "size": "s"}), 130.0),
        cell("t/0000:n=1,size=l", json!({"n": 1, "size": "l"}), 50.0),
        cell("t/0000:n=2,size=l", json!({"n": 2, "size": "l"}), 50.0),
        cell("t/0000:n=2,size=x", json!({"n": 2, "size": "x"}), 50.0),
    ];
    let builds = split(read(&cells), &param("n")).unwrap();
    assert_eq!(pairs(&builds), ["n=1 → n=2: t/0000:n=2,size=s", "n=1 → n=2: t/0000:n=2,size=l"]);
    assert_eq!(verdicts(&builds), [(Verdict::Improved, true), (Verdict::Equivalent, true)]);
    assert_eq!(builds.within_run().unwrap().summary.unmatched, ["Localhost/t/0000:n=2,size=x"]);
}

/// The rows of a table with a column for each part: the name, and the case of each part.
fn families(builds: &Builds) -> Vec<String> {
    let case = |metric: &Option<_>| metric.map_or("–", |metric| builds.id(metric, Statistic::Mean).case);
    let family = |(id, metrics): (CheckId<'_>, &[Option<_>])| {
        format!("{}: {}", id.case, metrics.iter().map(case).collect::<Vec<_>>().join(" | "))
    };
    builds.families(Statistic::Mean).map(family).collect()
}

#[test]
fn metrics_of_several_parts_that_are_compared_with_the_same_one_are_a_row() {
    let cells = [
        cell("t/0000:n=1,size=s", json!({"n": 1, "size": "s"}), 100.0),
        cell("t/0000:n=2,size=s", json!({"n": 2, "size": "s"}), 100.0),
        cell("t/0000:n=3,size=s", json!({"n": 3, "size": "s"}), 100.0),
        cell("t/0000:n=1,size=l", json!({"n": 1, "size": "l"}), 50.0),
        cell("t/0000:n=3,size=l", json!({"n": 3, "size": "l"}), 50.0),
    ];
    let builds = split(read(&cells), &param("n")).unwrap();
    assert_eq!(families(&builds), ["n=*,size=s: n=2,size=s | n=3,size=s", "n=*,size=l: – | n=3,size=l"]);
    // A part can have several cells for one of the reference.
    let differing = SplitOptions { allow_different: BTreeSet::from(["size".to_owned()]), ..param("n") };
    let builds = split(read(&[0, 1, 4].map(|index| cells[index].clone())), &differing).unwrap();
    assert_eq!(families(&builds), ["n=*,size=*: n=2,size=s | n=3,size=l"]);
    let two = [cells[0].clone(), cells[1].clone(), cell("t/0000:n=2,size=l", json!({"n": 2, "size": "l"}), 50.0)];
    let builds = split(read(&two), &differing).unwrap();
    assert_eq!(families(&builds), ["n=*,size=s: n=2,size=s", "n=*,size=*: n=2,size=l"]);
}

#[test]
fn a_parameter_may_differ_if_that_is_allowed_or_if_it_only_names_the_cell() {
    let cells = [
        cell("t/0000:n=1", json!({"n": 1, "name": "1 x a"}), 100.0),
        cell("t/0000:n=2", json!({"n": 2, "name": "2 x a"}), 100.0),
    ];
    let error = split(read(&cells), &param("n")).unwrap_err();
    assert!(matches!(&error, WithinRunError::NoCounterparts { others, .. } if *others == ["name"]), "{error}");
    let names = BTreeSet::from(["name".to_owned()]);
    for options in [
        SplitOptions { allow_different: names.clone(), ..param("n") },
        SplitOptions { cell_names: [("t".to_owned(), names.clone())].into(), ..param("n") },
    ] {
        assert_eq!(pairs(&split(read(&cells), &options).unwrap()), ["n=1 → n=2: t/0000:n=2"]);
    }
}

#[test]
fn tests_of_a_plan_with_equal_parameters_are_counterparts_only_within_themselves() {
    let cells = [
        cell("t/0000:n=1", json!({"n": 1}), 100.0),
        cell("t/0000:n=2", json!({"n": 2}), 100.0),
        cell("t/0001:n=1", json!({"n": 1}), 100.0),
        cell("t/0001:n=2", json!({"n": 2}), 100.0),
        cell("u/0000:n=2", json!({"n": 2}), 100.0),
    ];
    let builds = split(read(&cells), &param("n")).unwrap();
    assert_eq!(pairs(&builds), ["n=1 → n=2: t/0000:n=2", "n=1 → n=2: t/0001:n=2"]);
    // Tests with one value each are counterparts of each other.
    let builds =
        split(read(&[cells.into_iter().next().unwrap(), cell("t/0001:-", json!({"n": 2}), 100.0)]), &param("n"));
    assert_eq!(pairs(&builds.unwrap()), ["n=1 → n=2: t/0001:-"]);
}

#[test]
fn ids_agree_in_the_axes_that_vary_within_a_test() {
    let of = |version: &'static str, transport: &str| json!({"dialer": version, "transport": transport});
    let cells = [
        cell("peers/old:dialer=1,transport=tcp", of("1", "tcp"), 100.0),
        cell("peers/old:dialer=1,transport=quic", of("1", "quic"), 100.0),
        cell("peers/new:dialer=2,transport=tcp", of("2", "tcp"), 120.0),
        cell("peers/new:dialer=2,transport=quic", of("2", "quic"), 80.0),
        cell("peers/new:dialer=2,transport=ws", of("2", "ws"), 80.0),
    ];
    let builds = split(read(&cells), &options(Factor::Id)).unwrap();
    let compared = pairs(&builds);
    assert_eq!(compared.len(), 2, "{compared:?}");
    let sides = SplitOptions { reference: Some("old".to_owned()), ..options(Factor::Id) };
    let builds = split(read(&cells), &sides).unwrap();
    let judged = ["old → new: peers/new:dialer=2,transport=tcp", "old → new: peers/new:dialer=2,transport=quic"];
    assert_eq!(pairs(&builds), judged);
    assert_eq!(verdicts(&builds), [(Verdict::Improved, true), (Verdict::Regressed, true)]);
}

#[test]
fn a_metric_of_one_side_is_missing_and_different_metrics_are_an_error() {
    let took = Cell { metric: "took", ..cell("t/0000:n=2", json!({"n": 2}), 100.0) };
    let cells = [cell("t/0000:n=1", json!({"n": 1}), 100.0), took];
    let error = split(read(&cells), &param("n")).unwrap_err();
    assert!(matches!(error, WithinRunError::NoCommonMetric { .. }), "{error}");
    let [one, took] = cells;
    let cells = [one, took, cell("t/0000:n=3", json!({"n": 3}), 100.0)];
    let builds = split(read(&cells), &param("n")).unwrap();
    assert_eq!(verdicts(&builds).iter().filter(|(verdict, _)| *verdict == Verdict::Missing).count(), 2);
}

/// A counter of operations decides: it is equal, also where nothing is counted, or differs.
#[test]
fn a_primary_metric_that_does_not_measure_performance_is_compared() {
    let counter = |id, n: u32, values: [f64; 8]| Cell {
        class: "check",
        metric: "hits",
        values: values.to_vec(),
        ..cell(id, json!({"n": n}), 1.0)
    };
    for (values, verdict) in [
        ([[7.0; 8], [9.0; 8]], Verdict::Differs),
        ([[7.0; 8], [7.0; 8]], Verdict::Equivalent),
        ([[0.0; 8], [0.0; 8]], Verdict::Equivalent),
    ] {
        let cells = [counter("t/0000:n=1", 1, values[0]), counter("t/0000:n=2", 2, values[1])];
        assert_eq!(verdicts(&split(read(&cells), &param("n")).unwrap()), [(verdict, true)], "{values:?}");
    }
}

#[test]
fn without_rounds_the_samples_are_those_of_two_runs_without_noise_between_them() {
    let cells = [cell("t/0000:n=1", json!({"n": 1}), 100.0), cell("t/0000:n=2", json!({"n": 2}), 92.0)];
    assert_eq!(verdicts(&split(read(&cells), &param("n")).unwrap()), [(Verdict::Regressed, true)]);
    // Without the times of samples, as in an imported run, nothing is known of rounds.
    let untimed = read_with(&cells, &ReadOptions::default());
    assert_eq!(verdicts(&split(untimed, &param("n")).unwrap()), [(Verdict::Regressed, false)]);
}

#[test]
fn the_reference_can_be_chosen_and_has_to_have_a_counterpart() {
    let cells = [
        cell("t/0000:n=1", json!({"n": 1}), 100.0),
        cell("t/0000:n=2", json!({"n": 2}), 100.0),
        cell("u/0000:n=7", json!({"n": 7}), 100.0),
    ];
    let with = |reference: &str| SplitOptions { reference: Some(reference.to_owned()), ..param("n") };
    assert_eq!(pairs(&split(read(&cells), &with("2")).unwrap()), ["n=2 → n=1: t/0000:n=1"]);
    let error = |options: &SplitOptions| split(read(&cells), options).unwrap_err();
    assert!(matches!(error(&with("3")), WithinRunError::UnknownLevel(_)));
    assert!(matches!(error(&with("7")), WithinRunError::NothingToJudge { .. }));
    assert!(matches!(error(&param("m")), WithinRunError::NoParam { .. }));
    assert!(matches!(error(&options(Factor::Worker)), WithinRunError::NoWorkers { .. }));
}

/// A throughput that rises and falls, and a resource that does, from one part to another.
#[test]
fn all_verdicts_of_a_check_between_parts_have_the_words_of_parts() {
    let of_class = |class, id, params, level| Cell { class, ..cell(id, params, level) };
    for class in ["throughput", "latency", "resource"] {
        let cells = [
            of_class(class, "t/0000:n=1", json!({"n": 1}), 100.0),
            of_class(class, "t/0000:n=2", json!({"n": 2}), 130.0),
            of_class(class, "t/0000:n=3", json!({"n": 3}), 70.0),
        ];
        let builds = split(read(&cells), &param("n")).unwrap();
        let tolerance_options = tolerance::Options::default();
        let tolerances = tolerance::compare(&builds, &[], &tolerance_options);
        let statistics = statistical::compare(&builds, &[], &Options::default());
        let outcome = comparison::summarize(&builds, &tolerances, statistics.as_ref(), None, FailOn::default());
        let means: Vec<_> = outcome.checks.iter().filter(|check| check.statistic == Statistic::Mean).collect();
        assert_eq!(means.len(), 2);
        for check in means {
            let statistics = check.statistics.as_ref().unwrap();
            let alone = statistics.aspects.iter().map(|aspect| aspect.alone);
            let of_builds = check.statuses.iter().copied().flatten();
            let all: Vec<_> = [check.status, statistics.verdict].into_iter().chain(of_builds).chain(alone).collect();
            assert!(check.final_verdict.is_better() || check.final_verdict.is_worse(), "{check:#?}");
            assert!(all.iter().all(|verdict| *verdict == check.final_verdict), "{all:?}, {:?}", check.final_verdict);
            assert!(check.final_verdict.is_possible(true), "{:?}", check.final_verdict);
        }
    }
}
