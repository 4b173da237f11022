//! Scores of the shared builds are those that run-perf's compare-perf gives, with two decimals, but for what is put
//! right: each such rule is a [`Rule`] here, and no identifier is.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{as_written, shared};
use serde::Deserialize;
use wb_compare::tolerance::score::{ScorePart, ScoreTerm, Weights};
use wb_compare::tolerance::totals::ComparisonExit;
use wb_compare::tolerance::{Comparison, Options, Status, compare};
use wb_compare::{BuildSource, ReadOptions, ToleranceModel, read};

/// What compare-perf said of some builds.
#[derive(Deserialize)]
struct Theirs {
    paths: Vec<String>,
    opts: Vec<String>,
    rc: u8,
    rows: BTreeMap<String, Vec<(String, f64, String)>>,
}

/// How a row of ours stands to theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// Score, parts and limit are the same.
    Same,
    /// It is missing on a side, and not −100.
    Missing,
    /// It comes from zero, and is not equal.
    FromZero,
}

/// What ours says of an identifier in a build: its score, status and parts.
type Said = (Option<f64>, Status, Option<Vec<ScorePart>>);

fn said(comparison: &Comparison<'_>) -> BTreeMap<String, Vec<Said>> {
    let builds = 1..comparison.builds.list().len();
    let checks = (0..comparison.checks.len()).map(|at| {
        let cells = builds.clone().filter_map(|build| Some((build, comparison.cell(at, build)?)));
        let said = cells.map(|(build, cell)| (cell.score, cell.status, Some(comparison.parts(at, build))));
        (comparison.id(at).to_string(), said.collect())
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

/// The parts in an explanation: `model0 0.83%`, `raw -1.69%`.
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

/// Which rule a row falls under; none where it is under none.
fn rule(theirs: &(String, f64, String), ours: &Said) -> Option<Rule> {
    let ((status, score, explanation), (our_score, our_status, parts)) = (theirs, ours);
    if explanation.starts_with("ERROR  Not present in ") {
        return (*our_status == Status::Missing && our_score.is_none()).then_some(Rule::Missing);
    }
    let our_score = (*our_score)?;
    if our_score.is_infinite() {
        return (*score == 0.0).then_some(Rule::FromZero);
    }
    let beyond = matches!(our_status, Status::Improvement | Status::Regression);
    let same_parts = parts.as_ref().is_none_or(|parts| {
        let ours = parts.iter().map(|part| (name(part.term), two_decimals(part.difference)));
        ours.collect::<BTreeMap<_, _>>() == parts_of(explanation)
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
            other => panic!("an option that this test does not know: {other}"),
        }
    }
    (models, options)
}

/// compare-perf's exit code: 2 where a primary check or a group is beyond its tolerance or missing.
fn their_code(comparison: &Comparison<'_>) -> u8 {
    let totals = comparison.totals(comparison.last().unwrap());
    let bad = [Status::Improvement, Status::Regression, Status::Missing, Status::Invalid];
    let any = bad.iter().any(|status| totals.primary.of(*status) + totals.groups.of(*status) > 0);
    if any { 2 } else { 0 }
}

#[test]
fn scores_are_compare_perfs() {
    let Some(data) = shared("run-perf") else { return };
    let text = std::fs::read(data.join("scores.json")).unwrap();
    let all: BTreeMap<String, Theirs> = serde_json::from_slice(&text).unwrap();
    let mut counts: BTreeMap<Rule, usize> = BTreeMap::new();
    let mut groups = 0;
    for (comparison, theirs) in &all {
        let sources: Vec<_> =
            theirs.paths.iter().map(|path| BuildSource::parse(data.join(path).to_str().unwrap()).unwrap()).collect();
        let builds =
            read(&sources, &ReadOptions { strict: true, ..ReadOptions::default() }, &as_written).unwrap().builds;
        let (models, options) = options(&data, &theirs.opts);
        let compared = compare(&builds, &models, &options);
        let ours = said(&compared);
        assert!(ours.keys().eq(theirs.rows.keys()), "{comparison}: the same identifiers");
        for (id, rows) in &theirs.rows {
            assert_eq!(ours[id].len(), rows.len(), "{comparison}: {id}");
            for (row, ours) in rows.iter().zip(&ours[id]) {
                let rule = rule(row, ours).unwrap_or_else(|| panic!("{comparison}: {id}: {row:?} is not {ours:?}"));
                *counts.entry(rule).or_default() += 1;
                groups += usize::from(id.contains('*'));
            }
        }
        assert_eq!(their_code(&compared), theirs.rc, "{comparison}");
        assert_ne!(compared.exit(false), ComparisonExit::NothingComparable, "{comparison}");
    }
    let rows: usize = counts.values().sum();
    println!("{} comparisons, {rows} rows, {groups} of them groups: {counts:?}", all.len());
}
