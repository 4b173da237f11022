//! Answers: what follows from several cells together. They need results alone, no artefacts.

use std::collections::BTreeMap;

use wb_model::{ProfileName, Serial, TestName};
use wb_tests::{Answer, Registry, Solved};

use crate::result::CellResult;

/// Lets every test conclude from its own cells, one entry of the plan at a time.
pub fn solve(cells: &[CellResult], registry: &Registry) -> Vec<Answer> {
    let mut entries: BTreeMap<(&ProfileName, &TestName, &Serial), Vec<&CellResult>> = BTreeMap::new();
    for result in cells {
        let cell = &result.cell;
        entries.entry((&cell.profile, &cell.test, &cell.serial)).or_default().push(result);
    }
    let answers = entries.into_iter().filter_map(|((_, name, serial), cells)| {
        let test = registry.test(name.as_str())?;
        let solved: Vec<Solved> = cells.into_iter().map(solved).collect();
        let answers = test.solve(&solved);
        let place = format!("{name}/{serial}");
        Some(answers.into_iter().map(move |answer| Answer { test: place.clone(), ..answer }))
    });
    answers.flatten().collect()
}

fn solved(result: &CellResult) -> Solved<'_> {
    let median = |metric: &crate::result::MetricResult| {
        let summary = metric.summary.as_ref()?;
        Some((format!("{}/{}", metric.metric.class, metric.metric.name), summary.median))
    };
    let line = |line: &crate::result::Line| {
        (line.name.clone(), line.points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>())
    };
    Solved {
        case: &result.cell.case,
        params: &result.params,
        medians: result.metrics.iter().filter_map(median).collect(),
        curves: result
            .curves
            .iter()
            .map(|curve| (curve.title.clone(), curve.lines.iter().map(line).collect()))
            .collect(),
    }
}
