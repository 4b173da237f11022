//! Scores of the shared builds equal those of run-perf's compare-perf, to two decimals, except for corrected cases:
//! each of these is a [`Rule`] here, without listing identifiers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{shared, unchanged_results};
use serde::Deserialize;
use wb_compare::run_perf::tolerance::score::{ScorePart, ScoreTerm, Weights};
use wb_compare::run_perf::tolerance::totals::ComparisonExit;
use wb_compare::run_perf::tolerance::{Comparison, Options, compare};
use wb_compare::{BuildSource, ReadOptions, ToleranceModel, read};
use wb_results::comparison::Status;

/// The output of compare-perf for some builds.
#[derive(Deserialize)]
struct ReferenceScores {
    paths: Vec<String>,
    opts: Vec<String>,
    rc: u8,
    rows: BTreeMap<String, Vec<(String, f64, String)>>,
}

/// The relation between a row and that of compare-perf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// Score, parts and limit are equal.
    Same,
    /// A side is missing, which is not a score of −100.
    Missing,
    /// The source is zero, which is not equal.
    FromZero,
}

/// The result for an identifier in a build: score, status and parts.
type ActualScore = (Option<f64>, Status, Option<Vec<ScorePart>>);

fn results(comparison: &Comparison<'_>) -> BTreeMap<String, Vec<ActualScore>> {
    let builds = 1..comparison.builds.list().len();
    let checks = (0..comparison.checks.len()).map(|index| {
        let cells = builds.clone().filter_map(|build| Some((build, comparison.cell(index, build)?)));
        let results = cells.map(|(build, cell)| (cell.score, cell.status, Some(comparison.parts(index, build))));
        (comparison.id(index).to_string(), results.collect())
    });
    let groups = comparison.groups.iter().map(|group| {
        let cells = builds.clone().filter_map(|build| group.cell(build));
        (group.id.to_string(), cells.map(|cell| (Some(cell.score), cell.status, None)).collect())
    });
    checks.chain(groups).collect()
}

fn two_decimals(score: f64) -> f64 {
    format!("{score:.2}").parse().unwrap()
}

/// Parses the parts of an explanation: `model0 0.83%`, `raw -1.69%`.
fn parts_of(explanation: &str) -> BTreeMap<String, f64> {
    let (parts, _) = explanation.split_once('(').unwrap();
    let words: Vec<_> = parts.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let pairs =
        words.windows(2).filter_map(|pair| Some((pair[0].to_owned(), pair[1].strip_suffix('%')?.parse().ok()?)));
    pairs.collect()
}

fn name(term: ScoreTerm) -> String {
    match term {
        ScoreTerm::Raw => "raw".to_owned(),
        ScoreTerm::Model(at) => format!("model{at}"),
        ScoreTerm::ModelRaw(at) => format!("mraw{at}"),
        ScoreTerm::BuildsAverage => "avg".to_owned(),
        ScoreTerm::NOutOfResults => "n_of".to_owned(),
    }
}

/// The rule of a row; `None` if it matches none.
fn rule(expected: &(String, f64, String), actual: &ActualScore) -> Option<Rule> {
    let ((status, score, explanation), (our_score, our_status, parts)) = (expected, actual);
    if explanation.starts_with("ERROR  Not present in ") {
        return (*our_status == Status::Missing && our_score.is_none()).then_some(Rule::Missing);
    }
    let our_score = (*our_score)?;
    if our_score.is_infinite() {
        return (*score == 0.0).then_some(Rule::FromZero);
    }
    let beyond = matches!(our_status, Status::Improved | Status::Regressed);
    let same_parts = parts.as_ref().is_none_or(|parts| {
        let actual_parts = parts.iter().map(|part| (name(part.term), two_decimals(part.difference)));
        actual_parts.collect::<BTreeMap<_, _>>() == parts_of(explanation)
    });
    let same = two_decimals(our_score) == *score && beyond == (status != "PASS") && same_parts;
    same.then_some(Rule::Same)
}

fn options(data: &Path, opts: &[String]) -> (Vec<ToleranceModel>, Options) {
    let (mut models, mut options) = (Vec::new(), Options::default());
    for pair in opts.chunks(2) {
        let number = || pair[1].parse::<f64>().unwrap();
        match pair[0].as_str() {
            "-l" => models.push(ToleranceModel::read(&data.join(&pair[1])).unwrap()),
            "-t" => options.tolerance = number(),
            "-s" => options.stddev_tolerance = number(),
            "--model-builds-average" => options.weights.builds_average = number(),
            "--n-out-of-results" => options.weights.n_out_of_results = number(),
            "--n-out-of-results-n" => options.weights = Weights { n: pair[1].parse().unwrap(), ..options.weights },
            other => panic!("unknown option: {other}"),
        }
    }
    (models, options)
}

/// compare-perf's exit code: 2 if a primary check or a group is beyond its tolerance or missing.
fn reference_exit_code(comparison: &Comparison<'_>) -> u8 {
    let totals = comparison.totals(comparison.last().unwrap());
    let bad = [Status::Improved, Status::Regressed, Status::Missing, Status::Invalid];
    let any = bad.iter().any(|status| totals.primary.of(*status) + totals.groups.of(*status) > 0);
    if any { 2 } else { 0 }
}

#[test]
fn scores_equal_those_of_compare_perf() {
    let Some(data) = shared("run-perf") else { return };
    let text = std::fs::read(data.join("scores.json")).unwrap();
    let all: BTreeMap<String, ReferenceScores> = serde_json::from_slice(&text).unwrap();
    let mut counts: BTreeMap<Rule, usize> = BTreeMap::new();
    let mut groups = 0;
    for (comparison, expected) in &all {
        let sources: Vec<_> =
            expected.paths.iter().map(|path| BuildSource::parse(data.join(path).to_str().unwrap()).unwrap()).collect();
        let builds =
            read(&sources, &ReadOptions { strict: true, ..ReadOptions::default() }, &unchanged_results).unwrap().builds;
        let (models, options) = options(&data, &expected.opts);
        let result = compare(&builds, &models, &options);
        let actual = results(&result);
        assert!(actual.keys().eq(expected.rows.keys()), "{comparison}: the same identifiers");
        for (id, rows) in &expected.rows {
            assert_eq!(actual[id].len(), rows.len(), "{comparison}: {id}");
            for (row, actual) in rows.iter().zip(&actual[id]) {
                let rule = rule(row, actual).unwrap_or_else(|| panic!("{comparison}: {id}: {row:?} is not {actual:?}"));
                *counts.entry(rule).or_default() += 1;
                groups += usize::from(id.contains('*'));
            }
        }
        assert_eq!(reference_exit_code(&result), expected.rc, "{comparison}");
        assert_ne!(result.exit(false), ComparisonExit::NothingComparable, "{comparison}");
    }
    let rows: usize = counts.values().sum();
    println!("{} comparisons, {rows} rows, {groups} of them groups: {counts:?}", all.len());
}
