//! What is changed for a group and put back at its end, or by the next agent where this one is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};

use wb_knobs::KnobSet;
use wb_knobs::tune::{Tuned, Wanted, apply, settable};
use wb_sys::undo::{Change, RevertError, Step, UndoError, Undone};
use wb_sys::{SysRoot, UndoLog};

use crate::protocol::Fault;
use crate::worker::{LeftBehind, PutBack, StillChanged};

use super::Agent;

/// For whom the undo log has what agents change.
const BY: &str = "run";

fn is_ours(change: &Change) -> bool {
    change.by == BY
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
        Ok(_) => return LeftBehind::default(),
        Err(error) if matches!(refused(&error), Fault::NotRoot) => {
            let fault = format!("whether a run that was killed has left something changed is not known: {error}");
            tell(&format!("warning: {fault}"));
            return LeftBehind { fault: Some(fault), ..LeftBehind::default() };
        }
        Err(error) => return LeftBehind { still_changed: Some(changed(&error)), ..LeftBehind::default() },
    }
    let (put_back, error) = match UndoLog::open(root, BY) {
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
    let refused = |(key, value): (&String, &String)| Some((key.clone(), settable(root, key, value).err()?.0));
    knobs.iter().filter_map(refused).collect()
}

impl Agent {
    /// Sets knobs until the group is torn down.
    pub(super) fn tune(&self, group: u32, knobs: &BTreeMap<String, String>, strict: bool) -> Result<Vec<Tuned>, Fault> {
        let wanted = knobs.iter().map(|(name, value)| Wanted::new(name, value.clone()));
        let knobs = wanted.collect::<Result<Vec<_>, _>>().map_err(|why| Fault::Refused { why })?;
        let set = KnobSet { name: BY.to_owned(), summary: String::new(), knobs };
        let tuned = self.for_group(group, |log| apply(&self.root, &set, log))?;
        match tuned.iter().find_map(|one| Some((one, one.outcome.reason()?))) {
            Some((one, reason)) if strict => {
                Err(Fault::Refused { why: format!("{} cannot be {}: {reason}", one.knob, one.wanted) })
            }
            _ => Ok(tuned),
        }
    }

    /// Makes one thing so until the group is torn down.
    pub(super) fn change(&self, group: u32, step: Step, state: Option<&str>) -> Result<bool, Fault> {
        self.for_group(group, |log| log.change(step, state.map(str::as_bytes)))
    }

    /// Changes something for a group through the undo log, which is taken where it is not ours yet.
    fn for_group<T>(&self, group: u32, change: impl FnOnce(&mut UndoLog) -> Result<T, UndoError>) -> Result<T, Fault> {
        let group = self.group(group)?;
        let mut held = self.log.borrow_mut();
        let log = match held.as_mut() {
            Some(log) => log,
            None => held.insert(UndoLog::open(&self.root, BY).map_err(|error| refused(&error))?),
        };
        let numbers = |log: &UndoLog| log.open_changes().map(|change| change.number).collect::<BTreeSet<_>>();
        let before = numbers(log);
        let result = change(log);
        group.changed.borrow_mut().extend(numbers(log).difference(&before));
        Self::let_go(&mut held);
        result.map_err(|error| refused(&error))
    }

    /// Puts back what was changed under these numbers; what became of it, and why not all of it.
    pub(super) fn put_back(&self, numbers: &BTreeSet<u32>) -> (Vec<PutBack>, Option<String>) {
        let mut held = self.log.borrow_mut();
        let Some(log) = held.as_mut().filter(|_| !numbers.is_empty()) else { return (Vec::new(), None) };
        let undone = log.revert_where(|change| is_ours(change) && numbers.contains(&change.number));
        Self::let_go(&mut held);
        let (undone, error) = parted(undone);
        (undone, error.map(|error| error.to_string()))
    }

    /// Others may change the machine again once nothing of ours is changed.
    fn let_go(held: &mut Option<UndoLog>) {
        if held.as_ref().is_some_and(|log| !log.open_changes().any(is_ours)) {
            *held = None;
        }
    }
}
