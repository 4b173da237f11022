//! Other runs that are under way on the machines of this one: each disturbs the samples of the other.

use std::collections::{BTreeMap, BTreeSet};

use wb_agent::{ActiveRuns, AgentSession, Controller, WorkerError};
use wb_model::WorkerName;
use wb_record::journal::OTHER_RUN;

use crate::RunError;
use crate::worker_pool::WorkerPool;

/// The other runs that were seen, by machine.
#[derive(Debug, Default)]
pub struct OtherRuns(BTreeSet<(WorkerName, AgentSession)>);

impl OtherRuns {
    /// Announces this run on all its machines; the others that are under way there, and a warning for each.
    ///
    /// # Errors
    /// When two of its machines are one: an agent finds what another one of this run has announced.
    pub(crate) async fn announce(crew: &WorkerPool) -> Result<(Self, Vec<String>), RunError> {
        let (mut runs, mut warnings) = (Self::default(), Vec::new());
        let mut ours: BTreeMap<AgentSession, WorkerName> = BTreeMap::new();
        for member in crew.workers.iter().chain(&crew.vm_hosts) {
            let name = member.worker.name();
            match member.worker.announce(Controller::current()).await {
                Ok(ActiveRuns { own, others }) => {
                    if let Some(other) = others.iter().find_map(|holder| ours.get(holder)) {
                        return Err(RunError::SameMachine { worker: name.clone(), other: other.clone() });
                    }
                    ours.insert(own, name.clone());
                    // Another agent of this process measures nothing.
                    let others = others.into_iter().filter(|other| other.controller != Controller::current());
                    warnings.extend(runs.add(others.map(|other| (name.clone(), other)).collect()));
                }
                // Reported when its environment is recorded.
                Err(WorkerError::Lost { .. }) => {}
                // Whether others measure is no condition for measuring.
                Err(error) => {
                    warnings.push(format!("other runs cannot know that this one measures on `{name}`: {error}"))
                }
            }
        }
        Ok((runs, warnings))
    }

    /// Adds what a sample saw; a warning for each that was not seen before.
    pub(crate) fn add(&mut self, seen: BTreeSet<(WorkerName, AgentSession)>) -> Vec<String> {
        let warning = |(worker, other): &(WorkerName, AgentSession)| {
            format!(
                "another run measures on `{worker}` at the same time, and each disturbs the samples of the other: {other}"
            )
        };
        let warnings = seen.difference(&self.0).map(warning).collect();
        self.0.extend(seen);
        warnings
    }
}

/// What is recorded of a sample during which another run was under way on a machine.
pub(crate) fn finding(other: &AgentSession) -> String {
    format!("{OTHER_RUN}{other}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_warned_about_once_on_each_machine() {
        let other = |pid| AgentSession {
            controller: Controller { user: "anna@desk".to_owned(), pid },
            agent: 7,
            since: jiff::Timestamp::UNIX_EPOCH,
        };
        let seen = |worker: &str, pid| BTreeSet::from([(WorkerName::new(worker).unwrap(), other(pid))]);
        let mut runs = OtherRuns::default();
        assert_eq!(
            runs.add(seen("a", 1)),
            ["another run measures on `a` at the same time, and each disturbs the samples of the other: anna@desk \
                 (process 1 there, its agent 7 here) since 1970-01-01T00:00:00Z"]
        );
        assert_eq!(runs.add(seen("a", 1)), [""; 0]);
        assert_eq!((runs.add(seen("b", 1)).len(), runs.add(seen("a", 2)).len()), (1, 1));
    }
}
