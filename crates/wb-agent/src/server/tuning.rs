//! What is changed for a group and put back at its end, or by the next agent where this one is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};

use wb_knobs::knobs::shield::{self, Shield};
use wb_knobs::tune::{KnobResult, KnobSetting, apply, check_settable};
use wb_knobs::{Knob, KnobSet};
use wb_sys::undo::{Change, LockHolder, RevertError, RevertOutcome, Step, UndoError};
use wb_sys::{SysRoot, UndoLog};

use crate::protocol::Fault;
use crate::worker::{RecoveryReport, RestoredChange, UnrevertedChanges};

use super::Agent;

/// Owner of the changes that agents make, in the undo log.
pub const RUN: &str = "run";

fn is_ours(change: &Change) -> bool {
    change.owner == RUN
}

fn to_fault(error: &UndoError) -> Fault {
    // A user has no log of a machine: it cannot be made, and one that is there is root's.
    let is_roots = match error {
        UndoError::Io { source, .. } => source.kind() == ErrorKind::PermissionDenied,
        UndoError::Untrusted { .. } => true,
        _ => false,
    };
    match is_roots && !rustix::process::geteuid().is_root() {
        true => Fault::NotRoot,
        false => Fault::Refused { why: error.to_string() },
    }
}

/// On standard error; where nobody reads it any more, that is no reason to stop.
fn print_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Puts back what an agent that was killed has left changed, and reports it. What cannot be put back is named.
pub(super) fn restore(root: &SysRoot) -> RecoveryReport {
    let changed = |error: &UndoError| UnrevertedChanges {
        what: pending_changes(root),
        why: error.to_string(),
        is_locked: matches!(error, UndoError::Locked { .. }),
    };
    match UndoLog::changes(root) {
        Ok(changes) if changes.iter().any(is_ours) => {}
        // A run that was killed before its first change has announced it: opening the log withdraws that.
        Ok(_) if UndoLog::read_owners(root).is_ok_and(|owners| owners.iter().any(|owner| owner == RUN)) => {}
        Ok(_) => return RecoveryReport::default(),
        Err(error) if matches!(to_fault(&error), Fault::NotRoot) => {
            return match UndoLog::read_owners(root) {
                // What somebody has applied on purpose is what the machine is like.
                Ok(owners) if !owners.iter().any(|owner| owner == RUN) => RecoveryReport::default(),
                Ok(_) => RecoveryReport { unreverted: Some(changes_of_root(root)), ..RecoveryReport::default() },
                Err(error) => {
                    let fault =
                        format!("whether a run that was killed has left something changed is not known: {error}");
                    print_to_stderr(&format!("warning: {fault}"));
                    RecoveryReport { fault: Some(fault), ..RecoveryReport::default() }
                }
            };
        }
        Err(error) => return RecoveryReport { unreverted: Some(changed(&error)), ..RecoveryReport::default() },
    }
    let (put_back, error) = match UndoLog::open(root, RUN) {
        // Of a run that ended meanwhile nothing is left.
        Err(UndoError::Locked { .. }) if pending_changes(root).is_empty() => return RecoveryReport::default(),
        Err(error) => (Vec::new(), Some(error)),
        Ok(mut log) => split_result(log.revert_where(is_ours)),
    };
    put_back.iter().for_each(|RestoredChange { what, outcome: how }| {
        print_to_stderr(&format!("note: a run that was killed had changed {what}: {how}"));
    });
    RecoveryReport { reverted: put_back, unreverted: error.as_ref().map(changed), ..RecoveryReport::default() }
}

/// The changes of root's runs, for a user who may not read the log.
fn changes_of_root(root: &SysRoot) -> UnrevertedChanges {
    let (what, unnamed) =
        (Vec::new(), "settings that a run of root changed are still in effect, and only root can restore them");
    // Whom it names is a help; that it is changed is known without.
    let holder = UndoLog::last_holder(root).ok().flatten().filter(|holder| holder.what == RUN);
    let Some(holder) = holder else { return UnrevertedChanges { what, why: unnamed.to_owned(), is_locked: false } };
    let is_held = !holder.has_ended;
    let why = match is_held {
        true => UndoError::Locked { holder: Some(holder) }.to_string(),
        false => {
            let LockHolder { what, pid, since, .. } = holder;
            format!(
                "`weighbridge {what}` (process {pid}, since {since:.0}) was killed and left settings changed, which only \
                 root can put back"
            )
        }
    };
    UnrevertedChanges { what, why, is_locked: is_held }
}

/// What runs have changed on a machine and not put back; nothing where the log cannot be read.
fn pending_changes(root: &SysRoot) -> Vec<String> {
    let changes = UndoLog::changes(root).unwrap_or_default();
    changes.iter().filter(|change| is_ours(change)).map(|change| change.step.description()).collect()
}

/// What was put back, and why not all of it.
fn split_result(
    reverted: Result<Vec<(Change, RevertOutcome)>, RevertError>,
) -> (Vec<RestoredChange>, Option<UndoError>) {
    let (undone, error) = match reverted {
        Ok(undone) => (undone, None),
        Err(mut error) => (std::mem::take(&mut error.undone), Some(error.into())),
    };
    (undone.into_iter().map(restored_change).collect(), error)
}

fn restored_change((change, how): (Change, RevertOutcome)) -> RestoredChange {
    RestoredChange { what: change.step.description(), outcome: how }
}

/// The knobs that cannot be set so, and why.
pub(super) fn check_knobs(root: &SysRoot, knobs: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let refused = |(key, value): (&String, &String)| {
        Some((key.clone(), shield_conflict(key, value).or_else(|| Some(check_settable(root, key, value).err()?.0))?))
    };
    knobs.iter().filter_map(refused).collect()
}

/// Reason why a knob cannot be set during a run: a shield that is made after its agent has started excludes the workload.
fn shield_conflict(key: &str, value: &str) -> Option<String> {
    let shield = Shield.name();
    (key == shield && value != "none").then(|| {
        format!(
            "the workload would be excluded from the shielded CPUs: run `weighbridge tune apply {shield}={value}` first, \
             and the run measures on them"
        )
    })
}

/// Enters the shield of this machine, if it has one: nothing else may run on its CPUs, and whatever is measured is started
/// from here.
pub(super) fn enter_shield(root: &SysRoot) {
    if let Err(error) = shield::enter(root) {
        print_to_stderr(&format!("warning: some CPUs are shielded, and what is measured stays outside: {error}"));
    }
}

impl Agent {
    /// Sets knobs until the group is torn down.
    pub(super) async fn tune(
        &self,
        group: u32,
        knobs: &BTreeMap<String, String>,
        strict: bool,
    ) -> Result<Vec<KnobResult>, Fault> {
        if let Some(why) = knobs.iter().find_map(|(key, value)| shield_conflict(key, value)) {
            return Err(Fault::Refused { why });
        }
        let wanted = knobs.iter().map(|(name, value)| KnobSetting::new(name, value.clone()));
        let knobs = wanted.collect::<Result<Vec<_>, _>>().map_err(|why| Fault::Refused { why })?;
        let set = KnobSet { name: RUN.to_owned(), summary: String::new(), knobs };
        let root = self.root.clone();
        let tuned = self.with_undo_log(group, move |log| apply(&root, &set, log)).await?;
        match tuned.iter().find_map(|one| Some((one, one.outcome.reason()?))) {
            Some((one, reason)) if strict => {
                Err(Fault::Refused { why: format!("{} cannot be {}: {reason}", one.knob, one.requested) })
            }
            _ => Ok(tuned),
        }
    }

    /// Makes one thing so until the group is torn down.
    pub(super) async fn change(&self, group: u32, step: Step, state: Option<String>) -> Result<bool, Fault> {
        self.with_undo_log(group, move |log| log.change(step, state.as_deref().map(str::as_bytes))).await
    }

    /// Changes something for a group through the undo log, which is taken where it is not ours yet.
    async fn with_undo_log<T: Send + 'static>(
        &self,
        group: u32,
        change: impl FnOnce(&mut UndoLog) -> Result<T, UndoError> + Send + 'static,
    ) -> Result<T, Fault> {
        let mut held = self.log.lock().await;
        // Another call may have torn it down while this one waited.
        let group = self.group(group)?;
        if let (None, Some(other)) = (held.as_ref(), self.foreign_run()) {
            let why = format!("cannot change this machine while another run measures on it: {other}");
            return Err(Fault::Refused { why });
        }
        let (log, root) = (held.take(), self.root.clone());
        let changed = run_blocking(move || {
            let mut log = log.map_or_else(|| UndoLog::open(&root, RUN), Ok)?;
            let before = open_change_numbers(&log);
            let result = change(&mut log);
            let new: BTreeSet<u32> = open_change_numbers(&log).difference(&before).copied().collect();
            Ok((keep_if_needed(log), new, result))
        });
        let (log, new, result) = changed.await.map_err(|error: UndoError| to_fault(&error))?;
        *held = log;
        group.changes.borrow_mut().extend(new);
        result.map_err(|error| to_fault(&error))
    }

    /// Puts back what was changed under these numbers; what became of it, and why not all of it.
    pub(super) async fn put_back(
        held: &mut Option<UndoLog>,
        numbers: BTreeSet<u32>,
    ) -> (Vec<RestoredChange>, Option<String>) {
        let Some(mut log) = held.take_if(|_| !numbers.is_empty()) else { return (Vec::new(), None) };
        let (log, undone) = run_blocking(move || {
            let undone = log.revert_where(|change| is_ours(change) && numbers.contains(&change.number));
            (keep_if_needed(log), undone)
        })
        .await;
        *held = log;
        let (undone, error) = split_result(undone);
        (undone, error.map(|error| error.to_string()))
    }
}

/// The numbers of the changes that are not undone.
fn open_change_numbers(log: &UndoLog) -> BTreeSet<u32> {
    log.open_changes().map(|change| change.number).collect()
}

/// The log while anything of ours is changed; others may change the machine again once nothing is.
fn keep_if_needed(log: UndoLog) -> Option<UndoLog> {
    let is_needed = log.open_changes().any(is_ours);
    is_needed.then_some(log)
}

/// Runs what may take as long as a profile's command does on a thread of its own: the agent goes on answering.
async fn run_blocking<T: Send + 'static>(change: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(change).await {
        Ok(result) => result,
        // It is never cancelled, so that it panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
