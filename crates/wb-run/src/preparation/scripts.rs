//! Runs setup scripts on workers concurrently, once per boot of each machine.

use std::path::Path;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use wb_model::{Nanos, Sha256, WorkerName};
use wb_profile::script::Script;
use wb_record::JournalEvent;
use wb_record::steps::{PreparationKind, PreparationStart, ScriptKind, ScriptStep, StepOutcome};

use super::{SetupEvent, SetupObserver, StepJournal, exclude_worker};
use crate::{RunError, WorkerPool};

/// Runs a script on all workers where it has not run in the current boot. Workers where it fails are removed from the
/// pool.
pub async fn set_up_workers(
    folder: &Path,
    script: &Script,
    limit: Nanos,
    pool: &mut WorkerPool,
    report: SetupObserver<'_>,
) -> Result<(), RunError> {
    StepJournal::open(folder)?.run_script(ScriptKind::WorkerSetup, script, limit, pool, report).await
}

impl StepJournal {
    pub(super) async fn run_script(
        &mut self,
        kind: ScriptKind,
        script: &Script,
        limit: Nanos,
        pool: &mut WorkerPool,
        report: SetupObserver<'_>,
    ) -> Result<(), RunError> {
        let sha256 = script.sha256();
        let is_due = |boot: &str, worker: &WorkerName| self.completed_boot(kind, worker, &sha256, boot).is_none();
        let due = pool.workers.iter().filter(|member| is_due(&member.facts.boot_id, member.worker.name()));
        let due: Vec<_> = due.map(|member| (member.worker.clone(), member.facts.boot_id.clone())).collect();
        if due.is_empty() {
            return Ok(());
        }
        self.write(JournalEvent::PreparationStarted(PreparationStart {
            step: match kind {
                ScriptKind::HostSetup => PreparationKind::HostSetup,
                ScriptKind::WorkerSetup => PreparationKind::WorkerSetup,
            },
            machines: due.iter().map(|(worker, _)| worker.name().clone()).collect(),
            name: Some(script.name()),
        }))?;
        let number = self.next_number(kind.name());
        let mut running: FuturesUnordered<_> = due
            .into_iter()
            .map(|(worker, boot)| async move {
                let output = script.run(&worker, limit).await;
                (worker.name().clone(), boot, output)
            })
            .collect();
        while let Some((worker, boot_id, output)) = running.next().await {
            let log = self.write_log(kind.name(), number, Some(&worker), &output.log)?;
            self.write(JournalEvent::ScriptRan(ScriptStep {
                script: kind,
                worker: worker.clone(),
                sha256: sha256.clone(),
                boot_id,
                outcome: StepOutcome::from_result(&output.result),
                seconds: output.elapsed.seconds(),
                log: log.clone(),
            }))?;
            match output.result {
                Ok(()) => report(SetupEvent::Progress(format!("`{worker}` is set up by {}", script.name()))),
                Err(error) => {
                    let help = format!("see its output in {}", self.run.path().join(log).display());
                    exclude_worker(pool, &worker, &format!("the {} script {error}", kind.name()), Some(help), report);
                }
            }
        }
        Ok(())
    }

    /// Returns the boot in which the last run of a script on a worker succeeded, if that counts: the current boot, or the
    /// previous one if the current one began with a requested reboot.
    pub(super) fn completed_boot(
        &self,
        kind: ScriptKind,
        worker: &WorkerName,
        sha256: &Sha256,
        boot: &str,
    ) -> Option<&str> {
        let latest = self.events().rev().find_map(|event| match event {
            JournalEvent::ScriptRan(ran) if ran.script == kind && ran.worker == *worker && ran.sha256 == *sha256 => {
                Some(ran)
            }
            _ => None,
        })?;
        let is_valid = latest.boot_id == boot || self.was_rebooted(worker, &latest.boot_id, boot);
        (latest.outcome.is_done() && is_valid).then_some(latest.boot_id.as_str())
    }

    /// Whether a requested reboot led from one boot to the other. If the end of a reboot was not recorded, it is
    /// assumed that it did.
    fn was_rebooted(&self, worker: &WorkerName, from: &str, to: &str) -> bool {
        let last = self.events().rev().find_map(|event| match event {
            JournalEvent::RebootEnded(ended) if ended.worker == *worker && ended.boot_id == from => {
                Some(ended.next_boot_id.as_deref() == Some(to))
            }
            JournalEvent::RebootStarted { worker: started, boot_id, .. } if started == worker && boot_id == from => {
                Some(from != to)
            }
            _ => None,
        });
        last == Some(true)
    }
}
