//! Reversible changes made for a group, and their recovery after a crash.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};

use wb_knobs::knobs::shield::{self, Shield};
use wb_knobs::tune::{KnobRefusal, KnobSetting, apply, check_settable};
use wb_knobs::{Knob, KnobSet};
use wb_sys::undo::{Change, LockHolder, RevertError, RevertOutcome, UndoError};
use wb_sys::{SysRoot, UndoLog};

use crate::protocol::{Fault, RecoveryReport, RevertedChange, TuneReport, UnrevertedChanges, call};

use super::{Agent, pending_cleanup};

/// Owner name of the agents' changes in the undo log.
pub const RUN: &str = "run";

fn is_ours(change: &Change) -> bool {
    change.owner == RUN
}

fn to_fault(error: &UndoError) -> Fault {
    // An unprivileged agent cannot create the undo log, and an existing one belongs to root.
    let needs_root = match error {
        UndoError::Io { source, .. } => source.kind() == ErrorKind::PermissionDenied,
        UndoError::Untrusted(_) => true,
        _ => false,
    };
    if needs_root && !rustix::process::geteuid().is_root() {
        Fault::NotRoot
    } else {
        Fault::Refused { why: error.to_string() }
    }
}

/// Prints a line to standard error; ignores errors, because nobody may be reading it any more.
fn print_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Reverts the changes that a killed agent left, and reports the outcome.
pub(super) fn restore(root: &SysRoot) -> RecoveryReport {
    let unreverted = |error: &UndoError| UnrevertedChanges {
        what: pending_changes(root),
        reason: error.to_string(),
        is_locked: matches!(error, UndoError::Locked { .. }),
    };
    match UndoLog::changes(root) {
        Ok(changes) if changes.iter().any(is_ours) => {}
        // A run killed before its first change has registered as an owner: opening the log clears that.
        Ok(_) if UndoLog::read_owners(root).is_ok_and(|owners| owners.iter().any(|owner| owner == RUN)) => {}
        Ok(_) => return RecoveryReport::default(),
        Err(error) if matches!(to_fault(&error), Fault::NotRoot) => {
            return match UndoLog::read_owners(root) {
                // Changes applied on purpose by other owners are the intended state of the machine.
                Ok(owners) if !owners.iter().any(|owner| owner == RUN) => RecoveryReport::default(),
                Ok(_) => RecoveryReport { unreverted: Some(changes_of_root(root)), ..RecoveryReport::default() },
                Err(error) => {
                    let fault =
                        format!("cannot determine whether a run that was killed left settings changed: {error}");
                    print_to_stderr(&format!("warning: {fault}"));
                    RecoveryReport { fault: Some(fault), ..RecoveryReport::default() }
                }
            };
        }
        Err(error) => return RecoveryReport { unreverted: Some(unreverted(&error)), ..RecoveryReport::default() },
    }
    let (reverted, error) = match UndoLog::open(root, RUN) {
        // The other run has ended meanwhile and reverted its changes.
        Err(UndoError::Locked { .. }) if pending_changes(root).is_empty() => return RecoveryReport::default(),
        Err(error) => (Vec::new(), Some(error)),
        Ok(mut log) => split_result(log.revert_where(is_ours)),
    };
    for RevertedChange { description, outcome } in &reverted {
        print_to_stderr(&format!("note: a run that was killed had changed {description}: {outcome}"));
    }
    RecoveryReport { reverted, unreverted: error.as_ref().map(unreverted), ..RecoveryReport::default() }
}

/// Runs the cleanup commands that killed agents of this user left, and reports the outcome.
pub(super) fn run_pending_cleanups(root: &SysRoot) {
    let (ran, failed) = pending_cleanup::run_stale(root, &std::env::temp_dir());
    for command in ran {
        print_to_stderr(&format!("note: ran the cleanup of a run that was killed: `{command}`"));
    }
    for failure in failed {
        print_to_stderr(&format!("warning: of a run that was killed: {failure}"));
    }
}

/// Describes the changes of runs by root, for an agent that may not read the log.
fn changes_of_root(root: &SysRoot) -> UnrevertedChanges {
    let (what, unnamed) =
        (Vec::new(), "settings that a run of root changed are still in effect, and only root can restore them");
    // Changes are assumed: only root can tell a holder that has changed nothing yet from one that has.
    let holder = UndoLog::last_holder(root).ok().flatten().filter(|holder| holder.subcommand == RUN);
    let Some(holder) = holder else { return UnrevertedChanges { what, reason: unnamed.to_owned(), is_locked: false } };
    let is_held = !holder.has_ended;
    let reason = if is_held {
        UndoError::Locked { holder: Some(holder) }.to_string()
    } else {
        let LockHolder { subcommand, pid, since, .. } = holder;
        format!(
            "`weighbridge {subcommand}` (process {pid}, since {since:.0}) was killed and left settings changed, which only \
                 root can revert"
        )
    };
    UnrevertedChanges { what, reason, is_locked: is_held }
}

/// Lists the changes of runs that are still in effect; empty if the log cannot be read.
fn pending_changes(root: &SysRoot) -> Vec<String> {
    let changes = UndoLog::changes(root).unwrap_or_default();
    changes.iter().filter(|change| is_ours(change)).map(|change| change.resource.description()).collect()
}

/// Splits the result of a revert into the outcomes and the error of those that failed, which stay in the log.
fn split_result(result: Result<Vec<(Change, RevertOutcome)>, RevertError>) -> (Vec<RevertedChange>, Option<UndoError>) {
    let (undone, error) = match result {
        Ok(undone) => (undone, None),
        Err(mut error) => (std::mem::take(&mut error.undone), Some(error.into())),
    };
    (undone.into_iter().map(reverted_change).collect(), error)
}

fn reverted_change((change, outcome): (Change, RevertOutcome)) -> RevertedChange {
    RevertedChange { description: change.resource.description(), outcome }
}

/// Returns the settings that cannot be made, with the reasons.
pub(super) fn check_knobs(root: &SysRoot, knobs: &[KnobSetting]) -> Vec<(KnobSetting, KnobRefusal)> {
    let check = |setting: &KnobSetting| {
        let conflict = shield_conflict(setting).map(KnobRefusal::from);
        Some((setting.clone(), conflict.or_else(|| check_settable(root, setting).err())?))
    };
    knobs.iter().filter_map(check).collect()
}

/// Reason why a knob cannot be set during a run: a shield that is made after its agent has started excludes the
/// workload.
fn shield_conflict(setting: &KnobSetting) -> Option<String> {
    // With its only target, `shield@system`, or without one.
    let KnobSetting { knob, target: _, value } = setting;
    let shield = Shield.name();
    (knob == shield && value != "none").then(|| {
        format!(
            "the workload would be excluded from the shielded CPUs: run `weighbridge tune apply {shield}={value}` first, \
             and the run measures on them"
        )
    })
}

/// Moves the agent into the CPU shield of this machine, if it has one, so that its children run on the shielded CPUs.
pub(super) fn enter_shield(root: &SysRoot) {
    if let Err(error) = shield::enter(root) {
        print_to_stderr(&format!(
            "warning: cannot enter the CPU shield, so workloads run outside the shielded CPUs: {error}"
        ));
    }
}

impl Agent {
    /// Sets knobs until the group is torn down.
    pub(super) async fn tune(&self, call: &call::Tune) -> Result<TuneReport, Fault> {
        let call::Tune { group, knobs, strict } = call;
        let unknown = knobs.iter().find_map(|setting| setting.check_known().err());
        if let Some(reason) = unknown.or_else(|| knobs.iter().find_map(shield_conflict)) {
            return Err(Fault::Refused { why: reason });
        }
        let set = KnobSet { name: RUN.to_owned(), summary: String::new(), knobs: knobs.clone() };
        let root = self.root.clone();
        let tuned = self.with_undo_log(*group, move |log| apply(&root, &set, log)).await?;
        match tuned.iter().find_map(|knob| Some((knob, knob.outcome.reason()?))) {
            Some((knob, reason)) if *strict => {
                Err(Fault::Refused { why: format!("cannot set {} to {}: {reason}", knob.knob, knob.requested) })
            }
            _ => Ok(TuneReport(tuned)),
        }
    }

    /// Makes a reversible change, which is reverted when the group is torn down.
    pub(super) async fn apply_change(&self, call: &call::ApplyChange) -> Result<bool, Fault> {
        let call::ApplyChange { group, resource, state } = call;
        let (resource, state) = (resource.as_ref().clone(), state.clone());
        self.with_undo_log(*group, move |log| log.change(resource, state.as_deref().map(str::as_bytes))).await
    }

    /// Makes a change for a group with the undo log, which is opened if it is not open yet.
    async fn with_undo_log<T: Send + 'static>(
        &self,
        group: u32,
        change: impl FnOnce(&mut UndoLog) -> Result<T, UndoError> + Send + 'static,
    ) -> Result<T, Fault> {
        let mut slot = self.log.lock().await;
        // Another call may have torn the group down while this one waited for the lock.
        let group = self.group(group)?;
        // Measuring beside another run is only warned of; changing the machine beside it is refused.
        if let (None, Some(other)) = (slot.as_ref(), self.foreign_run()) {
            let reason = format!("cannot change this machine while another run measures on it: {other}");
            return Err(Fault::Refused { why: reason });
        }
        let (log, root) = (slot.take(), self.root.clone());
        let change_task = run_blocking(move || {
            let mut log = log.map_or_else(|| UndoLog::open(&root, RUN), Ok)?;
            let before = open_change_numbers(&log);
            let result = change(&mut log);
            let new: BTreeSet<u32> = open_change_numbers(&log).difference(&before).copied().collect();
            Ok((keep_if_needed(log), new, result))
        });
        let (log, new, result) = change_task.await.map_err(|error: UndoError| to_fault(&error))?;
        *slot = log;
        group.changes.borrow_mut().extend(new);
        result.map_err(|error| to_fault(&error))
    }

    /// Reverts the changes with these numbers; returns the outcomes and the error of those that failed.
    pub(super) async fn revert_changes(
        slot: &mut Option<UndoLog>,
        numbers: BTreeSet<u32>,
    ) -> (Vec<RevertedChange>, Option<String>) {
        let Some(mut log) = slot.take_if(|_| !numbers.is_empty()) else { return (Vec::new(), None) };
        let (log, undone) = run_blocking(move || {
            let undone = log.revert_where(|change| is_ours(change) && numbers.contains(&change.number));
            (keep_if_needed(log), undone)
        })
        .await;
        *slot = log;
        let (undone, error) = split_result(undone);
        (undone, error.map(|error| error.to_string()))
    }
}

/// Returns the numbers of the changes that are not reverted.
fn open_change_numbers(log: &UndoLog) -> BTreeSet<u32> {
    log.open_changes().map(|change| change.number).collect()
}

/// Keeps the log open while it has changes of this agent; closing it lets others change the machine.
fn keep_if_needed(log: UndoLog) -> Option<UndoLog> {
    let is_needed = log.open_changes().any(is_ours);
    is_needed.then_some(log)
}

/// Runs a blocking change, which may take as long as a profile's command, on a thread of its own, so that the agent
/// stays responsive.
pub(super) async fn run_blocking<T: Send + 'static>(change: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(change).await {
        Ok(result) => result,
        // The task is never cancelled, so it panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // `shield@system=…` was made during the run, and excluded the workload.
    #[test]
    fn no_shield_is_made_during_a_run() {
        for key in ["shield", "shield@system"] {
            let setting = |value: &str| KnobSetting::new(key, value.to_owned()).expect("a known knob");
            assert!(
                shield_conflict(&setting("1")).is_some_and(|reason| reason.contains("tune apply shield=1")),
                "{key}"
            );
            assert_eq!(shield_conflict(&setting("none")), None, "{key}");
        }
    }
}
