//! One attempt with what was read out of it.

use wb_model::outcome::Gate;
use wb_model::{AttemptOutcome, Params, Purpose, Validity, WorkerName};
use wb_record::RecordedAttempt;
use wb_tests::evaluate::evaluate;
use wb_tests::{Artefacts, Measurement, Test};

use crate::aggregation::aggregate_workers;

/// An attempt that ended, with what was read out of it where it completed.
#[derive(Debug, Clone)]
pub struct StudiedAttempt {
    /// The attempt.
    pub attempt: RecordedAttempt,
    /// Its values; none where it did not complete.
    pub measurement: Option<Measurement>,
}

impl StudiedAttempt {
    /// Reads an attempt's values. What is no longer as it was written is not read.
    pub fn of(test: &dyn Test, params: &Params, attempt: RecordedAttempt) -> Self {
        let completed = attempt.ended.outcome.is_completed();
        let measurement = match (completed, attempt.intact) {
            (false, _) => None,
            (true, true) => Some(read(test, params, &attempt)),
            (true, false) => {
                let mut measured = Measurement::default();
                measured.reject(Gate::Output, "its artefacts are not as they were written");
                Some(measured)
            }
        };
        Self { attempt, measurement }
    }

    /// Its values, if they count.
    pub fn valid(&self) -> Option<&Measurement> {
        self.measurement.as_ref().filter(|measured| measured.validity == Validity::Valid)
    }

    /// Its values, if it is a sample and they count.
    pub fn valid_sample(&self) -> Option<&Measurement> {
        self.valid().filter(|_| self.attempt.ended.purpose == Purpose::Sample)
    }

    /// How long its measured part took, in seconds; its processes, where the test does not tell them apart.
    pub fn measured_seconds(&self) -> f64 {
        let told = self.measurement.as_ref().and_then(|measured| measured.seconds);
        told.unwrap_or(self.attempt.ended.workload_seconds)
    }

    /// Whether something from outside disturbed it.
    pub fn is_disturbed(&self) -> bool {
        !self.attempt.ended.disturbances.is_empty()
    }

    /// Whether the user ended it.
    pub fn is_cancelled(&self) -> bool {
        self.attempt.ended.outcome == AttemptOutcome::Cancelled
    }

    /// Why it gave no value that counts.
    pub fn reason(&self) -> String {
        match &self.measurement {
            Some(measured) => measured.validity.to_string(),
            None => self.attempt.ended.outcome.to_string(),
        }
    }
}

/// The values of an attempt; those of several workers as one.
fn read(test: &dyn Test, params: &Params, attempt: &RecordedAttempt) -> Measurement {
    let workers = &attempt.ended.workers;
    if workers.is_empty() {
        return evaluate(test, params, &Artefacts::new(&attempt.folder));
    }
    let of = |worker: &WorkerName| {
        let folder = attempt.folder.join(worker.as_str());
        (worker.clone(), evaluate(test, params, &Artefacts::new(&folder)))
    };
    aggregate_workers(&test.metrics(params), &workers.iter().map(of).collect())
}
