//! Fake cells for unit tests.

use std::path::PathBuf;

use wb_model::{AttemptOutcome, AttemptPurpose, Class, DefinitionKey, Metric, Params, TestName};
use wb_record::journal::AttemptEnd;
use wb_record::{CellDefinition, RecordedAttempt};
use wb_stats::SamplingRule;
use wb_test::Measurement;

use crate::evaluated_attempt::EvaluatedAttempt;

/// A cell whose primary metric is a throughput `rate`.
pub(crate) fn definition(rule: SamplingRule) -> CellDefinition {
    let test = TestName::new("t").unwrap();
    CellDefinition {
        cell: "Localhost/t/0000:-".parse().unwrap(),
        key: DefinitionKey::new(&test, 1, &Params::new()),
        version: 1,
        summary: String::new(),
        params: Params::new(),
        metrics: vec![Metric::throughput("rate", "ops/s").primary()],
        criteria: Default::default(),
        rule,
        retakes: 0,
        min_time: None,
        roles: Vec::new(),
        unsupported: None,
        provenance: Default::default(),
    }
}

/// A precision rule of six to eight samples.
pub(crate) fn precision() -> SamplingRule {
    SamplingRule::Precision { percent: 2.0, min_samples: 6, max_samples: 8 }
}

/// Valid samples with these values, in this order.
pub(crate) fn samples(values: &[f64]) -> Vec<EvaluatedAttempt> {
    (0..).zip(values).map(|(number, value)| attempt(AttemptPurpose::Sample, number, *value)).collect()
}

/// A completed attempt with this value.
pub(crate) fn attempt(purpose: AttemptPurpose, sample: u32, value: f64) -> EvaluatedAttempt {
    let definition = definition(precision());
    let ended = AttemptEnd {
        cell: definition.cell,
        key: definition.key,
        purpose,
        sample,
        attempt: 0,
        outcome: AttemptOutcome::Completed,
        seconds: 1.0,
        workload_seconds: 1.0,
        work: None,
        workers: Vec::new(),
        work_by_worker: Default::default(),
        disturbances: Vec::new(),
        findings: Vec::new(),
        artefacts: Vec::new(),
    };
    let measured = Measurement::default().with_value(Class::Throughput, "rate", value);
    let (run, folder) = (PathBuf::new(), PathBuf::new());
    let attempt = RecordedAttempt { ended, time: String::new(), invocation: None, run, folder, intact: true };
    EvaluatedAttempt { attempt, measurement: Some(measured) }
}
