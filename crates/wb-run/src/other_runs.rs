//! Other runs that are active on the machines of this run; they disturb each other's samples.

use std::collections::{BTreeMap, BTreeSet};

use wb_agent::{ActiveRuns, AgentSession, Controller, WorkerError};
use wb_model::WorkerName;
use wb_results::finding::OTHER_RUN;

use crate::RunError;
use crate::worker_pool::WorkerPool;

/// Other runs observed so far, by machine.
#[derive(Debug, Default)]
pub struct OtherRuns(BTreeSet<(WorkerName, AgentSession)>);

impl OtherRuns {
    /// Announces this run on all its machines; returns the other runs that are active there, with a warning for each.
    /// Fails if two of its workers are on one machine: an agent then finds the announcement of another agent of this
    /// run.
    pub(crate) async fn announce(pool: &WorkerPool) -> Result<(Self, Vec<String>), RunError> {
        let (mut runs, mut warnings) = (Self::default(), Vec::new());
        let mut own_announcements: BTreeMap<AgentSession, WorkerName> = BTreeMap::new();
        for member in pool.workers.iter().chain(&pool.vm_hosts) {
            let name = member.worker.name();
            match member.worker.announce(Controller::current()).await {
                Ok(ActiveRuns { own, others }) => {
                    if let Some(other) = others.iter().find_map(|holder| own_announcements.get(holder)) {
                        return Err(RunError::SameMachine { worker: name.clone(), other: other.clone() });
                    }
                    own_announcements.insert(own, name.clone());
                    // Other agents of this process run no workload.
                    let others = others.into_iter().filter(|other| other.controller != Controller::current());
                    warnings.extend(runs.add(others.map(|other| (name.clone(), other)).collect()));
                }
                // The loss is reported when the environment of the worker is recorded.
                Err(WorkerError::Lost { .. }) => {}
                // Announcing is not a precondition of measuring.
                Err(error) => warnings.push(format!("cannot announce this run to other runs on `{name}`: {error}")),
            }
        }
        Ok((runs, warnings))
    }

    /// Adds the runs observed during a sample; returns a warning for each that is new.
    pub(crate) fn add(&mut self, observed: BTreeSet<(WorkerName, AgentSession)>) -> Vec<String> {
        let warning = |(worker, other): &(WorkerName, AgentSession)| {
            format!(
                "another run measures on `{worker}` at the same time, and they disturb each other's samples: {other}"
            )
        };
        let warnings = observed.difference(&self.0).map(warning).collect();
        self.0.extend(observed);
        warnings
    }
}

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
            owner: Some("anna".to_owned()),
            since: jiff::Timestamp::UNIX_EPOCH,
        };
        let observed = |worker: &str, pid| BTreeSet::from([(WorkerName::new(worker).unwrap(), other(pid))]);
        let mut runs = OtherRuns::default();
        assert_eq!(
            runs.add(observed("a", 1)),
            ["another run measures on `a` at the same time, and they disturb each other's samples: user anna \
                 (agent 7 here, for process 1 of anna@desk) since 1970-01-01T00:00:00Z"]
        );
        assert_eq!(runs.add(observed("a", 1)), [""; 0]);
        assert_eq!((runs.add(observed("b", 1)).len(), runs.add(observed("a", 2)).len()), (1, 1));
    }
}
