//! Writes results as comma-separated values, with one header line and plain numbers in the named units.

use wb_model::CellOutcome;
use wb_stats::Summary;
use wb_study::result::{AttemptResult, CellResult, MetricResult, Study};

use crate::phrasing;

const METRIC_COLUMNS: &str =
    "id,test,case,worker,unit,direction,primary,n,median,low,high,mean,stddev,min,q1,q3,max,outcome,reason";

const SAMPLE_COLUMNS: &str =
    "id,test,case,worker,unit,sample,attempt,purpose,start_s,duration_s,counted,value,outcome,remarks";

/// Writes one row per cell, metric and worker. A cell without metrics has a row with its outcome and the reason.
pub fn metrics(study: &Study) -> String {
    let rows = study.cells.iter().flat_map(|cell| {
        let empty = cell.metrics.is_empty().then(|| metric_row(cell, None));
        cell.metrics.iter().map(|result| metric_row(cell, Some(result))).chain(empty)
    });
    to_csv(METRIC_COLUMNS, rows)
}

/// Writes one row per value of each attempt. An attempt without values has a row with its outcome.
pub fn samples(study: &Study) -> String {
    let samples = study.cells.iter().flat_map(|cell| cell.samples().map(move |sample| (cell, sample)));
    to_csv(SAMPLE_COLUMNS, samples.flat_map(|(cell, sample)| sample_rows(cell, &sample)))
}

fn metric_row(cell: &CellResult, result: Option<&MetricResult>) -> Vec<String> {
    let metric = result.map(|result| &result.metric);
    let summary = result.and_then(|result| result.summary.as_ref());
    let figure = |pick: fn(&Summary) -> Option<f64>| summary.and_then(pick).map(|v| v.to_string()).unwrap_or_default();
    let mut row = id_columns(cell, result);
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
        cell.outcome.as_str().to_owned(),
        outcome_reason(&cell.outcome),
    ]);
    row
}

fn sample_rows(cell: &CellResult, sample: &AttemptResult) -> Vec<Vec<String>> {
    let row = |result: Option<&MetricResult>, value: String| {
        let mut row = id_columns(cell, result);
        row.extend([
            sample.sample.to_string(),
            sample.attempt.to_string(),
            phrasing::purpose_label(sample.purpose).to_owned(),
            sample.start_seconds.to_string(),
            sample.seconds.to_string(),
            sample.counted.to_string(),
            value,
            sample.outcome.to_string(),
            phrasing::value_remarks(sample).join("; "),
        ]);
        row
    };
    let value = |result: &MetricResult| Some(row(Some(result), sample.values.get(&result.key())?.to_string()));
    match sample.values.is_empty() {
        true => vec![row(None, String::new())],
        false => cell.metrics.iter().filter_map(value).collect(),
    }
}

/// The first columns of both files: id, test, case, worker, unit.
fn id_columns(cell: &CellResult, result: Option<&MetricResult>) -> Vec<String> {
    vec![
        result.map_or_else(|| cell.id.to_string(), |result| format!("{}/{}", cell.id, result.key())),
        cell.id.test.to_string(),
        cell.id.case.to_string(),
        result.and_then(|result| result.worker.as_ref()).map(ToString::to_string).unwrap_or_default(),
        result.map(|result| result.metric.unit.to_string()).unwrap_or_default(),
    ]
}

fn outcome_reason(outcome: &CellOutcome) -> String {
    match outcome {
        CellOutcome::Measured => String::new(),
        other => other.to_string(),
    }
}

/// Renders rows as text, below the names of their columns. Writing to memory cannot fail, and rows have equal lengths, which the writer requires.
pub(crate) fn to_csv(head: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut is_valid = writer.write_record(head.split(',')).is_ok();
    for row in rows {
        is_valid &= writer.write_record(&row).is_ok();
    }
    debug_assert!(is_valid, "rows of unequal length");
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
