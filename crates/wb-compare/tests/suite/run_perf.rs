//! Ten generated builds, compared with the output of run-perf 1.2 for them (`data/run-perf.json`): scores with models,
//! weights and groups, models fitted and rebased, and the nearest of several builds.

use std::collections::BTreeMap;

use crate::support::{GeneratedMetric, TestFolders, iteration};
use serde::Deserialize;
use serde_json::value::RawValue;
use wb_compare::run_perf::model::{FitMethod, fit};
use wb_compare::run_perf::nearest::nearest;
use wb_compare::run_perf::tolerance::score::Weights;
use wb_compare::run_perf::tolerance::{Options, compare};
use wb_compare::{Builds, ToleranceModel};
use wb_results::comparison::Status;

/// Mean and standard deviation in percent, by test, case and `CLASS/METRIC`.
type GeneratedBuild = BTreeMap<String, BTreeMap<String, BTreeMap<String, (f64, f64)>>>;

#[derive(Deserialize)]
struct ReferenceData<'a> {
    primary: BTreeMap<String, String>,
    builds: Vec<GeneratedBuild>,
    #[serde(borrow)]
    linear: &'a RawValue,
    #[serde(borrow)]
    stddev: &'a RawValue,
    #[serde(borrow)]
    rebased: &'a RawValue,
    comparisons: Vec<ReferenceComparison>,
    nearest: Vec<ReferenceNearest>,
}

#[derive(Deserialize)]
struct ReferenceComparison {
    builds: Vec<usize>,
    options: ReferenceOptions,
    /// The last build's scores; `None` if a value is missing.
    rows: BTreeMap<String, Option<f64>>,
}

#[derive(Deserialize)]
struct ReferenceOptions {
    tolerance: f64,
    stddev: f64,
    models: Vec<String>,
    builds_average: f64,
    n_out_of_results: f64,
    n: u32,
}

#[derive(Deserialize)]
struct ReferenceNearest {
    #[serde(rename = "src")]
    judged: usize,
    candidates: Vec<Vec<usize>>,
    flatten: f64,
    index: usize,
    scores: Vec<f64>,
}

const DATA: &str = include_str!("../data/run-perf.json");

impl ReferenceData<'_> {
    fn model(&self, name: &str) -> ToleranceModel {
        let text = match name {
            "linear" => self.linear,
            "stddev" => self.stddev,
            _ => self.rebased,
        };
        ToleranceModel::parse(text.get().as_bytes()).unwrap()
    }

    fn lab(&self) -> TestFolders {
        let lab = TestFolders::new();
        for (number, build) in self.builds.iter().enumerate() {
            for (test, cases) in build {
                let cases = cases.iter().map(|(case, metrics)| {
                    let metrics: Vec<_> = metrics.iter().map(|(name, values)| metric(name, *values)).collect();
                    iteration(case, &self.primary[test], &metrics)
                });
                lab.run(&number.to_string(), test, &cases.collect::<Vec<_>>());
            }
        }
        lab
    }
}

fn metric(name: &str, (mean, stddev): (f64, f64)) -> GeneratedMetric {
    let (class, name) = name.split_once('/').unwrap();
    let class = if class == "throughput" { "throughput" } else { "latency" };
    GeneratedMetric { class, metric: name.to_owned(), mean, stddev, samples: vec![] }
}

fn read(lab: &TestFolders, builds: impl IntoIterator<Item = usize>) -> Builds {
    let names: Vec<String> = builds.into_iter().map(|build| build.to_string()).collect();
    lab.read(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

#[test]
fn every_score_equals_run_perfs() {
    let expected: ReferenceData<'_> = serde_json::from_str(DATA).unwrap();
    let lab = expected.lab();
    let (mut equal, mut missing, mut from_zero) = (0, 0, 0);
    for (number, comparison) in expected.comparisons.iter().enumerate() {
        let builds = read(&lab, comparison.builds.iter().copied());
        let ReferenceOptions { tolerance, stddev, models, builds_average, n_out_of_results, n } = &comparison.options;
        let models: Vec<_> = models.iter().map(|name| expected.model(name)).collect();
        let weights = Weights { builds_average: *builds_average, n_out_of_results: *n_out_of_results, n: *n };
        let options = Options { tolerance: *tolerance, stddev_tolerance: *stddev, weights, ..Options::default() };
        let result = compare(&builds, &models, &options);
        let last = result.last().unwrap();
        let checks = (0..result.checks.len()).filter_map(|index| {
            let cell = result.cell(index, last)?;
            assert_eq!(cell.score.is_none(), cell.status == Status::Missing);
            Some((result.id(index).to_string(), cell.score))
        });
        let groups =
            result.groups.iter().filter_map(|group| Some((group.id.to_string(), Some(group.cell(last)?.score))));
        let actual: BTreeMap<_, _> = checks.chain(groups).collect();
        assert!(actual.keys().eq(comparison.rows.keys()), "comparison {number}");
        for (id, expected) in &comparison.rows {
            match (actual[id], *expected) {
                (None, None) => missing += 1,
                (Some(score), Some(_)) if score.is_infinite() => from_zero += 1,
                (Some(actual), Some(expected)) if close(actual, expected) => equal += 1,
                (actual, expected) => panic!("comparison {number}: {id}: {actual:?} is not {expected:?}"),
            }
        }
    }
    println!("{equal} scores are the same; {missing} are missing, {from_zero} come from zero");
    assert!(equal > 200 && missing > 0 && from_zero > 0);
}

#[test]
fn fitted_and_rebased_models_equal_run_perfs() {
    let expected: ReferenceData<'_> = serde_json::from_str(DATA).unwrap();
    let lab = expected.lab();
    let first = read(&lab, 0..5);
    for (method, name) in [(FitMethod::Linear, "linear"), (FitMethod::Stddev, "stddev")] {
        let (actual, expected) = (fit(method, 4.0, &first), expected.model(name));
        assert!(actual.entries.keys().eq(expected.entries.keys()), "{name}");
        for (id, entry) in &expected.entries {
            let parameters = |entry: &wb_compare::run_perf::model::ModelEntry| {
                let spread = entry.range.unwrap();
                [entry.equation.slope, entry.equation.intercept, entry.average.unwrap(), spread.min, spread.max]
            };
            let pairs = parameters(&actual.entries[id]).into_iter().zip(parameters(entry));
            assert!(
                pairs.clone().all(|(actual, expected)| close(actual, expected)),
                "{name}: {id}: {:?}",
                pairs.collect::<Vec<_>>()
            );
        }
    }
    let (rebased, expected_model) =
        (expected.model("linear").rebase(FitMethod::Linear, 4.0, &read(&lab, 7..9)).model, expected.model("rebased"));
    assert!(rebased.entries.keys().eq(expected_model.entries.keys()));
    for (id, entry) in &expected_model.entries {
        let actual = rebased.entries[id];
        assert!(close(actual.equation.slope, entry.equation.slope), "{id}");
        assert!(close(actual.equation.intercept, entry.equation.intercept), "{id}");
        let center = actual.equation.value_at(0.0).unwrap();
        assert!(close(actual.average.unwrap(), center), "{id}: the average moves as well");
    }
}

#[test]
fn the_nearest_build_equals_run_perfs() {
    let expected: ReferenceData<'_> = serde_json::from_str(DATA).unwrap();
    let builds = read(&expected.lab(), 0..expected.builds.len());
    for ReferenceNearest { judged, candidates, flatten, index, scores } in &expected.nearest {
        let result = nearest(&builds, *judged, candidates, *flatten).unwrap();
        assert_eq!(result.candidate, *index, "{candidates:?}");
        let is_equal = result.primary.iter().zip(scores).all(|(actual, expected)| close(*actual, *expected));
        assert!(is_equal, "{:?} is not {scores:?}", result.primary);
    }
}
