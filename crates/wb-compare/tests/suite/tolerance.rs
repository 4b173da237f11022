//! The tolerance method with generated builds.

use crate::support::{GeneratedMetric, TestFolders, iteration, latency, throughput};
use proptest::prelude::*;
use wb_compare::run_perf::tolerance::average::Average;
use wb_compare::run_perf::tolerance::pattern::Wildcards;
use wb_compare::run_perf::tolerance::score::{ScoreTerm, Weights};
use wb_compare::run_perf::tolerance::totals::ComparisonExit;
use wb_compare::run_perf::tolerance::{CheckScore, Comparison, Options, compare};
use wb_compare::{MeasuredValue, ToleranceModel};
use wb_results::comparison::{CheckId, Status};

const IOPS: &str = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean";
const LAT: &str = "Localhost/fio/0000:./read-4KiB/latency/lat.mean";

/// Builds of one case each, named by their numbers.
fn lab(builds: &[&[GeneratedMetric]]) -> TestFolders {
    let lab = TestFolders::new();
    for (number, metrics) in builds.iter().enumerate() {
        lab.run(&number.to_string(), "Localhost/fio/0000", &[iteration("read-4KiB", "iops_sec", metrics)]);
    }
    lab
}

fn at(comparison: &Comparison<'_>, text: &str) -> usize {
    let id = CheckId::parse(text).unwrap();
    (0..comparison.checks.len()).find(|at| comparison.id(*at) == id).unwrap()
}

fn cell(comparison: &Comparison<'_>, id: &str) -> CheckScore {
    *comparison.cell(at(comparison, id), comparison.last().unwrap()).unwrap()
}

#[test]
fn the_direction_of_a_metric_decides_and_can_be_set() {
    let lab = lab(&[
        &[throughput("iops_sec", 100.0, 1.0), latency("lat", 10.0, 1.0)],
        &[throughput("iops_sec", 110.0, 1.0), latency("lat", 11.0, 1.0)],
    ]);
    let builds = lab.read(&["0", "1"]);
    let mut options = Options::default();
    let compared = compare(&builds, &[], &options);
    assert_eq!(cell(&compared, IOPS).status, Status::Improved);
    assert_eq!(cell(&compared, LAT).status, Status::Regressed);
    assert!((cell(&compared, LAT).score.unwrap() - 10.0).abs() < 1e-9, "the score keeps its sign");
    assert_eq!((compared.exit(false), compared.exit(true)), (ComparisonExit::Success, ComparisonExit::Regression));
    options.directions.extend(["iops_sec=lower".parse().unwrap(), "latency/lat=neither".parse().unwrap()]);
    let compared = compare(&builds, &[], &options);
    assert_eq!(cell(&compared, IOPS).status, Status::Regressed);
    assert_eq!(cell(&compared, LAT).status, Status::Differs);
    assert_eq!(compared.exit(false), ComparisonExit::Regression);
}

#[test]
fn absent_values_are_missing_and_non_numbers_invalid() {
    let lab = lab(&[&[throughput("iops_sec", 100.0, 1.0), latency("lat", 10.0, 1.0)], &[latency("slat", 1.0, 1.0)]]);
    let result = std::fs::read_to_string(lab.path().join("1/Localhost/fio/0000/result.json")).unwrap();
    lab.file(
        "1/Localhost/fio/0000/result.json",
        result.replace("\"slat\"", "\"lat\"").replace("\"mean\": 1", "\"mean\": \"nan\""),
    );
    let builds = lab.read(&["0", "1"]);
    let options = Options::default();
    let compared = compare(&builds, &[], &options);
    assert_eq!(cell(&compared, IOPS), CheckScore { status: Status::Missing, raw: None, score: None });
    assert_eq!(cell(&compared, LAT).status, Status::Invalid);
    assert_eq!(compared.value(at(&compared, LAT), 1), MeasuredValue::Invalid);
    assert!(compared.parts(at(&compared, LAT), 1).is_empty());
    let totals = compared.totals(1);
    assert_eq!((totals.primary.of(Status::Missing), totals.others.of(Status::Invalid)), (2, 1));
    assert_eq!(compared.exit(false), ComparisonExit::NothingComparable, "both have but a check that decides nothing");
}

#[test]
fn builds_without_a_check_in_common_are_not_comparable() {
    let lab = TestFolders::new();
    for name in ["a", "b"] {
        lab.run(name, &format!("{name}/fio/0000"), &[iteration("read", "x", &[throughput("x", 1.0, 1.0)])]);
    }
    let builds = lab.read(&["a", "b"]);
    let options = Options::default();
    assert_eq!(compare(&builds, &[], &options).exit(false), ComparisonExit::NothingComparable);
    let alone = lab.read(&["a"]);
    assert_eq!(compare(&alone, &[], &options).exit(false), ComparisonExit::NothingComparable);
}

#[test]
fn a_source_of_zero_equals_zero_only() {
    let zero = |lat| vec![throughput("iops_sec", 0.0, 0.0), latency("lat", lat, 0.0)];
    let lab = lab(&[&zero(0.0), &zero(3.0)]);
    let builds = lab.read(&["0", "1"]);
    let options = Options::default();
    let compared = compare(&builds, &[], &options);
    assert_eq!(cell(&compared, IOPS), CheckScore { status: Status::Equivalent, raw: Some(0.0), score: Some(0.0) });
    let lat = cell(&compared, LAT);
    assert_eq!((lat.status, lat.score), (Status::Regressed, Some(f64::INFINITY)));
    assert_eq!(compared.groups.len(), 3, "groups only have finite scores");
}

#[test]
fn a_build_of_several_runs_has_their_average() {
    let iops = |mean| vec![throughput("iops_sec", mean, 1.0)];
    let lab = lab(&[&iops(100.0), &iops(90.0), &iops(106.0)]);
    let builds = lab.read(&["0", "1,2"]);
    let options = Options::default();
    let compared = compare(&builds, &[], &options);
    assert!((cell(&compared, IOPS).score.unwrap() + 2.0).abs() < 1e-9);
    assert_eq!(cell(&compared, IOPS).status, Status::Equivalent);
}

#[test]
fn errors_of_a_test_count_on_either_side() {
    let same = [throughput("iops_sec", 1.0, 1.0)];
    let lab = lab(&[&same, &same, &same]);
    lab.file("1/Localhost/fio/__error0__/exception", "it broke");
    let options = Options::default();
    let compared = |builds: &[&str]| {
        let builds = lab.read(builds);
        let compared = compare(&builds, &[], &options);
        let last = compared.last().unwrap();
        let errors = compared.errors(last).map(|(build, error)| format!("{} {}", build.name, error.id()));
        (compared.exit(false), errors.collect::<Vec<_>>())
    };
    let error = vec!["1 Localhost/fio/*:./ERROR/ERROR/ERROR.error".to_owned()];
    assert_eq!(compared(&["0", "1"]), (ComparisonExit::Incomplete, error.clone()));
    assert_eq!(compared(&["1", "0"]), (ComparisonExit::Incomplete, error));
    assert_eq!(compared(&["0", "1", "2"]), (ComparisonExit::Success, Vec::new()), "a build in between decides nothing");
}

#[test]
fn the_score_at_the_ends_of_the_range_is_the_tolerance() {
    let lab = lab(&[
        &[throughput("iops_sec", 100.0, 3.0), latency("lat", 10.0, 20.0)],
        &[throughput("iops_sec", 100.0, 3.0)],
    ]);
    let file = lab.file("model.json", format!(r#"{{"{IOPS}": [0.5, -40]}}"#));
    let builds = lab.read(&["0", "1"]);
    let options = Options::default();
    let alone = compare(&builds, &[], &options);
    let limits = alone.limits(at(&alone, IOPS));
    assert_eq!((limits.models, limits.range), (vec![], Some((95.0, 105.0))));
    let deviation = alone.limits(at(&alone, &IOPS.replace(".mean", ".stddev")));
    assert_eq!(deviation.range, Some((0.0, 8.0)), "the range does not extend below zero");
    let model = wb_compare::ToleranceModel::read(&file).unwrap();
    let models = [model.clone(), wb_compare::ToleranceModel { file: None, ..model }];
    let modelled = compare(&builds, &models, &options);
    let limits = modelled.limits(at(&modelled, IOPS));
    assert_eq!((limits.models, limits.range), (vec![0, 1], Some((70.0, 90.0))));
    assert_eq!(modelled.limits(at(&modelled, LAT)).models, [0usize; 0]);
    assert_eq!(modelled.model_files().collect::<Vec<_>>(), [Some(file.as_path()), None]);
}

#[test]
fn a_group_of_metrics_with_opposite_directions_regresses_if_each_does() {
    let lab = TestFolders::new();
    for (name, iops, lat) in [("a", 100.0, 100.0), ("b", 90.0, 110.0)] {
        let fio = iteration("read-4KiB", "iops_sec", &[throughput("iops_sec", iops, 0.0)]);
        let ping = iteration("ping-1", "rtt", &[latency("rtt", lat, 0.0)]);
        lab.run(name, "Localhost/fio/0000", &[fio]);
        lab.run(name, "Localhost/ping/0000", &[ping]);
    }
    let builds = lab.read(&["a", "b"]);
    let options = Options::default();
    let compared = compare(&builds, &[], &options);
    let all = compared.groups.iter().find(|group| group.id.to_string() == "Localhost/*/*:./*-*/*/*.mean").unwrap();
    let cell = all.cell(1).unwrap();
    assert!(cell.score.abs() < 1e-9, "the signs are run-perf's");
    assert!((cell.improvement.unwrap() + 10.0).abs() < 1e-9, "the status is of what got worse");
    assert_eq!((cell.status, cell.scored, cell.tolerance), (Status::Regressed, 2, 5.0 * 2.3 / 2.0));
}

#[test]
fn a_geometric_average_of_the_inverse_is_its_inverse() {
    let lab = TestFolders::new();
    for (name, iops, lat) in [("a", 100.0, 100.0), ("b", 200.0, 400.0)] {
        let fio = iteration("read-4KiB", "iops_sec", &[throughput("iops_sec", iops, 0.0)]);
        let ping = iteration("ping-1", "rtt", &[latency("rtt", lat, 0.0)]);
        lab.run(name, "Localhost/fio/0000", &[fio]);
        lab.run(name, "Localhost/ping/0000", &[ping]);
    }
    let options = Options { average: Some(Average::Geometric), ..Options::default() };
    let improvement = |builds: &[&str]| {
        let builds = lab.read(builds);
        let compared = compare(&builds, &[], &options);
        let all = compared.groups.iter().find(|group| group.id.to_string() == "Localhost/*/*:./*-*/*/*.mean").unwrap();
        let [row] = &compared.averages(1, Wildcards::PER_PROFILE)[..] else { panic!() };
        let improvement = all.cell(1).unwrap().improvement.unwrap();
        assert!((row.means.unwrap().mean - improvement).abs() < 1e-9);
        1.0 + improvement / 100.0
    };
    let [forth, back] = [improvement(&["a", "b"]), improvement(&["b", "a"])];
    assert!((forth - 0.5_f64.sqrt()).abs() < 1e-9 && (forth * back - 1.0).abs() < 1e-9, "{forth} {back}");
}

#[test]
fn several_models_average_and_the_raw_difference_is_only_shown() {
    let lab = lab(&[&[throughput("iops_sec", 100.0, 1.0)], &[throughput("iops_sec", 110.0, 1.0)]]);
    let builds = lab.read(&["0", "1"]);
    let model = |slope: f64| {
        let text = format!(
            r#"{{"__metadata__": {{"version": 2, "tolerance": 4}},
            "{IOPS}": {{"equation": [{slope}, 0], "raw": 55}}, "not a check": {{"equation": [1, 1], "raw": 1}}}}"#
        );
        ToleranceModel::parse(text.as_bytes()).unwrap()
    };
    let options = Options::default();
    let models = [model(0.01), model(0.03)];
    let compared = compare(&builds, &models, &options);
    assert!((cell(&compared, IOPS).score.unwrap() - 2.2).abs() < 1e-9);
    assert!((cell(&compared, IOPS).raw.unwrap() - 10.0).abs() < 1e-9);
    let parts = compared.parts(at(&compared, IOPS), 1);
    let terms: Vec<_> = parts.iter().map(|part| (part.term, part.difference.round(), part.weight)).collect();
    let (first, second) = ((ScoreTerm::ModelRaw(0), 100.0, 0.0), (ScoreTerm::ModelRaw(1), 100.0, 0.0));
    assert_eq!(
        terms,
        [(ScoreTerm::Model(0), 1.0, 1.0), first, (ScoreTerm::Model(1), 3.0, 1.0), second, (ScoreTerm::Raw, 10.0, 0.0)]
    );
}

#[test]
fn averages_are_over_primary_scores() {
    let lab = TestFolders::new();
    for (name, factor) in [("a", 1.0), ("b", 1.1)] {
        let case = |size: u32, mean: f64| {
            let metrics = [throughput("iops_sec", mean, factor), latency("lat", 1.0, 0.0)];
            iteration(&format!("read-{size}KiB"), "iops_sec", &metrics)
        };
        lab.run(name, "Localhost/fio/0000", &[case(4, 100.0 * factor), case(64, 200.0 / factor)]);
    }
    let builds = lab.read(&["a", "b"]);
    let options = Options::default();
    let compared = compare(&builds, &[], &options);
    let [row] = &compared.averages(1, Wildcards::PER_CASE)[..] else { panic!() };
    assert_eq!(row.pattern.to_string(), "Localhost/fio/0000:./read-*/throughput/iops_sec");
    let (means, stddevs) = (row.means.unwrap(), row.stddevs.unwrap());
    assert_eq!((means.count, stddevs.count), (2, 2));
    assert!(
        (means.positive_contribution - 5.0).abs() < 1e-9
            && (means.max - 10.0).abs() < 1e-9
            && means.negative_contribution < 0.0
    );
    assert!((stddevs.median + 0.1).abs() < 1e-9);
    assert_eq!(compared.score_distribution(1, &[Status::Improved]).unwrap().count, 1);
    assert_eq!(compared.score_distribution(1, &[Status::Missing]), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cell_has_a_status_and_no_score_is_nan(
        values in proptest::collection::vec((proptest::num::f64::NORMAL | proptest::num::f64::ZERO, -1e3..1e3), 2..6),
        average in 0.0..3.0, n_of in 0.0..3.0,
        equation in (-1e300..1e300, -1e300..1e300),
    ) {
        let metrics: Vec<_> = values
            .iter()
            .map(|(mean, stddev)| vec![throughput("iops_sec", *mean, *stddev), latency("lat", *stddev, 0.0)])
            .collect();
        let lab = lab(&metrics.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let names: Vec<_> = (0..values.len()).map(|number| number.to_string()).collect();
        let builds = lab.read(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let model = ToleranceModel::parse(format!(r#"{{"{IOPS}": [{}, {}]}}"#, equation.0, equation.1).as_bytes()).unwrap();
        let weights = Weights { builds_average: average, n_out_of_results: n_of, n: 2 };
        let options = Options { weights, ..Options::default() };
        for models in [&[][..], &[model]] {
            let compared = compare(&builds, models, &options);
            prop_assert_eq!(compared.checks.len(), 4);
            for check in 0..4 {
                for build in 1..values.len() {
                    let cell = compared.cell(check, build).unwrap();
                    prop_assert!(cell.score.is_none_or(|score| !score.is_nan()));
                    prop_assert!(!compared.parts(check, build).is_empty());
                }
            }
            let totals = compared.totals(compared.last().unwrap());
            prop_assert_eq!(totals.primary.total() + totals.others.total(), 4);
        }
    }
}

// A check that became zero has no part in a geometric mean, and was counted.
#[test]
fn a_group_counts_the_members_that_its_average_is_of() {
    let lab = TestFolders::new();
    for (build, rates) in [("0", [100.0, 100.0, 100.0]), ("1", [80.0, 80.0, 0.0])] {
        let cases = rates.iter().zip(["read-4k", "read-8k", "read-16k"]);
        let cases: Vec<String> =
            cases.map(|(rate, case)| iteration(case, "iops_sec", &[throughput("iops_sec", *rate, 1.0)])).collect();
        lab.run(build, "Localhost/fio/0000", &cases);
    }
    let builds = lab.read(&["0", "1"]);
    let group = |average| {
        let options = Options { average: Some(average), ..Options::default() };
        let compared = compare(&builds, &[], &options);
        let cell = compared.groups[0].cell(1).unwrap();
        (cell.scored, cell.improvement.unwrap().round())
    };
    assert_eq!(group(Average::Arithmetic), (3, -47.0));
    assert_eq!(group(Average::Geometric), (2, -20.0));
}
