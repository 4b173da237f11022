//! An attempt with its measured values.

use wb_model::outcome::Gate;
use wb_model::{AttemptOutcome, AttemptPurpose, Criteria, Validity, WorkerName};
use wb_record::RecordedAttempt;
use wb_test::evaluate::evaluate;
use wb_test::{Artefacts, Measurement, TestCell};

use crate::aggregation::aggregate_workers;

/// An attempt that ended, with its measured values if it completed.
#[derive(Debug, Clone)]
pub struct EvaluatedAttempt {
    pub attempt: RecordedAttempt,
    /// `None` if the attempt did not complete.
    pub measurement: Option<Measurement>,
}

impl EvaluatedAttempt {
    /// Reads an attempt's values. One whose artefacts were modified is rejected. `criteria` select the primary metrics.
    pub fn evaluate(cell: &dyn TestCell, criteria: &Criteria, attempt: RecordedAttempt) -> Self {
        let completed = attempt.ended.outcome.is_completed();
        let measurement = match (completed, attempt.intact) {
            (false, _) => None,
            (true, true) => Some(read(cell, criteria, &attempt)),
            (true, false) => {
                let mut measured = Measurement::default();
                measured.reject(Gate::Output, "its artefacts were modified");
                Some(measured)
            }
        };
        Self { attempt, measurement }
    }

    pub fn valid(&self) -> Option<&Measurement> {
        self.measurement.as_ref().filter(|measured| measured.validity == Validity::Valid)
    }

    pub fn valid_sample(&self) -> Option<&Measurement> {
        self.valid().filter(|_| self.attempt.ended.purpose == AttemptPurpose::Sample)
    }

    /// Of the measured part, or of the whole processes if the test cannot tell them apart.
    pub fn measured_seconds(&self) -> f64 {
        let reported = self.measurement.as_ref().and_then(|measured| measured.intervals);
        reported.unwrap_or(self.attempt.ended.workload_seconds)
    }

    pub fn is_disturbed(&self) -> bool {
        !self.attempt.ended.disturbances.is_empty()
    }

    /// Whether the user ended it.
    pub fn is_cancelled(&self) -> bool {
        self.attempt.ended.outcome == AttemptOutcome::Cancelled
    }

    /// Its validity or, if it did not complete, its outcome, in words.
    pub fn reason(&self) -> String {
        match &self.measurement {
            Some(measured) => measured.validity.to_string(),
            None => self.attempt.ended.outcome.to_string(),
        }
    }
}

fn read(cell: &dyn TestCell, criteria: &Criteria, attempt: &RecordedAttempt) -> Measurement {
    let metrics = criteria.apply(cell.metrics());
    let workers = &attempt.ended.workers;
    if workers.is_empty() {
        return evaluate(cell, &metrics, &Artefacts::of_run(&attempt.run, &attempt.folder));
    }
    let measurement_of = |worker: &WorkerName| {
        let folder = attempt.folder.join(worker.as_str());
        (worker.clone(), evaluate(cell, &metrics, &Artefacts::of_run(&attempt.run, &folder)))
    };
    aggregate_workers(&metrics, &workers.iter().map(measurement_of).collect())
}
