//! Scripts run on workers, all at the same time, each once in a boot of its machine.

use std::path::Path;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use wb_model::{Nanos, Sha256, WorkerName};
use wb_profile::script::Script;
use wb_record::JournalEvent;
use wb_record::steps::{ScriptKind, ScriptStep, StepOutcome};

use super::{SetupEvent, SetupObserver, StepJournal, exclude_worker};
use crate::{RunError, WorkerPool};

/// Runs a script on all workers where it has not run in the boot that they are in. Those where it fails leave the crew.
///
/// # Errors
/// When nothing can be recorded.
pub async fn set_up_workers(
    folder: &Path,
    script: &Script,
    limit: Nanos,
    crew: &mut WorkerPool,
    tell: SetupObserver<'_>,
) -> Result<(), RunError> {
    StepJournal::open(folder)?.run_script(ScriptKind::WorkerSetup, script, limit, crew, tell).await
}

impl StepJournal {
    /// Runs a script wherever it is due.
    pub(super) async fn run_script(
        &mut self,
        kind: ScriptKind,
        script: &Script,
        limit: Nanos,
        crew: &mut WorkerPool,
        tell: SetupObserver<'_>,
    ) -> Result<(), RunError> {
        let sha256 = script.sha256();
        let due = |boot: &str, worker: &WorkerName| self.completed_boot(kind, worker, &sha256, boot).is_none();
        let due = crew.workers.iter().filter(|member| due(&member.facts.boot_id, member.worker.name()));
        let due: Vec<_> = due.map(|member| (member.worker.clone(), member.facts.boot_id.clone())).collect();
        let number = self.next_number(kind.name());
        let mut running: FuturesUnordered<_> = due
            .into_iter()
            .map(|(worker, boot)| async move {
                let ran = script.run(&worker, limit).await;
                (worker.name().clone(), boot, ran)
            })
            .collect();
        while let Some((worker, boot_id, ran)) = running.next().await {
            let log = self.write_log(kind.name(), number, Some(&worker), &ran.log)?;
            self.write(JournalEvent::ScriptRan(ScriptStep {
                script: kind,
                worker: worker.clone(),
                sha256: sha256.clone(),
                boot_id,
                outcome: StepOutcome::of(&ran.result),
                seconds: ran.elapsed.seconds(),
                log: log.clone(),
            }))?;
            match ran.result {
                Ok(()) => tell(SetupEvent::Note(format!("`{worker}` is set up by {}", script.name()))),
                Err(error) => {
                    let help = format!("all that it said is in {}", self.run.path().join(log).display());
                    exclude_worker(crew, &worker, &format!("the {} script {error}", kind.name()), Some(help), tell);
                }
            }
        }
        Ok(())
    }

    /// The boot in which a script ran on a worker, where that still counts: it is the boot that the worker is in, or the one
    /// that ended by the reboot that brought it there.
    pub(super) fn completed_boot(
        &self,
        kind: ScriptKind,
        worker: &WorkerName,
        sha256: &Sha256,
        boot: &str,
    ) -> Option<&str> {
        let ran = self.events().rev().find_map(|event| match event {
            JournalEvent::ScriptRan(ran) if ran.script == kind && ran.worker == *worker && ran.sha256 == *sha256 => {
                Some(ran)
            }
            _ => None,
        })?;
        let counts = ran.boot_id == boot || self.was_rebooted(worker, &ran.boot_id, boot);
        (ran.outcome.is_done() && counts).then_some(ran.boot_id.as_str())
    }

    /// Whether a reboot that was asked for led from one boot to another. One whose end nobody has seen may have.
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
