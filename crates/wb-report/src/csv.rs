//! Writes results as comma-separated values, in tidy form: one header line, a row per observation, a column per
//! parameter, and plain numbers in one unit per metric.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{CellOutcome, MetricKey, Unit};
use wb_stats::Summary;
use wb_study::result::{AttemptResult, CellResult, MetricResult, Study};

use crate::phrasing;

/// The columns before those of the parameters.
const CELL_COLUMNS: [&str; 4] = ["cell", "profile", "test", "serial"];

/// The columns after those of the parameters, of metrics.
const METRIC_COLUMNS: [&str; 20] = [
    "metric",
    "unit",
    "worker",
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
    "outcome",
    "reason",
];

/// The columns after those of the parameters, of samples.
const SAMPLE_COLUMNS: [&str; 12] = [
    "metric",
    "unit",
    "worker",
    "sample",
    "attempt",
    "purpose",
    "counted",
    "value",
    "start_s",
    "duration_s",
    "outcome",
    "remarks",
];

/// Writes one row per metric and worker of a cell. A cell without metrics has a row with its outcome and the reason.
pub fn metrics(study: &Study) -> String {
    let table = TidyTable::of(study);
    let rows = study.cells.iter().flat_map(|cell| {
        let empty = cell.metrics.is_empty().then(|| table.metric_row(cell, None));
        cell.metrics.iter().map(|result| table.metric_row(cell, Some(result))).chain(empty)
    });
    write_csv(table.columns(&METRIC_COLUMNS).iter().map(String::as_str), rows)
}

/// Writes one row per sample and metric. An attempt without values has a row with its outcome.
pub fn samples(study: &Study) -> String {
    let table = TidyTable::of(study);
    let samples = study.cells.iter().flat_map(|cell| cell.samples().map(move |sample| (cell, sample)));
    let rows = samples.flat_map(|(cell, sample)| table.sample_rows(cell, &sample));
    write_csv(table.columns(&SAMPLE_COLUMNS).iter().map(String::as_str), rows)
}

/// The columns and units that all rows of a study share.
struct TidyTable<'a> {
    /// The names of the parameters of all tests, sorted.
    params: Vec<&'a str>,
    units: SharedUnits,
}

impl<'a> TidyTable<'a> {
    fn of(study: &'a Study) -> Self {
        let params: BTreeSet<&str> =
            study.cells.iter().flat_map(|cell| cell.params.keys()).map(String::as_str).collect();
        Self { params: params.into_iter().collect(), units: SharedUnits::of(study) }
    }

    /// The names of all columns. A parameter with the name of another column is prefixed.
    fn columns(&self, values: &[&str]) -> Vec<String> {
        let is_taken = |name: &str| {
            [&CELL_COLUMNS[..], &METRIC_COLUMNS, &SAMPLE_COLUMNS].into_iter().flatten().any(|column| *column == name)
        };
        let params = self.params.iter().map(|name| match is_taken(name) {
            true => format!("parameter.{name}"),
            false => (*name).to_owned(),
        });
        let owned = |name: &&str| (*name).to_owned();
        CELL_COLUMNS.iter().map(owned).chain(params).chain(values.iter().map(owned)).collect()
    }

    fn metric_row(&self, cell: &CellResult, result: Option<&MetricResult>) -> Vec<String> {
        let metric = result.map(|result| &result.metric);
        let summary = result.and_then(|result| result.summary.as_ref());
        let scale = result.map_or(1.0, |result| self.units.of_metric(result).divisor);
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
            let value = scale_figure(*sample.values.get(&result.key())?, self.units.of_metric(result).divisor);
            Some(row(Some(result), value.to_string()))
        };
        match sample.values.is_empty() {
            true => vec![row(None, String::new())],
            false => cell.metrics.iter().filter_map(value).collect(),
        }
    }

    /// The columns of a cell and its parameters, and the metric with its unit and worker.
    fn leading_columns(&self, cell: &CellResult, result: Option<&MetricResult>) -> Vec<String> {
        let id = &cell.id;
        let of_cell = [id.to_string(), id.profile.to_string(), id.test.to_string(), id.serial.to_string()];
        let param = |name: &&str| cell.params.get(*name).map(ToString::to_string).unwrap_or_default();
        let of_metric = [
            result.map(|result| result.metric.key().to_string()).unwrap_or_default(),
            result.map(|result| self.units.of_metric(result).name.clone()).unwrap_or_default(),
            result.and_then(|result| result.worker.as_ref()).map(ToString::to_string).unwrap_or_default(),
        ];
        of_cell.into_iter().chain(self.params.iter().map(param)).chain(of_metric).collect()
    }
}

/// Converts a figure to another unit, without the last digit, which the division may change: `302.4814155` instead of
/// `302.48141549999997`.
fn scale_figure(value: f64, divisor: f64) -> f64 {
    if divisor == 1.0 { value } else { format!("{:.14e}", value / divisor).parse().unwrap_or(value / divisor) }
}

/// A unit of figures, and how many of a metric's own unit it is.
struct ScaledUnit {
    divisor: f64,
    name: String,
}

/// The unit of each metric: the one in which the terminal shows its largest median. Metrics of one name in several tests
/// share it, if their units differ at most in the prefix.
struct SharedUnits(BTreeMap<(MetricKey, Unit), ScaledUnit>);

impl SharedUnits {
    fn of(study: &Study) -> Self {
        let results = || study.cells.iter().flat_map(|cell| &cell.metrics);
        // In the unit without a prefix, by which metrics in different units can be compared.
        let mut largest: BTreeMap<(MetricKey, String), (f64, &Unit)> = BTreeMap::new();
        for result in results() {
            let unit = &result.metric.unit;
            let (divisor, base) = unit.readable(0.0);
            let median = result.summary.as_ref().map_or(0.0, |summary| summary.median.abs()) / divisor;
            let entry = largest.entry((result.metric.key(), base)).or_insert((median, unit));
            if median > entry.0 {
                *entry = (median, unit);
            }
        }
        let scaled = |result: &MetricResult| {
            let unit = &result.metric.unit;
            let (divisor, base) = unit.readable(0.0);
            let (median, of) = largest[&(result.metric.key(), base)];
            let (of_base, _) = of.readable(0.0);
            // Without a median above zero there is no prefix to choose.
            let (of_readable, name) = if median > 0.0 { of.readable(median * of_base) } else { (1.0, of.to_string()) };
            let scale = if unit == of { of_readable } else { divisor * of_readable / of_base };
            ((result.metric.key(), unit.clone()), ScaledUnit { divisor: scale, name })
        };
        Self(results().map(scaled).collect())
    }

    fn of_metric(&self, result: &MetricResult) -> &ScaledUnit {
        &self.0[&(result.metric.key(), result.metric.unit.clone())]
    }
}

fn outcome_reason(cell: &CellResult) -> String {
    match cell.outcome {
        CellOutcome::Measured => String::new(),
        _ => phrasing::describe_outcome(cell),
    }
}

/// Renders rows as text, below the names of their columns, which are separated by commas.
pub(crate) fn to_csv(head: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    write_csv(head.split(','), rows)
}

/// Renders rows as text, below the names of their columns. Writing to memory cannot fail, and rows have equal lengths,
/// which the writer requires.
fn write_csv<'a>(head: impl Iterator<Item = &'a str>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut is_valid = writer.write_record(head).is_ok();
    for row in rows {
        is_valid &= writer.write_record(&row).is_ok();
    }
    debug_assert!(is_valid, "rows of unequal length");
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
