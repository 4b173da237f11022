//! Agents that are started anew on hosts where the one before has left something changed.

use wb_agent::{UnrevertedChanges, Worker};
use wb_fleet::connect;
use wb_model::WorkerName;

use super::preparation::report_left_behind;
use super::{ConnectedHosts, read_program};
use crate::commands::current_program;
use crate::error::Error;

impl ConnectedHosts {
    /// Replaces the agent of a host that could not be brought back; the new one puts back what is still changed there.
    ///
    /// # Errors
    /// When something stays changed: the host is left out then.
    pub(crate) async fn replace_agent(&mut self, name: &WorkerName) -> Result<(), Error> {
        let Some(at) = self.pool.workers.iter().position(|member| member.worker.name() == name) else { return Ok(()) };
        let old = self.pool.workers[at].worker.clone();
        let changed = old.pending_changes();
        // It may have ended before: that is why there is to be another one.
        let _ = old.close().await;
        match self.start_agent(name, changed).await {
            Ok(worker) => {
                self.pool.workers[at].worker = worker;
                Ok(())
            }
            Err(still) => {
                self.pool.remove(name, still.to_string());
                Err(Error::StillChanged { host: name.clone(), still })
            }
        }
    }

    /// Starts an agent on a host, which puts back what the one before has left changed, and reports that.
    ///
    /// # Errors
    /// What is still changed: all of `changed` where no agent can be started.
    pub(super) async fn start_agent(
        &self,
        name: &WorkerName,
        changed: Vec<String>,
    ) -> Result<Worker, UnrevertedChanges> {
        let unknown = |error: Error| UnrevertedChanges {
            what: changed.clone(),
            why: format!("its agent cannot be reached, and another one cannot be started: {error}"),
            is_locked: false,
        };
        let host = self.remotes.iter().find(|host| host.name == *name);
        let start = async || {
            Ok(match host {
                None => Worker::local_named(name.clone(), &current_program()?).await?,
                Some(host) => connect(host, &read_program()?, &self.options).await?.worker,
            })
        };
        let worker = start().await.map_err(unknown)?;
        let left = worker.recovery_report().await.map_err(|error| unknown(error.into()))?;
        // Of this machine its agent reports that.
        if host.is_some() {
            report_left_behind(name, &left);
        }
        left.unreverted.map_or(Ok(worker), Err)
    }
}
