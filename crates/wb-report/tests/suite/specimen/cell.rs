//! Builder of example cells from a centre, a spread, disturbances and failures.

#![allow(clippy::unwrap_used, reason = "the examples are valid, or the test is wrong")]

use std::collections::BTreeMap;

use wb_model::outcome::Gate;
use wb_model::{
    AttemptOutcome, AttemptPurpose, CellId, CellOutcome, DefinitionKey, Metric, MetricKey, ParamValue, Params, Serial,
    TestName, Validity,
};
use wb_results::{AttemptResult, CellResult, CurveSet, Failures, MetricResult, NestedLatency};
use wb_stats::{Samples, SamplingRule, Summary};

/// Deterministic pseudorandom numbers.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: &str) -> Self {
        Self(
            seed.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
        )
    }

    /// The next number from −1 to 1, denser near 0, rounded so that it is equal on all machines.
    fn next(&mut self) -> f64 {
        let mut uniform = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % 2001) as f64 / 1000.0 - 1.0
        };
        (uniform() + uniform() + uniform()) / 3.0
    }

    /// A number around a centre, with a spread of `percent` of it.
    pub(crate) fn around(&mut self, centre: f64, percent: f64) -> f64 {
        centre * (1.0 + self.next() * 2.0 * percent / 100.0)
    }
}

/// A builder of a cell's result.
pub(crate) struct CellBuilder {
    result: CellResult,
    /// The metrics with their centres and spreads, primary first.
    metrics: Vec<(Metric, f64, f64)>,
}

impl CellBuilder {
    pub(crate) fn new(test: &str, case: &str, primary: Metric) -> Self {
        let test = TestName::new(test).unwrap();
        let case: String = case.replace('<', "%3C").replace('>', "%3E").replace('(', "%28").replace(')', "%29");
        let id = CellId {
            profile: "Localhost".parse().unwrap(),
            test: test.clone(),
            serial: Serial::Position(0),
            case: case.parse().unwrap(),
        };
        let mut params: Params =
            id.case.axes().map(|(name, value)| (name.to_owned(), ParamValue::Text(value.to_owned()))).collect();
        params.insert("huge-pages".into(), ParamValue::Text("inherit".into()));
        let result = CellResult {
            series: Vec::new(),
            key: DefinitionKey::new(&test, 1, &params),
            id,
            description: String::new(),
            params,
            workers: vec![],
            rule: SamplingRule::Precision { percent: 2.0, min_samples: 6, max_samples: 30 },
            outcome: CellOutcome::Measured,
            ended_by: Some("its rule is met".to_owned()),
            metrics: vec![],
            attempts: vec![],
            failures: Failures::default(),
            exit_status: None,
            dependence: None,
            curves: vec![],
            latency: vec![],
            findings: vec![],
            provenance: BTreeMap::from([
                ("weighbridge".to_owned(), "0.1.0 sha256 5d41402abc4b2a76".to_owned()),
                ("instructions".to_owned(), "avx2".to_owned()),
            ]),
        };
        Self { result, metrics: vec![(primary, 0.0, 0.0)] }
    }

    pub(crate) fn summary(mut self, summary: &str) -> Self {
        self.result.description = summary.into();
        self
    }

    /// Adds a warm-up and `n` samples around a centre.
    pub(crate) fn samples(mut self, centre: f64, percent: f64, n: u32) -> Self {
        let (metric, ..) = self.metrics.remove(0);
        let name = self.result.id.to_string();
        let start = (name.len() % 7) as f64;
        let attempt = |purpose: AttemptPurpose, sample: u32, round: f64| AttemptResult {
            sample,
            attempt: 0,
            purpose,
            start_seconds: start + round * 6.5,
            seconds: 0.52,
            measured_seconds: 0.5,
            outcome: AttemptOutcome::Completed,
            validity: Some(Validity::Valid),
            disturbances: vec![],
            counted: purpose == AttemptPurpose::Sample,
            values: BTreeMap::new(),
            folder: format!("{name}/{}{sample}.0", if purpose == AttemptPurpose::WarmUp { "w" } else { "" }),
        };
        self.result.attempts = std::iter::once(attempt(AttemptPurpose::WarmUp, 0, 0.0))
            .chain((0..n).map(|sample| attempt(AttemptPurpose::Sample, sample, f64::from(sample + 1))))
            .collect();
        self.metric(metric, centre, percent)
    }

    /// Adds a metric to every sample so far.
    pub(crate) fn metric(mut self, metric: Metric, centre: f64, percent: f64) -> Self {
        let key = metric.key();
        let mut noise = Noise::new(&format!("{}{key}", self.result.id));
        for sample in self.result.attempts.iter_mut().filter(|sample| sample.outcome.is_completed()) {
            let lag = if sample.purpose == AttemptPurpose::WarmUp { 0.93 } else { 1.0 };
            sample.values.insert(key.clone(), noise.around(centre * lag, percent));
        }
        self.metrics.push((metric, centre, percent));
        self
    }

    pub(crate) fn check(self, metric: Metric, value: f64) -> Self {
        self.metric(metric, value, 0.0)
    }

    pub(crate) fn disturb(mut self, sample: usize, disturbance: &str) -> Self {
        let target = &mut self.result.attempts[sample + 1];
        target.disturbances.push(disturbance.into());
        target.values.values_mut().for_each(|value| *value *= 0.96);
        self
    }

    pub(crate) fn invalid(mut self, sample: usize, figures: &str) -> Self {
        let target = &mut self.result.attempts[sample + 1];
        target.validity = Some(Validity::Invalid { gate: Gate::Answer, figures: figures.into() });
        target.counted = false;
        self
    }

    pub(crate) fn crash(mut self, sample: usize, status: &str) -> Self {
        let mut crashed = self.result.attempts[sample + 1].clone();
        crashed.outcome = AttemptOutcome::Crashed { status: status.into() };
        (crashed.validity, crashed.counted) = (None, false);
        crashed.values.clear();
        let retry = &mut self.result.attempts[sample + 1];
        (retry.attempt, retry.start_seconds) = (1, retry.start_seconds + 2.0);
        retry.folder = retry.folder.replace(".0", ".1");
        self.result.attempts.insert(sample + 1, crashed);
        self
    }

    pub(crate) fn finding(mut self, finding: &str) -> Self {
        self.result.findings.push(finding.into());
        self
    }

    pub(crate) fn curve(mut self, curve: CurveSet) -> Self {
        self.result.curves.push(curve);
        self
    }

    pub(crate) fn latency(mut self, latency: NestedLatency) -> Self {
        self.result.latency.push(latency);
        self
    }

    pub(crate) fn not_converged(mut self, percent: f64) -> Self {
        self.result.outcome = CellOutcome::NotConverged { percent, metrics: Vec::new() };
        self.result.ended_by = Some("its sample limit is reached".to_owned());
        self
    }

    pub(crate) fn partial(mut self, valid: usize, required: usize) -> Self {
        self.result.outcome = CellOutcome::Partial { valid, required };
        self.result.ended_by = Some("its time budget of 10min is spent".to_owned());
        self
    }

    pub(crate) fn unsupported(mut self, reason: &str) -> CellResult {
        self.result.outcome = CellOutcome::Unsupported { reason: reason.into() };
        self.result
    }

    pub(crate) fn failed(mut self, reason: &str) -> CellResult {
        self.result.outcome = CellOutcome::Failed { reason: reason.into() };
        self.result
    }

    /// Builds the result with summaries.
    pub(crate) fn build(mut self) -> CellResult {
        let samples = &self.result.attempts;
        let summary = |key: &MetricKey, all: bool| {
            let is_selected = |sample: &&AttemptResult| sample.counted && (all || sample.disturbances.is_empty());
            let values: Vec<f64> =
                samples.iter().filter(is_selected).filter_map(|s| s.values.get(key).copied()).collect();
            Samples::new(&values).ok().map(|samples| Summary::new(&samples))
        };
        let has_disturbed = samples.iter().any(|sample| !sample.disturbances.is_empty());
        let metrics = self.metrics.into_iter().map(|(metric, ..)| {
            let key = metric.key();
            let undisturbed = has_disturbed.then(|| summary(&key, false)).flatten();
            MetricResult { worker: None, threshold: None, summary: summary(&key, true), undisturbed, metric }
        });
        self.result.metrics = metrics.collect();
        self.result.failures = Failures::count(&self.result.attempts, &[]);
        self.result
    }
}
