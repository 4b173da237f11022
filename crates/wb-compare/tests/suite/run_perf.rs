//! Ten made-up builds, and what run-perf 1.2 says of them (`data/run-perf.json`): scores with models, weights and
//! groups, models fitted and rebased, and the nearest of several builds.

use std::collections::BTreeMap;

use crate::support::{Lab, Made, iteration};
use serde::Deserialize;
use serde_json::value::RawValue;
use wb_compare::model::{FitMethod, fit};
use wb_compare::nearest::nearest;
use wb_compare::tolerance::score::Weights;
use wb_compare::tolerance::{Options, Status, compare};
use wb_compare::{Builds, ToleranceModel};

/// By test, case and `CLASS/METRIC`, mean and standard deviation in percent.
type MadeUp = BTreeMap<String, BTreeMap<String, BTreeMap<String, (f64, f64)>>>;

#[derive(Deserialize)]
struct Theirs<'a> {
    primary: BTreeMap<String, String>,
    builds: Vec<MadeUp>,
    #[serde(borrow)]
    linear: &'a RawValue,
    #[serde(borrow)]
    stddev: &'a RawValue,
    #[serde(borrow)]
    rebased: &'a RawValue,
    comparisons: Vec<TheirComparison>,
    nearest: Vec<TheirNearest>,
}

#[derive(Deserialize)]
struct TheirComparison {
    builds: Vec<usize>,
    options: TheirOptions,
    /// The last build's scores; none where a value is missing.
    rows: BTreeMap<String, Option<f64>>,
}

#[derive(Deserialize)]
struct TheirOptions {
    tolerance: f64,
    stddev: f64,
    models: Vec<String>,
    builds_average: f64,
    n_out_of_results: f64,
    n: u32,
}

#[derive(Deserialize)]
struct TheirNearest {
    src: usize,
    candidates: Vec<Vec<usize>>,
    flatten: f64,
    index: usize,
    scores: Vec<f64>,
}

const DATA: &str = include_str!("../data/run-perf.json");

impl Theirs<'_> {
    fn model(&self, name: &str) -> ToleranceModel {
        let text = match name {
            "linear" => self.linear,
            "stddev" => self.stddev,
            _ => self.rebased,
        };
        ToleranceModel::parse(text.get().as_bytes()).unwrap()
    }

    fn lab(&self) -> Lab {
        let lab = Lab::new();
        for (number, build) in self.builds.iter().enumerate() {
            for (test, cases) in build {
                let cases = cases.iter().map(|(case, metrics)| {
                    let made: Vec<_> = metrics.iter().map(|(name, values)| made(name, *values)).collect();
                    iteration(case, &self.primary[test], &made)
                });
                lab.run(&number.to_string(), test, &cases.collect::<Vec<_>>());
            }
        }
        lab
    }
}

fn made(name: &str, (mean, stddev): (f64, f64)) -> Made {
    let (class, metric) = name.split_once('/').unwrap();
    let class = if class == "throughput" { "throughput" } else { "latency" };
    Made { class, metric: metric.to_owned(), mean, stddev, samples: vec![] }
}

fn read(lab: &Lab, builds: impl IntoIterator<Item = usize>) -> Builds {
    let names: Vec<String> = builds.into_iter().map(|build| build.to_string()).collect();
    lab.read(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0)
}

#[test]
fn every_score_is_theirs() {
    let theirs: Theirs<'_> = serde_json::from_str(DATA).unwrap();
    let lab = theirs.lab();
    let (mut same, mut missing, mut from_zero) = (0, 0, 0);
    for (number, comparison) in theirs.comparisons.iter().enumerate() {
        let builds = read(&lab, comparison.builds.iter().copied());
        let TheirOptions { tolerance, stddev, models, builds_average, n_out_of_results, n } = &comparison.options;
        let models: Vec<_> = models.iter().map(|name| theirs.model(name)).collect();
        let weights = Weights { builds_average: *builds_average, n_out_of_results: *n_out_of_results, n: *n };
        let options = Options { tolerance: *tolerance, stddev_tolerance: *stddev, weights, ..Options::default() };
        let compared = compare(&builds, &models, &options);
        let last = compared.last().unwrap();
        let checks = (0..compared.checks.len()).filter_map(|at| {
            let cell = compared.cell(at, last)?;
            assert_eq!(cell.score.is_none(), cell.status == Status::Missing);
            Some((compared.id(at).to_string(), cell.score))
        });
        let groups =
            compared.groups.iter().filter_map(|group| Some((group.id.to_string(), Some(group.cell(last)?.score))));
        let ours: BTreeMap<_, _> = checks.chain(groups).collect();
        assert!(ours.keys().eq(comparison.rows.keys()), "comparison {number}");
        for (id, theirs) in &comparison.rows {
            match (ours[id], *theirs) {
                (None, None) => missing += 1,
                (Some(score), Some(_)) if score.is_infinite() => from_zero += 1,
                (Some(ours), Some(theirs)) if close(ours, theirs) => same += 1,
                (ours, theirs) => panic!("comparison {number}: {id}: {ours:?} is not {theirs:?}"),
            }
        }
    }
    println!("{same} scores are the same; {missing} are missing, {from_zero} come from zero");
    assert!(same > 200 && missing > 0 && from_zero > 0);
}

#[test]
fn fitted_and_rebased_models_are_theirs() {
    let theirs: Theirs<'_> = serde_json::from_str(DATA).unwrap();
    let lab = theirs.lab();
    let first = read(&lab, 0..5);
    for (how, name) in [(FitMethod::Linear, "linear"), (FitMethod::Stddev, "stddev")] {
        let (ours, theirs) = (fit(how, 4.0, &first), theirs.model(name));
        assert!(ours.entries.keys().eq(theirs.entries.keys()), "{name}");
        for (id, entry) in &theirs.entries {
            let figures = |entry: &wb_compare::model::ModelEntry| {
                let spread = entry.range.unwrap();
                [entry.equation.slope, entry.equation.intercept, entry.average.unwrap(), spread.min, spread.max]
            };
            let pairs = figures(&ours.entries[id]).into_iter().zip(figures(entry));
            assert!(
                pairs.clone().all(|(ours, theirs)| close(ours, theirs)),
                "{name}: {id}: {:?}",
                pairs.collect::<Vec<_>>()
            );
        }
    }
    let (rebased, wanted) =
        (theirs.model("linear").rebase(FitMethod::Linear, 4.0, &read(&lab, 7..9)).model, theirs.model("rebased"));
    assert!(rebased.entries.keys().eq(wanted.entries.keys()));
    for (id, entry) in &wanted.entries {
        let ours = rebased.entries[id];
        assert!(close(ours.equation.slope, entry.equation.slope), "{id}");
        assert!(close(ours.equation.intercept, entry.equation.intercept), "{id}");
        let middle = ours.equation.value_at(0.0).unwrap();
        assert!(close(ours.average.unwrap(), middle), "{id}: what is moved is the average, too");
    }
}

#[test]
fn the_nearest_is_theirs() {
    let theirs: Theirs<'_> = serde_json::from_str(DATA).unwrap();
    let builds = read(&theirs.lab(), 0..theirs.builds.len());
    for TheirNearest { src, candidates, flatten, index, scores } in &theirs.nearest {
        let found = nearest(&builds, *src, candidates, *flatten).unwrap();
        assert_eq!(found.candidate, *index, "{candidates:?}");
        let same = found.primary.iter().zip(scores).all(|(ours, theirs)| close(*ours, *theirs));
        assert!(same, "{:?} is not {scores:?}", found.primary);
    }
}
