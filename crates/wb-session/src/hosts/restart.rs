//! Restarts the agents of hosts whose previous agent left something changed.

use wb_agent::{UnrevertedChanges, Worker};
use wb_fleet::connect;
use wb_model::WorkerName;

use super::ConnectedHosts;
use crate::error::SessionError;
use crate::worker_program::{read_worker_program, worker_program};

impl ConnectedHosts {
    /// Replaces the agent of a host that could not be reverted; the new one reverts what is still changed there. If
    /// something stays changed, fails and excludes the host.
    pub(crate) async fn replace_agent(&mut self, name: &WorkerName) -> Result<(), SessionError> {
        let Some(index) = self.pool.workers.iter().position(|member| member.worker.name() == name) else {
            return Ok(());
        };
        let old = self.pool.workers[index].worker.clone();
        let changed = old.pending_changes();
        // It may have exited already, which is why it is replaced.
        let _ = old.close().await;
        match self.start_agent(name, changed).await {
            Ok(worker) => {
                self.pool.workers[index].worker = worker;
                Ok(())
            }
            Err(still) => {
                self.pool.remove(name, still.to_string());
                Err(SessionError::StillChanged { host: name.clone(), still })
            }
        }
    }

    /// Starts an agent on a host; the agent reverts what its predecessor left changed, which is reported. Fails with
    /// what is still changed: all of `changed` if no agent can be started.
    pub(super) async fn start_agent(
        &self,
        name: &WorkerName,
        changed: Vec<String>,
    ) -> Result<Worker, UnrevertedChanges> {
        let cannot_start = |error: SessionError| UnrevertedChanges {
            what: changed.clone(),
            reason: format!("its agent is unreachable, and a new one cannot be started: {error}"),
            is_locked: false,
        };
        let host = self.remotes.iter().find(|host| host.name == *name);
        let start = async || {
            Ok(match host {
                None => Worker::local_named(name.clone(), &worker_program()?).await?,
                Some(host) => connect(host, &read_worker_program()?, &self.options).await?.worker,
            })
        };
        let worker = start().await.map_err(cannot_start)?;
        let left = worker.recovery_report().await.map_err(|error| cannot_start(error.into()))?;
        // On this machine the agent reports that.
        let still = if host.is_some() { self.report_leftovers(name, left) } else { left.unreverted };
        still.map_or(Ok(worker), Err)
    }
}
