//! Agents that are started anew on hosts where the one before has left something changed.

use wb_agent::{StillChanged, Worker};
use wb_fleet::connect;
use wb_model::WorkerName;

use super::ready::report_left_behind;
use super::{Hosts, program};
use crate::commands::this_program;
use crate::error::Error;

impl Hosts {
    /// Replaces the agent of a host that could not be brought back; the new one puts back what is still changed there.
    ///
    /// # Errors
    /// When something stays changed: the host is left out then.
    pub(crate) async fn replace_agent(&mut self, name: &WorkerName) -> Result<(), Error> {
        let Some(at) = self.crew.members.iter().position(|member| member.worker.name() == name) else { return Ok(()) };
        let old = self.crew.members[at].worker.clone();
        let changed = old.changed();
        // It may have ended before: that is why there is to be another one.
        let _ = old.close().await;
        match self.start_agent(name, changed).await {
            Ok(worker) => {
                self.crew.members[at].worker = worker;
                Ok(())
            }
            Err(still) => {
                self.crew.leave(name, still.to_string());
                Err(Error::StillChanged { host: name.clone(), still })
            }
        }
    }

    /// Starts an agent on a host, which puts back what the one before has left changed, and reports that.
    ///
    /// # Errors
    /// What is still changed: all of `changed` where no agent can be started.
    pub(super) async fn start_agent(&self, name: &WorkerName, changed: Vec<String>) -> Result<Worker, StillChanged> {
        let unknown = |error: Error| StillChanged {
            what: changed.clone(),
            why: format!("its agent cannot be reached, and another one cannot be started: {error}"),
            is_held: false,
        };
        let host = self.others.iter().find(|host| host.name == *name);
        let start = async || {
            Ok(match host {
                None => Worker::here(name.clone(), &this_program()?).await?,
                Some(host) => connect(host, &program()?, &self.options).await?.worker,
            })
        };
        let worker = start().await.map_err(unknown)?;
        let left = worker.left_behind().await.map_err(|error| unknown(error.into()))?;
        // Of this machine its agent reports that.
        if host.is_some() {
            report_left_behind(name, &left);
        }
        left.still_changed.map_or(Ok(worker), Err)
    }
}
