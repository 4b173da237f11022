//! The `metrics` and `thresholds` of a test in a plan, which decide about its cells.

use std::collections::BTreeSet;
use std::ops::Range;

use wb_diagnostics::{Diagnostic, DiagnosticCollector, Diagnostics, SourceText, suggest};
use wb_model::{Aggregate, Criteria, MAX_THRESHOLD_PERCENT, Metric, MetricKey, ParamValue, TestName};

use crate::request::{Request, SpannedValue, ValueForm};

pub(crate) const METRICS: &str = "metrics";
pub(crate) const THRESHOLDS: &str = "thresholds";

/// The requested criteria. Metrics are kept as written: which ones a test has depends on its parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestCriteria {
    pub metrics: Vec<RequestedMetric>,
    /// The smallest differences that matter, in percent.
    pub thresholds: Vec<(RequestedMetric, f64)>,
}

/// A metric as written: `p99` or `latency/p99`.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedMetric {
    pub text: String,
    pub span: Range<usize>,
}

impl RequestedMetric {
    fn denotes(&self, key: &MetricKey) -> bool {
        self.text == key.name || self.text == key.to_string()
    }
}

impl RequestCriteria {
    /// Parses the value of `metrics`: a name or a list of names.
    pub(crate) fn add_metrics(&mut self, source: &SourceText, value: &SpannedValue) -> Result<(), Diagnostic> {
        let entries = match &value.form {
            ValueForm::List(entries) if !entries.is_empty() => entries.as_slice(),
            ValueForm::List(_) => {
                let message = format!("`{METRICS}` has no values");
                let error = Diagnostic::at(source, value.span.clone(), message, "this list is empty");
                return Err(error.with_help("without it, the metrics decide that the test declares"));
            }
            ValueForm::Single(_) => std::slice::from_ref(value),
        };
        for entry in entries {
            let ValueForm::Single(ParamValue::Text(text)) = &entry.form else {
                let message = format!("invalid value in `{METRICS}`: expected the name of a metric");
                return Err(Diagnostic::at(source, entry.span.clone(), message, "not a name"));
            };
            self.metrics.push(RequestedMetric { text: text.clone(), span: entry.span.clone() });
        }
        Ok(())
    }

    /// Adds the smallest difference of a metric that matters, in percent.
    pub(crate) fn add_threshold(
        &mut self,
        source: &SourceText,
        metric: RequestedMetric,
        value: &SpannedValue,
    ) -> Result<(), Diagnostic> {
        let percent = match &value.form {
            ValueForm::Single(ParamValue::Integer(percent)) => Some(*percent as f64),
            ValueForm::Single(ParamValue::Number(percent)) => Some(*percent),
            ValueForm::Single(_) | ValueForm::List(_) => None,
        };
        let percent = percent.filter(|percent| (0.0..=MAX_THRESHOLD_PERCENT).contains(percent)).ok_or_else(|| {
            let message = format!("invalid threshold of `{}`", metric.text);
            let label = format!("expected a percentage from 0 to {MAX_THRESHOLD_PERCENT}");
            Diagnostic::at(source, value.span.clone(), message, label)
        })?;
        self.thresholds.push((metric, percent));
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.thresholds.is_empty()
    }

    /// The criteria for each cell of a test, given by its metrics. They may differ: a request for a metric concerns the
    /// cells that have it, and a cell without any of the requested metrics keeps its own.
    pub(crate) fn resolve(
        &self,
        source: &SourceText,
        test: &TestName,
        cells: &[Vec<Metric>],
    ) -> Result<Vec<Criteria>, Diagnostics> {
        let all: BTreeSet<MetricKey> = cells.iter().flatten().map(Metric::key).collect();
        if all.is_empty() {
            // The parameters are invalid, or unresolved without a worker.
            return Ok(vec![Criteria::default(); cells.len()]);
        }
        let mut errors = DiagnosticCollector::default();
        let mut keys = |requested: &mut dyn Iterator<Item = &RequestedMetric>| {
            let mut keys = Vec::new();
            for one in requested {
                let Some(key) = errors.ok(find(source, test, one, &all)) else { continue };
                if keys.contains(&key) {
                    let message = format!("`{key}` is given twice");
                    errors.push(Diagnostic::at(source, one.span.clone(), message, "here again"));
                }
                keys.push(key);
            }
            keys
        };
        let metrics = keys(&mut self.metrics.iter());
        let thresholds = keys(&mut self.thresholds.iter().map(|(metric, _)| metric));
        errors.finish()?;
        let percentages = self.thresholds.iter().map(|(_, percent)| *percent);
        let thresholds: Vec<(MetricKey, f64)> = thresholds.into_iter().zip(percentages).collect();
        let criteria = |cell: &Vec<Metric>| {
            let has = |key: &MetricKey| cell.iter().any(|metric| metric.key() == *key);
            Criteria {
                metrics: metrics.iter().filter(|key| has(key)).cloned().collect(),
                thresholds: thresholds.iter().filter(|(key, _)| has(key)).cloned().collect(),
            }
        };
        Ok(cells.iter().map(criteria).collect())
    }
}

/// Refuses deciding metrics that have values of each worker alone, in a cell of several workers.
pub(crate) fn require_aggregates(
    criteria: &Criteria,
    Request { source, test, criteria: requested, .. }: &Request,
    metrics: &[Metric],
) -> Result<(), Diagnostic> {
    let is_aggregated = |metric: &&Metric| metric.aggregate != Aggregate::None;
    let has_aggregate = |key: &MetricKey| metrics.iter().filter(is_aggregated).any(|metric| metric.key() == *key);
    let Some(key) = criteria.metrics.iter().find(|key| !has_aggregate(key)) else { return Ok(()) };
    let span = requested.metrics.iter().find(|metric| metric.denotes(key)).map(|metric| metric.span.clone());
    let others: Vec<String> = metrics.iter().filter(is_aggregated).map(|metric| metric.key().to_string()).collect();
    let message = format!("metric `{key}` of test `{test}` cannot decide about several workers together");
    Err(Diagnostic::at(source, span.unwrap_or_default(), message, "has a value of each worker alone")
        .with_help(format!("measure on one worker (`on=NAME`), or choose one of {}", others.join(", "))))
}

fn find(
    source: &SourceText,
    test: &TestName,
    requested: &RequestedMetric,
    all: &BTreeSet<MetricKey>,
) -> Result<MetricKey, Diagnostic> {
    let RequestedMetric { text, span } = requested;
    let at = |message: String, label: &str| Diagnostic::at(source, span.clone(), message, label);
    let matching: Vec<&MetricKey> = all.iter().filter(|key| requested.denotes(key)).collect();
    match matching.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let full: Vec<String> = all.iter().map(MetricKey::to_string).collect();
            // A name without its class resembles names without theirs.
            let names = all.iter().map(|key| key.name.clone()).chain(full.iter().cloned());
            Err(at(format!("unknown metric `{text}` of test `{test}`"), "unknown")
                .with_suggestion(suggest(text, names.collect::<Vec<_>>()))
                .with_help(format!("expected one of {}", full.join(", "))))
        }
        several => {
            let several: Vec<String> = several.iter().map(|key| format!("`{key}`")).collect();
            Err(at(format!("ambiguous metric `{text}` of test `{test}`"), "in several classes")
                .with_help(format!("write {}", several.join(" or "))))
        }
    }
}
