//! Answers: what follows from several cells together. They need results alone, no artefacts.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{ProfileName, Serial, TestName, WorkerName};
use wb_tests::{Answer, Registry, Solved};

use crate::result::{CellResult, Curve, Line, MetricResult};
use crate::together::title_suffix;

/// Lets every test conclude from its own cells, one serial of the plan at a time: from the figures of all workers together,
/// and where several measured at the same time, from each worker's own.
pub fn solve(cells: &[CellResult], registry: &Registry) -> Vec<Answer> {
    let mut serials: BTreeMap<(&ProfileName, &TestName, &Serial), Vec<&CellResult>> = BTreeMap::new();
    for result in cells {
        let cell = &result.cell;
        serials.entry((&cell.profile, &cell.test, &cell.serial)).or_default().push(result);
    }
    let mut answers = Vec::new();
    for ((_, name, serial), cells) in serials {
        let Some(test) = registry.test(name.as_str()) else { continue };
        let workers: BTreeSet<&WorkerName> =
            cells.iter().flat_map(|cell| &cell.metrics).filter_map(|metric| metric.worker.as_ref()).collect();
        for worker in [None].into_iter().chain(workers.into_iter().map(Some)) {
            let solved: Vec<Solved> = cells.iter().map(|cell| solved(cell, worker)).collect();
            let of = worker.map(|worker| format!("@{worker}")).unwrap_or_default();
            let test_name = format!("{name}/{serial}{of}");
            answers.extend(test.solve(&solved).into_iter().map(|answer| Answer { test: test_name.clone(), ..answer }));
        }
    }
    answers
}

/// A cell as one of several workers measured it, or all together.
fn solved<'a>(result: &'a CellResult, worker: Option<&WorkerName>) -> Solved<'a> {
    let median = |metric: &MetricResult| {
        let summary = metric.summary.as_ref().filter(|_| metric.worker.as_ref() == worker)?;
        Some((format!("{}/{}", metric.metric.class, metric.metric.name), summary.median))
    };
    let line =
        |line: &Line| (line.name.clone(), line.points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>());
    let curve = |curve: &Curve| {
        let title = match worker {
            Some(worker) => curve.title.strip_suffix(&title_suffix(worker))?.to_owned(),
            None => curve.title.clone(),
        };
        Some((title, curve.lines.iter().map(line).collect()))
    };
    Solved {
        case: &result.cell.case,
        params: &result.params,
        medians: result.metrics.iter().filter_map(median).collect(),
        curves: result.curves.iter().filter_map(curve).collect(),
    }
}

#[cfg(test)]
mod tests {
    use wb_model::{Case, CellId, CellOutcome, DefinitionKey, Metric, Params};
    use wb_stats::{Rule, Samples, Summary};

    use super::*;

    /// Himeno with so many threads, on two workers of these speeds.
    fn himeno(threads: &str, speeds: [f64; 2]) -> CellResult {
        let case: Case = format!("threads={threads}").parse().unwrap();
        let metric = |worker: Option<&str>, median: f64| MetricResult {
            metric: Metric::throughput("throughput", "mflops"),
            worker: worker.map(|name| WorkerName::new(name).unwrap()),
            summary: Some(Summary::of(&Samples::new(&[median]).unwrap())),
            undisturbed: None,
        };
        CellResult {
            cell: CellId {
                profile: ProfileName::new("Localhost").unwrap(),
                test: TestName::new("himeno").unwrap(),
                serial: Serial::Position(0),
                case,
            },
            key: DefinitionKey::new(&TestName::new("himeno").unwrap(), 1, &Params::new()),
            summary: String::new(),
            params: Params::new(),
            rule: Rule::MaxStddev { samples: 1, max_stddev_percent: 5.0, max_failures: 0 },
            outcome: CellOutcome::Measured,
            ended_by: None,
            metrics: vec![
                metric(None, speeds[0] + speeds[1]),
                metric(Some("a"), speeds[0]),
                metric(Some("b"), speeds[1]),
            ],
            samples: Vec::new(),
            curves: Vec::new(),
            latency: Vec::new(),
            findings: Vec::new(),
            provenance: BTreeMap::new(),
        }
    }

    #[test]
    fn answers_are_of_all_workers_together_and_of_each() {
        let cells = [himeno("1", [100.0, 100.0]), himeno("2", [200.0, 120.0])];
        let answers = solve(&cells, &Registry::built_in());
        let shown: Vec<(&str, f64)> = answers.iter().map(|answer| (answer.test.as_str(), answer.value)).collect();
        assert_eq!(shown, [("himeno/0000", 1.6), ("himeno/0000@a", 2.0), ("himeno/0000@b", 1.2)]);
    }
}
