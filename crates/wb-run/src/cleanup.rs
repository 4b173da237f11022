//! What cleaning up on workers found: into the record of an attempt, or among the problems of its cell.

use wb_agent::{RevertedChange, TeardownGroup, TeardownReport, WorkerError};
use wb_sys::undo::RevertOutcome;
use wb_test::attempt::AttemptRecord;
use wb_test::{Failure, WorkerContext};

/// Findings of a cleanup, to be recorded.
#[must_use = "what a cleanup found must be recorded"]
// Not `Clone`, so that each report is consumed once: by the record of an attempt, or by the problems of its cell
// (`cleanup-failed` in the journal).
#[derive(Debug)]
pub(crate) struct CleanupReport {
    failures: Vec<Failure>,
    findings: Vec<String>,
    /// Settings that another process changed meanwhile.
    disturbances: Vec<String>,
}

impl CleanupReport {
    pub(crate) fn clean() -> Self {
        Self { failures: Vec::new(), findings: Vec::new(), disturbances: Vec::new() }
    }

    /// Tears down the groups of a context: kills their processes and reverts their changes.
    pub(crate) async fn of_context(site: WorkerContext) -> Self {
        let mut report = Self::clean();
        for group in std::iter::once(site.group).chain(site.peers.into_iter().map(|peer| peer.group)) {
            report.tear_down(group).await;
        }
        report
    }

    pub(crate) async fn of_group(group: TeardownGroup) -> Self {
        let mut report = Self::clean();
        report.tear_down(group).await;
        report
    }

    /// Adds a failure before those of the report.
    pub(crate) fn after(mut self, failure: Option<Failure>) -> Self {
        self.failures.splice(0..0, failure);
        self
    }

    /// Adds what was found to the record of an attempt, and returns the result of the attempt: a failed cleanup fails
    /// an attempt that has not failed otherwise. `step` is for messages.
    pub(crate) fn record<T>(
        self,
        step: &str,
        record: &mut AttemptRecord,
        mut result: Result<T, Failure>,
    ) -> Result<T, Failure> {
        record.findings.extend(self.findings);
        record.disturbances.extend(self.disturbances);
        for failure in self.failures {
            result = add_failure(record, step, result, failure);
        }
        result
    }

    /// Converts the report to problems, a sentence each, of a cleanup outside of attempts.
    #[must_use]
    pub(crate) fn into_problems(self) -> Vec<String> {
        let failures = self.failures.iter().map(Failure::to_string);
        failures.chain(self.findings).chain(self.disturbances).collect()
    }

    async fn tear_down(&mut self, group: TeardownGroup) {
        let worker = group.worker().name().clone();
        match group.teardown().await {
            Ok(TeardownReport { killed: _, unkillable, reverted, cleanup_errors, revert_error, folder_error }) => {
                if !unkillable.is_empty() {
                    self.findings.push(format!("processes survived SIGKILL: {unkillable:?}"));
                }
                reverted.into_iter().for_each(|change| self.add_reverted(change));
                self.failures.extend(cleanup_errors.into_iter().map(Failure::refused));
                self.failures.extend(revert_error.map(Failure::refused));
                self.failures.extend(folder_error.map(|fault| WorkerError::Fault { worker, fault }.into()));
            }
            Err(error) => self.failures.push(error.into()),
        }
    }

    fn add_reverted(&mut self, RevertedChange { description, outcome }: RevertedChange) {
        match outcome {
            RevertOutcome::Restored => {}
            RevertOutcome::Conflict { .. } => self.disturbances.push(format!("{description}: {outcome}")),
            RevertOutcome::Superseded { .. } | RevertOutcome::Gone => {
                self.findings.push(format!("{description}: {outcome}"));
            }
        }
    }
}

/// Adds a later failure to the result of an attempt. The first one counts, unless a worker was lost meanwhile, which
/// explains it; the other one is a finding. The same failure again, as the loss of a worker at each later call, is none.
pub(crate) fn add_failure<T>(
    record: &mut AttemptRecord,
    step: &str,
    result: Result<T, Failure>,
    failure: Failure,
) -> Result<T, Failure> {
    match result {
        Ok(_) => Err(failure),
        Err(first) if first == failure => Err(first),
        Err(first @ (Failure::Timeout { .. } | Failure::Crashed { .. } | Failure::Refused { .. }))
            if matches!(failure, Failure::Lost { .. }) =>
        {
            record.findings.push(first.to_string());
            Err(failure)
        }
        Err(first) => {
            record.findings.push(format!("{step} failed too: {failure}"));
            Err(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use wb_model::WorkerName;

    use super::*;

    fn lost() -> Failure {
        Failure::Lost { worker: WorkerName::local(), reason: "the cable was pulled".to_owned() }
    }

    fn report(failures: Vec<Failure>) -> CleanupReport {
        let [findings, disturbances] = ["a finding", "a disturbance"].map(|text| vec![text.to_owned()]);
        CleanupReport { failures, findings, disturbances }
    }

    #[test]
    fn a_failed_cleanup_fails_the_attempt_and_keeps_the_rest() {
        let mut record = AttemptRecord::default();
        let failures = vec![Failure::refused("busy"), Failure::refused("read-only")];
        let result = report(failures).record("teardown", &mut record, Ok(()));
        assert_eq!(result, Err(Failure::refused("busy")));
        assert_eq!(record.findings, ["a finding", "teardown failed too: read-only"]);
        assert_eq!(record.disturbances, ["a disturbance"]);
    }

    #[test]
    fn a_failed_attempt_keeps_its_failure_unless_a_worker_is_lost() {
        let mut record = AttemptRecord::default();
        let first: Result<(), Failure> = Err(Failure::crashed("exit status 1"));
        let result = report(vec![Failure::refused("busy")]).record("teardown", &mut record, first.clone());
        assert_eq!(result, first);
        assert_eq!(record.findings, ["a finding", "teardown failed too: busy"]);
        let mut record = AttemptRecord::default();
        assert_eq!(report(vec![lost()]).record("teardown", &mut record, first), Err(lost()));
        assert_eq!(record.findings, ["a finding", "exit status 1"]);
        let mut record = AttemptRecord::default();
        assert_eq!(report(vec![lost()]).record("teardown", &mut record, Err::<(), _>(lost())), Err(lost()));
        assert_eq!(record.findings, ["a finding"]);
        let cancelled = report(vec![lost()]).record("teardown", &mut record, Err::<(), _>(Failure::Cancelled));
        assert_eq!(cancelled, Err(Failure::Cancelled));
    }

    #[test]
    fn everything_found_outside_of_an_attempt_is_a_problem() {
        let problems = report(vec![lost()]).after(Some(Failure::refused("busy"))).into_problems();
        assert_eq!(problems, ["busy", "lost local: the cable was pulled", "a finding", "a disturbance"]);
    }
}
