//! Conclusions from several cells together. They are derived from results only, not from artefacts.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{ProfileName, Serial, TestName, WorkerName, with_worker};
use wb_results::Conclusion;
use wb_results::{CellResult, CurveSet, MetricResult, SummaryCurve, SummaryPoint};
use wb_stats::Estimate;
use wb_test::{CurvePoint, EvaluatedCell, Registry};

use crate::aggregation::title_suffix;
use crate::rounds::rounds;

/// Computes the conclusions of every test, by serial: for all workers together, and, if several measured at the same
/// time, for each worker.
pub fn solve(cells: &[CellResult], registry: &Registry) -> Vec<Conclusion> {
    let mut serials: BTreeMap<(&ProfileName, &TestName, &Serial), Vec<&CellResult>> = BTreeMap::new();
    for result in cells {
        let id = &result.id;
        serials.entry((&id.profile, &id.test, &id.serial)).or_default().push(result);
    }
    let mut conclusions = Vec::new();
    for ((profile, name, serial), cells) in serials {
        let Some(test) = registry.test(name.as_str()) else { continue };
        let workers: BTreeSet<&WorkerName> =
            cells.iter().flat_map(|cell| &cell.metrics).filter_map(|metric| metric.worker.as_ref()).collect();
        let rounds = rounds(&cells);
        for worker in [None].into_iter().chain(workers.into_iter().map(Some)) {
            let with_rounds = cells.iter().zip(&rounds);
            let solved: Vec<EvaluatedCell> =
                with_rounds.map(|(cell, rounds)| solve_input(cell, rounds, worker)).collect();
            let test_name = with_worker(&format!("{profile}/{name}/{serial}"), worker);
            conclusions.extend(
                test.solve(&solved).into_iter().map(|conclusion| Conclusion { cells: test_name.clone(), ..conclusion }),
            );
        }
    }
    conclusions
}

/// The input of conclusions for a cell, of one worker or all together. `rounds` are those of its attempts.
fn solve_input<'a>(result: &'a CellResult, rounds: &[Option<u32>], worker: Option<&WorkerName>) -> EvaluatedCell<'a> {
    let median = |metric: &MetricResult| {
        let summary = metric.summary.as_ref().filter(|_| metric.worker.as_ref() == worker)?;
        Some((metric.metric.key(), Estimate::of_median(summary)))
    };
    let by_round = |metric: &MetricResult| {
        let key = metric.key();
        let counted = result.attempts.iter().zip(rounds).filter(|(attempt, _)| attempt.counted);
        let values = counted.filter_map(|(attempt, round)| Some(((*round)?, *attempt.values.get(&key)?))).collect();
        (metric.worker.as_ref() == worker).then(|| (metric.metric.key(), values))
    };
    let point = |point: &SummaryPoint| CurvePoint { x: point.x, y: point.y, spread: point.spread };
    let line = |line: &SummaryCurve| (line.name.clone(), line.points.iter().map(point).collect::<Vec<_>>());
    let curve = |curve: &CurveSet| {
        let title = match worker {
            Some(worker) => curve.title.strip_suffix(&title_suffix(worker))?.to_owned(),
            None => curve.title.clone(),
        };
        Some((title, curve.lines.iter().map(line).collect()))
    };
    EvaluatedCell {
        case: &result.id.case,
        params: &result.params,
        medians: result.metrics.iter().filter_map(median).collect(),
        values_by_round: result.metrics.iter().filter_map(by_round).collect(),
        curves: result.curves.iter().filter_map(curve).collect(),
    }
}

#[cfg(test)]
mod tests {
    use wb_model::{AttemptOutcome, AttemptPurpose, CellId, CellOutcome, DefinitionKey, Metric, Params};
    use wb_stats::{Samples, SamplingRule, Summary};

    use super::*;
    use wb_results::AttemptResult;

    /// A cell of a test that was measured by two workers with these figures.
    fn cell(test: &str, case: &str, metric: &str, unit: &str, workers: [&str; 2], figures: [f64; 2]) -> CellResult {
        let name = TestName::new(test).unwrap();
        let median = |worker: Option<&str>, median: f64| MetricResult {
            metric: Metric::throughput(metric, unit),
            worker: worker.map(|name| WorkerName::new(name).unwrap()),
            threshold: None,
            summary: Some(Summary::new(&Samples::new(&[median]).unwrap())),
            undisturbed: None,
        };
        CellResult {
            series: Vec::new(),
            id: CellId {
                profile: ProfileName::new("Localhost").unwrap(),
                test: name.clone(),
                serial: Serial::Position(0),
                case: case.parse().unwrap(),
            },
            key: DefinitionKey::new(&name, 1, &Params::new()),
            description: String::new(),
            params: Params::new(),
            workers: workers.map(|worker| WorkerName::new(worker).unwrap()).to_vec(),
            rule: SamplingRule::MaxStddev { samples: 1, max_stddev_percent: 5.0, max_failures: 0 },
            outcome: CellOutcome::Measured,
            ended_by: None,
            metrics: vec![
                median(None, figures[0] + figures[1]),
                median(Some(workers[0]), figures[0]),
                median(Some(workers[1]), figures[1]),
            ],
            attempts: Vec::new(),
            failures: Default::default(),
            exit_status: None,
            dependence: None,
            curves: Vec::new(),
            latency: Vec::new(),
            findings: Vec::new(),
            provenance: BTreeMap::new(),
        }
    }

    /// The test, the value and the last part of the reasoning of each conclusion.
    fn shown(cells: &[CellResult]) -> Vec<String> {
        let last = |because: String| because.rsplit("; ").next().map(str::to_owned).unwrap_or_default();
        let conclusions = solve(cells, &wb_tests::built_in()).into_iter();
        conclusions
            .map(|Conclusion { cells: test, value, explanation: because, .. }| {
                format!("{test} {value:.2}, {}", last(because))
            })
            .collect()
    }

    #[test]
    fn scaling_is_computed_for_all_workers_together_and_for_each() {
        let himeno = |threads: &str, speeds| {
            cell("himeno", &format!("threads={threads}"), "throughput", "mflops", ["b", "c"], speeds)
        };
        // The table has 45.2 and 71.5, the sums.
        let cells = [himeno("1", [20.0, 25.2]), himeno("2", [44.2, 27.3])];
        assert_eq!(
            shown(&cells),
            [
                "Localhost/himeno/0000 1.58, no interval to relate it to a perfect 2: a median of 1 sample has none, it takes 6",
                "Localhost/himeno/0000@b 2.21, no interval to relate it to a perfect 2: a median of 1 sample has none, it takes 6",
                "Localhost/himeno/0000@c 1.08, no interval to relate it to a perfect 2: a median of 1 sample has none, it takes 6",
            ]
        );
    }

    #[test]
    fn the_average_of_modes_is_computed_for_all_workers_together_and_for_each() {
        let cells = [("copy", 1.0), ("scale", 2.0), ("add", 3.0), ("triad", 4.0)].map(|(mode, bandwidth)| {
            let case = format!("mode={mode}");
            cell("ramspeed", &case, "bandwidth", "MB/s", ["b", "c"], [1000.0 * bandwidth, 100.0 * bandwidth])
        });
        let conclusions = solve(&cells, &wb_tests::built_in());
        let shown: Vec<(&str, f64)> =
            conclusions.iter().map(|conclusion| (conclusion.cells.as_str(), conclusion.value)).collect();
        assert_eq!(
            shown,
            [
                ("Localhost/ramspeed/0000", 2750.0),
                ("Localhost/ramspeed/0000@b", 2500.0),
                ("Localhost/ramspeed/0000@c", 250.0)
            ]
        );
    }

    /// The attempts at samples with these values and times.
    fn attempts(metric: &Metric, values: &[(f64, f64)]) -> Vec<AttemptResult> {
        let attempt = |(sample, (value, start_seconds)): (u32, &(f64, f64))| AttemptResult {
            sample,
            attempt: 0,
            purpose: AttemptPurpose::Sample,
            start_seconds: *start_seconds,
            seconds: 1.0,
            measured_seconds: 1.0,
            outcome: AttemptOutcome::Completed,
            validity: None,
            disturbances: Vec::new(),
            counted: true,
            values: BTreeMap::from([(metric.key(), *value)]),
            folder: String::new(),
        };
        (0..).zip(values).map(attempt).collect()
    }

    /// The width of the interval of RAMspeed's average, whose modes have samples of these values and times.
    fn width_of_average(modes: [[(f64, f64); 6]; 4]) -> f64 {
        let cells: Vec<CellResult> = ["copy", "scale", "add", "triad"]
            .iter()
            .zip(modes)
            .map(|(mode, samples)| {
                let case = format!("mode={mode}");
                let mut cell = cell("ramspeed", &case, "bandwidth", "MB/s", ["b", "c"], [0.0, 0.0]);
                let values = samples.map(|(value, _)| value);
                cell.attempts = attempts(&cell.metrics[0].metric, &samples);
                cell.metrics[0].summary = Some(Summary::of_unordered(&Samples::new(&values).unwrap()));
                cell.metrics.truncate(1);
                cell
            })
            .collect();
        let ends = solve(&cells, &wb_tests::built_in())[0].interval.unwrap();
        ends.high - ends.low
    }

    #[test]
    fn the_average_of_modes_whose_rounds_vary_together_is_as_uncertain_as_one_of_them() {
        let values = [1000.0, 1040.0, 1010.0, 1030.0, 1005.0, 1035.0];
        let mode = |mode: usize, seconds_of_a_round: f64, seconds_of_a_mode: f64| {
            let start = |round: usize| round as f64 * seconds_of_a_round + mode as f64 * seconds_of_a_mode;
            std::array::from_fn(|round| (values[round], start(round)))
        };
        let interleaved = width_of_average(std::array::from_fn(|position| mode(position, 10.0, 1.0)));
        assert!((interleaved - 40.0).abs() < 1e-9, "{interleaved}");
        let one_after_the_other = width_of_average(std::array::from_fn(|position| mode(position, 1.0, 10.0)));
        assert!((one_after_the_other - 20.0).abs() < 1e-9, "as of independent cells: {one_after_the_other}");
    }
}
