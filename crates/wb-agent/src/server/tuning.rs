//! What is changed for a group and put back at its end, or by the next agent where this one is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};

use wb_knobs::knobs::shield::{self, Shield};
use wb_knobs::tune::{Tuned, Wanted, apply, settable};
use wb_knobs::{Knob, KnobSet};
use wb_sys::undo::{Change, Holder, RevertError, Step, UndoError, Undone};
use wb_sys::{SysRoot, UndoLog};

use crate::protocol::Fault;
use crate::worker::{LeftBehind, PutBack, StillChanged};

use super::Agent;

/// Owner of the changes that agents make, in the undo log.
pub const RUN: &str = "run";

fn is_ours(change: &Change) -> bool {
    change.by == RUN
}

fn refused(error: &UndoError) -> Fault {
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
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Puts back what an agent that was killed has left changed, and reports it. What cannot be put back is named.
pub(super) fn restore(root: &SysRoot) -> LeftBehind {
    let changed = |error: &UndoError| StillChanged {
        what: still_changed(root),
        why: error.to_string(),
        is_held: matches!(error, UndoError::Held { .. }),
    };
    match UndoLog::changes(root) {
        Ok(changes) if changes.iter().any(is_ours) => {}
        // A run that was killed before its first change has announced it: opening the log withdraws that.
        Ok(_) if UndoLog::read_owners(root).is_ok_and(|owners| owners.iter().any(|owner| owner == RUN)) => {}
        Ok(_) => return LeftBehind::default(),
        Err(error) if matches!(refused(&error), Fault::NotRoot) => {
            return match UndoLog::read_owners(root) {
                // What somebody has applied on purpose is what the machine is like.
                Ok(owners) if !owners.iter().any(|owner| owner == RUN) => LeftBehind::default(),
                Ok(_) => LeftBehind { still_changed: Some(changes_of_root(root)), ..LeftBehind::default() },
                Err(error) => {
                    let fault =
                        format!("whether a run that was killed has left something changed is not known: {error}");
                    tell(&format!("warning: {fault}"));
                    LeftBehind { fault: Some(fault), ..LeftBehind::default() }
                }
            };
        }
        Err(error) => return LeftBehind { still_changed: Some(changed(&error)), ..LeftBehind::default() },
    }
    let (put_back, error) = match UndoLog::open(root, RUN) {
        // Of a run that ended meanwhile nothing is left.
        Err(UndoError::Held { .. }) if still_changed(root).is_empty() => return LeftBehind::default(),
        Err(error) => (Vec::new(), Some(error)),
        Ok(mut log) => parted(log.revert_where(is_ours)),
    };
    put_back.iter().for_each(|PutBack { what, how }| {
        tell(&format!("note: a run that was killed had changed {what}: {how}"));
    });
    LeftBehind { put_back, still_changed: error.as_ref().map(changed), ..LeftBehind::default() }
}

/// The changes of root's runs, for a user who may not read the log.
fn changes_of_root(root: &SysRoot) -> StillChanged {
    let (what, unnamed) =
        (Vec::new(), "settings that a run of root changed are still in effect, and only root can restore them");
    // Whom it names is a help; that it is changed is known without.
    let holder = UndoLog::last_holder(root).ok().flatten().filter(|holder| holder.what == RUN);
    let Some(holder) = holder else { return StillChanged { what, why: unnamed.to_owned(), is_held: false } };
    let is_held = !holder.has_ended;
    let why = match is_held {
        true => UndoError::Held { holder: Some(holder) }.to_string(),
        false => {
            let Holder { what, pid, since, .. } = holder;
            format!(
                "`weighbridge {what}` (process {pid}, since {since:.0}) was killed and left settings changed, which only \
                 root can put back"
            )
        }
    };
    StillChanged { what, why, is_held }
}

/// What runs have changed on a machine and not put back; nothing where the log cannot be read.
fn still_changed(root: &SysRoot) -> Vec<String> {
    let changes = UndoLog::changes(root).unwrap_or_default();
    changes.iter().filter(|change| is_ours(change)).map(|change| change.step.what()).collect()
}

/// What was put back, and why not all of it.
fn parted(reverted: Result<Vec<(Change, Undone)>, RevertError>) -> (Vec<PutBack>, Option<UndoError>) {
    let (undone, error) = match reverted {
        Ok(undone) => (undone, None),
        Err(mut error) => (std::mem::take(&mut error.undone), Some(error.into())),
    };
    (undone.into_iter().map(put_back).collect(), error)
}

fn put_back((change, how): (Change, Undone)) -> PutBack {
    PutBack { what: change.step.what(), how }
}

/// The knobs that cannot be set so, and why.
pub(super) fn unsettable(root: &SysRoot, knobs: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let refused = |(key, value): (&String, &String)| {
        Some((key.clone(), shield_conflict(key, value).or_else(|| Some(settable(root, key, value).err()?.0))?))
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
        tell(&format!("warning: some CPUs are shielded, and what is measured stays outside: {error}"));
    }
}

impl Agent {
    /// Sets knobs until the group is torn down.
    pub(super) async fn tune(
        &self,
        group: u32,
        knobs: &BTreeMap<String, String>,
        strict: bool,
    ) -> Result<Vec<Tuned>, Fault> {
        if let Some(why) = knobs.iter().find_map(|(key, value)| shield_conflict(key, value)) {
            return Err(Fault::Refused { why });
        }
        let wanted = knobs.iter().map(|(name, value)| Wanted::new(name, value.clone()));
        let knobs = wanted.collect::<Result<Vec<_>, _>>().map_err(|why| Fault::Refused { why })?;
        let set = KnobSet { name: RUN.to_owned(), summary: String::new(), knobs };
        let root = self.root.clone();
        let tuned = self.for_group(group, move |log| apply(&root, &set, log)).await?;
        match tuned.iter().find_map(|one| Some((one, one.outcome.reason()?))) {
            Some((one, reason)) if strict => {
                Err(Fault::Refused { why: format!("{} cannot be {}: {reason}", one.knob, one.wanted) })
            }
            _ => Ok(tuned),
        }
    }

    /// Makes one thing so until the group is torn down.
    pub(super) async fn change(&self, group: u32, step: Step, state: Option<String>) -> Result<bool, Fault> {
        self.for_group(group, move |log| log.change(step, state.as_deref().map(str::as_bytes))).await
    }

    /// Changes something for a group through the undo log, which is taken where it is not ours yet.
    async fn for_group<T: Send + 'static>(
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
        let changed = on_a_thread(move || {
            let mut log = log.map_or_else(|| UndoLog::open(&root, RUN), Ok)?;
            let before = numbers(&log);
            let result = change(&mut log);
            let new: BTreeSet<u32> = numbers(&log).difference(&before).copied().collect();
            Ok((still_needed(log), new, result))
        });
        let (log, new, result) = changed.await.map_err(|error: UndoError| refused(&error))?;
        *held = log;
        group.changed.borrow_mut().extend(new);
        result.map_err(|error| refused(&error))
    }

    /// Puts back what was changed under these numbers; what became of it, and why not all of it.
    pub(super) async fn put_back(held: &mut Option<UndoLog>, numbers: BTreeSet<u32>) -> (Vec<PutBack>, Option<String>) {
        let Some(mut log) = held.take_if(|_| !numbers.is_empty()) else { return (Vec::new(), None) };
        let (log, undone) = on_a_thread(move || {
            let undone = log.revert_where(|change| is_ours(change) && numbers.contains(&change.number));
            (still_needed(log), undone)
        })
        .await;
        *held = log;
        let (undone, error) = parted(undone);
        (undone, error.map(|error| error.to_string()))
    }
}

/// The numbers of the changes that are not undone.
fn numbers(log: &UndoLog) -> BTreeSet<u32> {
    log.open_changes().map(|change| change.number).collect()
}

/// The log while anything of ours is changed; others may change the machine again once nothing is.
fn still_needed(log: UndoLog) -> Option<UndoLog> {
    let is_needed = log.open_changes().any(is_ours);
    is_needed.then_some(log)
}

/// Runs what may take as long as a profile's command does on a thread of its own: the agent goes on answering.
async fn on_a_thread<T: Send + 'static>(change: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(change).await {
        Ok(result) => result,
        // It is never cancelled, so that it panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
