//! A `result.json` for readers of thousands of them, such as comparisons: texts are borrowed from the file, and what is
//! not compared is skipped. Lenient where earlier versions wrote less. The types that are written are beside; a test
//! holds both against each other.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use wb_model::{AttemptPurpose, CellOutcome, Class, Direction, ParamValue, Validity, WorkerName};

/// A `result.json`.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with `cells`, the results of a serial")]
pub struct BorrowedSerial<'a> {
    #[serde(borrow)]
    pub cells: Vec<BorrowedCell<'a>>,
}

/// A [`CellResult`](crate::CellResult).
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with a cell's results")]
pub struct BorrowedCell<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    pub params: BTreeMap<String, ParamValue>,
    #[serde(borrow, default)]
    pub provenance: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    pub outcome: Option<CellOutcome>,
    /// Why it ended; none while its run has not finished it.
    #[serde(borrow, default)]
    pub ended_by: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub metrics: Vec<BorrowedMetricResult<'a>>,
    #[serde(borrow)]
    pub attempts: Vec<BorrowedAttempt<'a>>,
    #[serde(borrow, default)]
    pub series: Vec<BorrowedSeries<'a>>,
    #[serde(default)]
    pub failures: BorrowedFailures,
    #[serde(default)]
    pub exit_status: Option<i32>,
    #[serde(borrow, default)]
    pub findings: Vec<Cow<'a, str>>,
}

/// The [`Failures`](crate::Failures) of a cell.
#[derive(Debug, Deserialize, Default)]
#[serde(expecting = "an object with the failed attempts of a cell")]
pub struct BorrowedFailures {
    #[serde(default)]
    pub failed: u32,
    #[serde(default)]
    pub attempts: u32,
    #[serde(default)]
    pub cause: Option<String>,
    #[serde(default)]
    pub cause_count: u32,
}

/// A [`MetricResult`](crate::MetricResult).
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with `metric` and `summary`")]
pub struct BorrowedMetricResult<'a> {
    #[serde(borrow)]
    pub metric: BorrowedMetric<'a>,
    pub worker: Option<WorkerName>,
    #[serde(default)]
    pub threshold: Option<f64>,
    pub summary: Option<BorrowedSummary>,
}

/// What identifies a metric.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with a metric's name, class and unit")]
pub struct BorrowedMetric<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    pub class: Class,
    #[serde(borrow)]
    pub unit: Cow<'a, str>,
    pub direction: Direction,
    pub primary: bool,
}

/// The part of a summary that is compared.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with `mean`")]
pub struct BorrowedSummary {
    pub mean: f64,
    pub stddev_percent: Option<f64>,
}

/// An [`AttemptResult`](crate::AttemptResult).
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with a sample's `values`")]
pub struct BorrowedAttempt<'a> {
    #[serde(default)]
    pub purpose: Option<AttemptPurpose>,
    #[serde(default)]
    pub start_seconds: f64,
    #[serde(default)]
    pub validity: Option<Validity>,
    pub counted: bool,
    #[serde(default)]
    pub disturbances: Vec<IgnoredAny>,
    #[serde(borrow)]
    pub values: BTreeMap<Cow<'a, str>, f64>,
}

/// A [`SampleSeries`](crate::SampleSeries).
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object with the `values` of samples")]
pub struct BorrowedSeries<'a> {
    #[serde(default)]
    pub count: u32,
    pub counted: bool,
    #[serde(default)]
    pub excluded: Vec<BorrowedExclusion>,
    #[serde(borrow)]
    pub values: BTreeMap<Cow<'a, str>, Vec<Option<f64>>>,
}

/// A sample of a series that does not count.
#[derive(Debug, Deserialize)]
pub struct BorrowedExclusion {
    pub position: usize,
    #[serde(default)]
    pub validity: Option<Validity>,
}

impl BorrowedSeries<'_> {
    /// The counted values of a metric.
    pub fn counted_values(&self, metric: &str) -> impl Iterator<Item = f64> {
        let values = self.values.get(metric).filter(|_| self.counted).map_or(&[][..], Vec::as_slice);
        let is_excluded =
            |index: &usize| self.excluded.binary_search_by_key(index, |excluded| excluded.position).is_ok();
        values.iter().enumerate().filter(move |(index, _)| !is_excluded(index)).filter_map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wb_model::{AttemptOutcome, CellId, DefinitionKey, Metric, MetricKey, Params, TestName};
    use wb_stats::{Samples, SamplingRule, Summary};

    use super::*;
    use crate::{AttemptResult, CellResult, ExcludedSample, Failures, MetricResult, SampleSeries, SerialResult};

    fn invalid() -> Validity {
        Validity::Invalid { gate: wb_model::Gate::Answer, figures: "residual 7".to_owned() }
    }

    fn cell() -> CellResult {
        let metric = Metric::throughput("iops", "ops/s").primary();
        let values = BTreeMap::from([(metric.key(), 3.0)]);
        let attempt = AttemptResult {
            sample: 0,
            attempt: 0,
            purpose: AttemptPurpose::Sample,
            start_seconds: 2.5,
            seconds: 1.0,
            measured_seconds: 1.0,
            outcome: AttemptOutcome::Completed,
            validity: Some(invalid()),
            disturbances: vec!["steal 5 %".to_owned()],
            counted: true,
            values,
            folder: "f".to_owned(),
        };
        let series = SampleSeries {
            first_sample: 1,
            count: 2,
            start_seconds: 0.0,
            measured_seconds: Vec::new(),
            counted: true,
            excluded: vec![ExcludedSample {
                position: 1,
                outcome: AttemptOutcome::Completed,
                validity: Some(invalid()),
            }],
            values: BTreeMap::from([(MetricKey::new(Class::Throughput, "iops"), vec![Some(4.0), Some(5.0)])]),
            folder: "f".to_owned(),
        };
        CellResult {
            id: "Localhost/fio/0000:rw=read".parse::<CellId>().unwrap(),
            key: DefinitionKey::new(&TestName::new("fio").unwrap(), 1, &Params::new()),
            description: "d".to_owned(),
            params: Params::from([("rw".to_owned(), ParamValue::Text("read".to_owned()))]),
            workers: Vec::new(),
            rule: SamplingRule::Precision { percent: 2.0, min_samples: 6, max_samples: 30 },
            outcome: CellOutcome::Measured,
            ended_by: Some("limit".to_owned()),
            metrics: vec![MetricResult {
                metric,
                worker: None,
                threshold: Some(2.0),
                summary: Some(Summary::new(&Samples::new(&[3.0, 4.0]).unwrap())),
                undisturbed: None,
            }],
            attempts: vec![attempt],
            series: vec![series],
            failures: Failures { failed: 1, attempts: 4, cause: Some("crashed".to_owned()), cause_count: 1 },
            exit_status: Some(3),
            dependence: None,
            curves: Vec::new(),
            latency: Vec::new(),
            findings: vec!["drift".to_owned()],
            provenance: BTreeMap::from([("host".to_owned(), "a".to_owned())]),
        }
    }

    /// Whatever a comparison reads has the name and the form in which it is written.
    #[test]
    fn what_is_written_is_read() {
        let written = cell();
        let text = serde_json::to_string(&SerialResult { records_sha256: None, cells: vec![written.clone()] }).unwrap();
        let read = serde_json::from_str::<BorrowedSerial<'_>>(&text).unwrap().cells.remove(0);
        assert_eq!((read.id.as_ref(), read.key.as_ref()), (&*written.id.to_string(), &*written.key.to_string()));
        assert_eq!((&read.params, &read.outcome), (&written.params, &Some(written.outcome.clone())));
        assert_eq!(read.provenance["host"], written.provenance["host"]);
        assert_eq!((read.ended_by.as_deref(), read.exit_status), (written.ended_by.as_deref(), written.exit_status));
        assert_eq!(read.findings, written.findings);
        let BorrowedFailures { failed, attempts, cause, cause_count } = read.failures;
        assert_eq!((failed as usize, attempts as usize), (written.failures.failed, written.failures.attempts));
        assert_eq!((cause, cause_count as usize), (written.failures.cause.clone(), written.failures.cause_count));
        let (metric, result) = (&read.metrics[0], &written.metrics[0]);
        assert_eq!((metric.metric.name.as_ref(), metric.metric.class), (&*result.metric.name, result.metric.class));
        assert_eq!((metric.metric.unit.as_ref(), metric.metric.primary), (&*result.metric.unit.to_string(), true));
        assert_eq!((metric.metric.direction, metric.threshold), (result.metric.direction, result.threshold));
        let [summary, expected] = [metric.summary.as_ref().unwrap().mean, result.summary.as_ref().unwrap().mean];
        assert_eq!(summary, expected);
        let (attempt, sample) = (&read.attempts[0], &written.attempts[0]);
        assert_eq!((attempt.purpose, attempt.start_seconds), (Some(sample.purpose), sample.start_seconds));
        assert_eq!((&attempt.validity, attempt.counted), (&sample.validity, sample.counted));
        assert_eq!(attempt.disturbances.len(), sample.disturbances.len());
        assert_eq!(attempt.values["throughput/iops"], 3.0);
        let (series, columns) = (&read.series[0], &written.series[0]);
        assert_eq!((series.count, series.counted), (columns.count, columns.counted));
        assert_eq!(series.excluded[0].validity, columns.excluded[0].validity);
        assert_eq!(series.counted_values("throughput/iops").collect::<Vec<_>>(), [4.0]);
    }
}
