//! One attempt with what was read out of it.

use wb_model::outcome::Gate;
use wb_model::{AttemptOutcome, Params, Purpose, Validity, WorkerName};
use wb_record::Attempt;
use wb_tests::evaluate::evaluate;
use wb_tests::{Artefacts, Measurement, Test};

use crate::together::together;

/// An attempt that ended, with what was read out of it where it completed.
#[derive(Debug, Clone)]
pub struct Studied {
    /// The attempt.
    pub attempt: Attempt,
    /// Its values; none where it did not complete.
    pub measured: Option<Measurement>,
}

impl Studied {
    /// Reads an attempt's values. What is no longer as it was written is not read.
    pub fn of(test: &dyn Test, params: &Params, attempt: Attempt) -> Self {
        let completed = attempt.ended.outcome.is_completed();
        let measured = match (completed, attempt.intact) {
            (false, _) => None,
            (true, true) => Some(read(test, params, &attempt)),
            (true, false) => {
                let mut measured = Measurement::default();
                measured.reject(Gate::Output, "its artefacts are not as they were written");
                Some(measured)
            }
        };
        Self { attempt, measured }
    }

    /// Its values, if they count.
    pub fn valid(&self) -> Option<&Measurement> {
        self.measured.as_ref().filter(|measured| measured.validity == Validity::Valid)
    }

    /// Its values, if it is a sample and they count.
    pub fn valid_sample(&self) -> Option<&Measurement> {
        self.valid().filter(|_| self.attempt.ended.purpose == Purpose::Sample)
    }

    /// How long its measured part took, in seconds; its processes, where the test does not tell them apart.
    pub fn measured_seconds(&self) -> f64 {
        let told = self.measured.as_ref().and_then(|measured| measured.seconds);
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
        match &self.measured {
            Some(measured) => measured.validity.to_string(),
            None => self.attempt.ended.outcome.to_string(),
        }
    }
}

/// The values of an attempt; those of several workers as one.
fn read(test: &dyn Test, params: &Params, attempt: &Attempt) -> Measurement {
    let workers = &attempt.ended.workers;
    if workers.is_empty() {
        return evaluate(test, params, &Artefacts::new(&attempt.folder));
    }
    let of = |worker: &WorkerName| {
        let folder = attempt.folder.join(worker.as_str());
        (worker.clone(), evaluate(test, params, &Artefacts::new(&folder)))
    };
    together(&test.metrics(params), &workers.iter().map(of).collect())
}
