//! History: every later build compared with the first.

use crate::support::{GeneratedMetric, TestFolders, iteration, latency, throughput};
use wb_compare::comparison::{self, BuildHistory, FailOn};
use wb_compare::run_perf::tolerance;
use wb_compare::statistical::MetricComparison;
use wb_compare::{Builds, statistical};
use wb_results::comparison::{CheckId, ComparisonMethod, ComparisonResult, FinalVerdict};

const IOPS: &str = "Localhost/fio/0000:./read-4KiB/throughput/iops_sec.mean";
const LAT: &str = "Localhost/fio/0000:./read-4KiB/latency/lat.mean";

/// Builds named by their numbers, each with a throughput around this level and optionally a latency.
fn lab(levels: &[(f64, Option<f64>)]) -> TestFolders {
    let lab = TestFolders::new();
    for (number, (iops, lat)) in levels.iter().enumerate() {
        let samples = (0..8).map(|index| iops + f64::from(index)).collect();
        let mut metrics = vec![GeneratedMetric { samples, ..throughput("iops_sec", *iops, 1.0) }];
        metrics.extend(lat.map(|lat| latency("lat", lat, 1.0)));
        lab.run(&number.to_string(), "Localhost/fio/0000", &[iteration("read-4KiB", "iops_sec", &metrics)]);
    }
    lab
}

/// Passes the history and the outcome of these builds to a callback.
fn with_history<T>(
    builds: &Builds,
    method: Option<ComparisonMethod>,
    callback: impl Fn(&BuildHistory<'_>, &ComparisonResult) -> T,
) -> T {
    let (by_tolerance, by_statistics) = (tolerance::Options::default(), statistical::Options::default());
    let tolerances = tolerance::compare(builds, &[], &by_tolerance);
    let statistics: Vec<_> =
        (1..builds.list().len()).map(|build| statistical::against(builds, build, &[], &by_statistics)).collect();
    let outcome = comparison::summarize(
        builds,
        &tolerances,
        statistical::compare(builds, &[], &by_statistics).as_ref(),
        method,
        FailOn::default(),
    );
    callback(&BuildHistory::new(builds, &tolerances, &statistics, method), &outcome)
}

fn at(history: &BuildHistory<'_>, text: &str) -> usize {
    let id = CheckId::parse(text).unwrap();
    (0..history.tolerances.checks.len()).find(|at| history.tolerances.id(*at) == id).unwrap()
}

#[test]
fn the_last_column_equals_the_outcome() {
    let lab = lab(&[(1000.0, Some(5.0)), (1500.0, None), (700.0, Some(5.6))]);
    let builds = lab.read(&["0", "1", "2"]);
    for method in [None, Some(ComparisonMethod::Tolerance), Some(ComparisonMethod::Statistical)] {
        with_history(&builds, method, |history, outcome| {
            assert_eq!(history.totals(2), outcome.totals, "{method:?}");
            for check in &outcome.checks {
                let judged = history.build_check(at(history, &check.id), 2).unwrap();
                assert_eq!(
                    (judged.final_verdict, judged.decided_by),
                    (check.final_verdict, check.decided_by),
                    "{}",
                    check.id
                );
                assert_eq!(judged.by_tolerance.score, check.score);
                let ratio = judged.by_statistics.and_then(MetricComparison::decisive).map(|aspect| aspect.ratio);
                assert_eq!(ratio, check.statistics.as_ref().and_then(|statistics| statistics.ratio));
            }
        });
    }
}

#[test]
fn builds_in_between_are_compared_with_the_first_as_well() {
    let lab = lab(&[(1000.0, Some(5.0)), (1500.0, None), (1010.0, Some(5.1))]);
    with_history(&lab.read(&["0", "1", "2"]), None, |history, _| {
        let decided = |id, build| history.build_check(at(history, id), build).map(|judged| judged.final_verdict);
        assert_eq!(
            [1, 2].map(|build| decided(IOPS, build)),
            [Some(FinalVerdict::Improved), Some(FinalVerdict::Equivalent)]
        );
        assert_eq!(
            [1, 2].map(|build| decided(LAT, build)),
            [Some(FinalVerdict::Missing), Some(FinalVerdict::Equivalent)]
        );
        assert_eq!((history.totals(1).better, history.totals(2).better), (1, 0));
        assert_eq!(history.score(1), Some(50.0));
        assert_eq!((history.build_check(0, 0).is_none(), history.build_check(0, 3).is_none()), (true, true));
    });
}

#[test]
fn standard_deviations_beside_means_that_statistics_decide_are_not_counted() {
    let lab = lab(&[(1000.0, None), (1000.0, None)]);
    let equals = |method| with_history(&lab.read(&["0", "1"]), method, |_, outcome| outcome.totals.equivalent);
    assert_eq!(equals(Some(ComparisonMethod::Tolerance)), 2);
    assert_eq!(equals(Some(ComparisonMethod::Statistical)), 1);
}

#[test]
fn a_lower_latency_has_a_positive_score() {
    let lab = TestFolders::new();
    for (name, lat) in [("a", 10.0), ("b", 9.0)] {
        lab.run(name, "P/t/0000", &[iteration("c-1", "lat", &[latency("lat", lat, 1.0)])]);
    }
    let score = with_history(&lab.read(&["a", "b"]), None, |history, _| history.score(1));
    assert_eq!(score, Some(10.0));
}

#[test]
fn parameters_are_compared_with_those_of_the_first_build() {
    let lab = lab(&[(1000.0, None), (1000.0, None)]);
    let other = iteration("read-4KiB", "iops_sec", &[throughput("iops_sec", 1000.0, 1.0)]);
    lab.run("odd", "Localhost/fio/0000", &[other.replace(r#""name": "read-4KiB""#, r#""name": "other""#)]);
    with_history(&lab.read(&["0", "odd", "1"]), None, |history, _| {
        let differences = |build| history.build_check(at(history, IOPS), build).unwrap().differences;
        assert!(differences(2).is_empty());
        let [difference] = differences(1) else { panic!("one difference") };
        assert_eq!((difference.name.as_str(), difference.after.as_deref()), ("name", Some("other")));
    });
}

#[test]
fn what_only_later_builds_have_is_new_and_does_not_fail() {
    const WRITE: &str = "Localhost/fio/0000:./write-4KiB/throughput/iops_sec.mean";
    let lab = TestFolders::new();
    for (build, has_write) in [("0", false), ("1", true), ("2", true), ("3", false)] {
        let metrics = [throughput("iops_sec", 100.0, 1.0)];
        let cases = [iteration("read-4KiB", "iops_sec", &metrics), iteration("write-4KiB", "iops_sec", &metrics)];
        lab.run(build, "Localhost/fio/0000", if has_write { &cases } else { &cases[..1] });
    }
    let verdicts = |builds: &[&str]| {
        with_history(&lab.read(builds), None, |history, outcome| {
            let of_last = outcome.checks.iter().find(|check| check.id == WRITE).unwrap();
            let index = (0..).find(|index| history.tolerances.id(*index).text() == WRITE).unwrap();
            let of_builds = (1..builds.len()).map(|build| history.build_check(index, build).unwrap().final_verdict);
            let of_builds: Vec<FinalVerdict> = of_builds.collect();
            assert_eq!(of_builds.last(), Some(&of_last.final_verdict), "the page and the other outputs");
            assert!(!of_last.fails);
            (of_builds, [outcome.totals.new, outcome.totals.missing].map(|count| count > 0), outcome.exit_code)
        })
    };
    let new = FinalVerdict::New;
    assert_eq!(verdicts(&["0", "1", "2"]), (vec![new, new], [true, false], 0));
    assert_eq!(verdicts(&["1", "2", "3"]).1, [false, true]);
    assert_eq!(verdicts(&["1", "3"]), (vec![FinalVerdict::Missing], [false, true], 3));
    // An error of the first build explains what it lacks.
    lab.file("0/Localhost/fio/0000/__error0__/exception", "it broke\n");
    assert_eq!(verdicts(&["0", "1"]).0, [FinalVerdict::Missing]);
}

/// What the last build alone has: a case with this text as its mean.
fn with_case_of_last_build(mean: &str) -> TestFolders {
    let lab = TestFolders::new();
    let read = iteration("read-4KiB", "iops_sec", &[throughput("iops_sec", 100.0, 1.0)]);
    let write = iteration("write-4KiB", "iops_sec", &[throughput("iops_sec", 123_456.0, 1.0)]).replace("123456", mean);
    lab.run("0", "Localhost/fio/0000", std::slice::from_ref(&read));
    lab.run("1", "Localhost/fio/0000", &[read, write]);
    lab
}

#[test]
fn what_only_the_last_build_has_without_a_value_is_invalid_and_not_missing() {
    for (mean, verdict, exit_code) in [("\"failed\"", FinalVerdict::Invalid, 3), ("5", FinalVerdict::New, 0)] {
        with_history(&with_case_of_last_build(mean).read(&["0", "1"]), None, |history, outcome| {
            let check = outcome.checks.iter().find(|check| check.id.contains("write") && check.id.ends_with(".mean"));
            let check = check.unwrap();
            let by_statistics = check.statistics.as_ref().map(|it| it.verdict);
            let words = [Some(check.final_verdict), Some(check.status), by_statistics];
            assert_eq!(words, [Some(verdict); 3], "one word in all fields");
            assert_eq!(check.statuses, [Some(verdict)]);
            let shown = history.build_check(at(history, &check.id), 1).unwrap();
            assert_eq!((shown.final_verdict, outcome.exit_code), (verdict, exit_code));
        });
    }
}

/// The primary metric of one build is not that of the other, and both have the latency.
#[test]
fn nothing_is_comparable_without_a_primary_check_on_both_sides_unless_a_test_ended_in_an_error() {
    let lab = TestFolders::new();
    let case =
        |metric: &str| iteration("read-4KiB", metric, &[throughput(metric, 100.0, 1.0), latency("lat", 5.0, 1.0)]);
    for (build, metric) in [("0", "iops_sec"), ("1", "bytes_sec")] {
        lab.run(build, "Localhost/fio/0000", &[case(metric)]);
    }
    let exit = |builds: &[&str]| with_history(&lab.read(builds), None, |_, outcome| outcome.exit_code);
    assert_eq!(exit(&["0", "1"]), 4);
    assert_eq!(exit(&["0", "0"]), 0);
    lab.file("1/Localhost/uperf/0000/__error0__/exception", "it broke\n");
    assert_eq!([exit(&["0", "1"]), exit(&["1", "0"])], [3, 3], "an error of either side");
}

/// Levels that differ by nothing to everything, with one to fourteen samples of one to three runs.
#[test]
fn no_difference_is_more_certain_between_runs_than_within_them() {
    for (samples, runs) in [(1, 1), (2, 1), (5, 1), (1, 2), (1, 3), (2, 2), (6, 1), (7, 1), (9, 2), (14, 3)] {
        for change in [1.0, 1.003, 1.02, 1.3, 4.0] {
            let lab = TestFolders::new();
            let names = |side: &str| (0..runs).map(|run| format!("{side}{run}")).collect::<Vec<_>>();
            for (side, level) in [("a", 100.0), ("b", 100.0 * change)] {
                for (run, name) in names(side).iter().enumerate() {
                    let sample = |index: i32| level * (1.0 + 0.002 * f64::from(index * 5 % 7) + 0.001 * run as f64);
                    let metric =
                        GeneratedMetric { samples: (0..samples).map(sample).collect(), ..latency("lat", level, 1.0) };
                    lab.run(name, "P/t/0000", &[iteration("c-1", "lat", &[metric])]);
                }
            }
            let builds = lab.read(&[&names("a").join(","), &names("b").join(",")]);
            with_history(&builds, None, |_, outcome| {
                let statistics = outcome.checks.iter().filter_map(|check| check.statistics.as_ref());
                let aspects: Vec<_> = statistics.flat_map(|it| &it.aspects).collect();
                assert!(!aspects.is_empty());
                for aspect in aspects {
                    let (by_runs, by_samples) = (aspect.p_by_runs, aspect.p_by_samples.unwrap());
                    let is_less_certain = by_runs.alone >= by_samples.alone
                        && by_runs.in_check >= by_samples.in_check
                        && by_runs.in_family >= by_samples.in_family;
                    assert!(is_less_certain, "{samples} of {runs}, {change}: {aspect:#?}");
                }
            });
        }
    }
}

#[test]
fn no_difference_of_equal_values_is_a_negative_zero() {
    let lab = lab(&[(1000.0, Some(5.0)), (1000.0, Some(5.0))]);
    with_history(&lab.read(&["0", "1"]), Some(ComparisonMethod::Statistical), |_, outcome| {
        let text = serde_json::to_string(outcome).unwrap();
        assert!(text.contains(":0.0") && !text.contains("-0.0,"), "{text}");
    });
}

/// Ten checks of one run a side, of which the second run is slower by this factor in all, or in the first alone.
fn with_ten_checks<T>(factor: f64, first_alone: bool, check: impl Fn(&ComparisonResult) -> T) -> T {
    let lab = TestFolders::new();
    for (name, factor) in [("a", 1.0), ("b", factor)] {
        let iteration_of = |index: usize| {
            let level = if first_alone && index > 0 { 100.0 } else { 100.0 * factor };
            let samples: Vec<f64> = (0..8).map(|i| level * (1.0 + 0.001 * f64::from(i * 3 % 7))).collect();
            let mean = samples.iter().sum::<f64>() / 8.0;
            iteration(&format!("c-{index}"), "lat", &[GeneratedMetric { samples, ..latency("lat", mean, 1.0) }])
        };
        lab.run(name, "P/t/0000", &(0..10).map(iteration_of).collect::<Vec<_>>());
    }
    with_history(&lab.read(&["a", "b"]), Some(ComparisonMethod::Statistical), |history, outcome| {
        for (index, group) in history.tolerances.groups.iter().enumerate() {
            let of_history = history.group_verdict(index, 1).map(|judged| judged.final_verdict);
            let of_outcome = outcome.groups.iter().find(|other| other.id == group.id.to_string());
            assert_eq!(of_history, of_outcome.map(|group| group.final_verdict), "{}", group.id);
        }
        check(outcome)
    })
}

#[test]
fn a_group_has_a_verdict_by_its_interval_where_statistics_decide() {
    for (factor, verdict) in [
        (1.04, FinalVerdict::Inconclusive),
        (1.12, FinalVerdict::Inconclusive),
        (1.3, FinalVerdict::Regressed),
        (0.7, FinalVerdict::Improved),
    ] {
        with_ten_checks(factor, false, |outcome| {
            assert!(!outcome.groups.is_empty());
            for group in outcome.groups.iter().filter(|group| group.members == 10) {
                let interval = group.interval.unwrap();
                assert_eq!((group.final_verdict, group.decides), (verdict, false), "{factor}: {group:?}");
                assert!(interval.low < 1.0 / factor && interval.high > 1.0 / factor, "{group:?}");
                assert_eq!(group.dominant, None);
            }
        });
    }
}

#[test]
fn an_average_that_follows_one_check_names_it() {
    with_ten_checks(3.0, true, |outcome| {
        for group in outcome.groups.iter().filter(|group| group.members == 10) {
            let dominant = group.dominant.as_ref().unwrap();
            assert!(dominant.id.contains("c-0") && dominant.improvement < -60.0, "{group:?}");
            assert!(dominant.average_without.abs() < 1e-9 && group.median.unwrap().abs() < 1e-9, "{group:?}");
            assert!(group.improvement.unwrap() < -10.0, "{group:?}");
        }
    });
}

/// run-perf has three groups for each check, of which those of a single one are that check.
#[test]
fn groups_of_one_check_are_not_counted() {
    for (checks, counted) in [(1, false), (4, true)] {
        let lab = TestFolders::new();
        for (run, level) in [("0", 100.0), ("1", 50.0)] {
            let iterations: Vec<String> = (0..checks)
                .map(|index| iteration(&format!("{index}KiB"), "iops_sec", &[throughput("iops_sec", level, 1.0)]))
                .collect();
            lab.run(run, "Localhost/fio/0000", &iterations);
        }
        for build in with_history(&lab.read(&["0", "1"]), Some(ComparisonMethod::Tolerance), |history, outcome| {
            assert!(!outcome.groups.is_empty() && outcome.exit_code == 2, "{outcome:?}");
            [outcome.totals, history.totals(1)]
        }) {
            assert_eq!(build.groups_regressed > 0, counted, "{checks} checks: {build:?}");
        }
    }
}
