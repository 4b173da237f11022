//! The figures and samples of a run.

use wb_model::CellOutcome;
use wb_results::{AttemptResult, CellResult, MetricResult, Study};
use wb_stats::Summary;

use super::{CellColumns, CellFields, SharedUnits, scale_figure, to_csv};
use crate::phrasing;

const METRIC_COLUMNS: [&str; 19] = [
    "direction",
    "primary",
    "n",
    "median",
    "low",
    "high",
    "mean",
    "stddev",
    "min",
    "q1",
    "q3",
    "max",
    "start_s",
    "failed",
    "attempts",
    "invalid",
    "disturbed",
    "outcome",
    "reason",
];

const SAMPLE_COLUMNS: [&str; 9] =
    ["sample", "attempt", "purpose", "counted", "value", "start_s", "duration_s", "outcome", "remarks"];

const FILES: [&[&str]; 2] = [&METRIC_COLUMNS, &SAMPLE_COLUMNS];

/// Writes one row per metric and worker of a cell. A cell without metrics has a row with its outcome and the reason.
pub fn metrics(study: &Study) -> String {
    let table = TidyTable::new(study);
    let rows = study.cells.iter().flat_map(|cell| {
        let empty = cell.metrics.is_empty().then(|| table.metric_row(cell, None));
        cell.metrics.iter().map(|result| table.metric_row(cell, Some(result))).chain(empty)
    });
    to_csv(table.columns.header(&METRIC_COLUMNS, &FILES), rows)
}

/// Writes one row per sample and metric. An attempt without values has a row with its outcome.
pub fn samples(study: &Study) -> String {
    let table = TidyTable::new(study);
    let samples = study.cells.iter().flat_map(|cell| cell.samples().map(move |sample| (cell, sample)));
    let rows = samples.flat_map(|(cell, sample)| table.sample_rows(cell, &sample));
    to_csv(table.columns.header(&SAMPLE_COLUMNS, &FILES), rows)
}

struct TidyTable {
    columns: CellColumns,
    units: SharedUnits,
}

impl TidyTable {
    fn new(study: &Study) -> Self {
        let results = study.cells.iter().flat_map(|cell| &cell.metrics);
        let median = |result: &MetricResult| result.summary.as_ref().map_or(0.0, |summary| summary.median);
        let figures =
            results.map(|result| (result.metric.key().to_string(), result.metric.unit.clone(), median(result)));
        let units = SharedUnits::new(figures);
        Self {
            columns: CellColumns::new(study.cells.iter().flat_map(|cell| cell.params.keys().cloned()).collect()),
            units,
        }
    }

    fn unit_of(&self, result: &MetricResult) -> (f64, String) {
        let unit = self.units.of(&result.metric.key().to_string(), &result.metric.unit);
        unit.map_or_else(|| (1.0, result.metric.unit.to_string()), |unit| (unit.divisor, unit.name.clone()))
    }

    fn metric_row(&self, cell: &CellResult, result: Option<&MetricResult>) -> Vec<String> {
        let metric = result.map(|result| &result.metric);
        let summary = result.and_then(|result| result.summary.as_ref());
        let scale = result.map_or(1.0, |result| self.unit_of(result).0);
        let figure = |pick: fn(&Summary) -> Option<f64>| {
            summary.and_then(pick).map(|value| scale_figure(value, scale).to_string()).unwrap_or_default()
        };
        let first = cell.attempts.iter().find(|attempt| attempt.counted).map(|attempt| attempt.start_seconds);
        let start = first.or(cell.series.first().map(|series| series.start_seconds));
        let mut row = self.leading_columns(cell, result);
        row.extend([
            metric.map_or("", |metric| metric.direction.as_str()).to_owned(),
            metric.map(|metric| metric.primary.to_string()).unwrap_or_default(),
            summary.map_or(0, |summary| summary.n).to_string(),
            figure(|s| Some(s.median)),
            figure(|s| s.median_interval.map(|interval| interval.low)),
            figure(|s| s.median_interval.map(|interval| interval.high)),
            figure(|s| Some(s.mean)),
            figure(|s| s.stddev),
            figure(|s| Some(s.min)),
            figure(|s| Some(s.q1)),
            figure(|s| Some(s.q3)),
            figure(|s| Some(s.max)),
            start.map(|start| start.to_string()).unwrap_or_default(),
            cell.failures.failed.to_string(),
            cell.failures.attempts.to_string(),
            phrasing::invalid_count(cell).to_string(),
            phrasing::disturbed_count(cell).to_string(),
            cell.outcome.as_str().to_owned(),
            outcome_reason(cell),
        ]);
        row
    }

    fn sample_rows(&self, cell: &CellResult, sample: &AttemptResult) -> Vec<Vec<String>> {
        let row = |result: Option<&MetricResult>, value: String| {
            let mut row = self.leading_columns(cell, result);
            row.extend([
                sample.sample.to_string(),
                sample.attempt.to_string(),
                phrasing::purpose_label(sample.purpose).to_owned(),
                sample.counted.to_string(),
                value,
                sample.start_seconds.to_string(),
                sample.seconds.to_string(),
                sample.outcome.to_string(),
                phrasing::value_remarks(sample).join("; "),
            ]);
            row
        };
        let value = |result: &MetricResult| {
            let value = scale_figure(*sample.values.get(&result.key())?, self.unit_of(result).0);
            Some(row(Some(result), value.to_string()))
        };
        if sample.values.is_empty() {
            vec![row(None, String::new())]
        } else {
            cell.metrics.iter().filter_map(value).collect()
        }
    }

    fn leading_columns(&self, cell: &CellResult, result: Option<&MetricResult>) -> Vec<String> {
        let id = &cell.id;
        let fields = CellFields {
            cell: id.to_string(),
            profile: id.profile.to_string(),
            test: id.test.to_string(),
            serial: id.serial.to_string(),
            metric: result.map(|result| result.metric.key().to_string()).unwrap_or_default(),
            unit: result.map(|result| self.unit_of(result).1).unwrap_or_default(),
            worker: result.and_then(|result| result.worker.as_ref()).map(ToString::to_string).unwrap_or_default(),
        };
        self.columns.row(fields, |name| cell.params.get(name).map(ToString::to_string).unwrap_or_default())
    }
}

fn outcome_reason(cell: &CellResult) -> String {
    match cell.outcome {
        CellOutcome::Measured => String::new(),
        _ => phrasing::describe_outcome(cell),
    }
}
