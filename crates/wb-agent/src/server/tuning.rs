//! Knobs that are set for a group and put back at its end, or by the next agent where this one is killed.

use std::collections::BTreeMap;

use wb_knobs::KnobSet;
use wb_knobs::tune::{Tuned, Wanted, apply};
use wb_sys::undo::{Change, UndoError};
use wb_sys::{SysRoot, UndoLog};

use crate::protocol::Fault;

use super::Agent;

/// For whom the undo log has what agents change.
const BY: &str = "run";

fn is_ours(change: &Change) -> bool {
    change.by == BY
}

fn refused(error: &UndoError) -> Fault {
    Fault::Refused { why: error.to_string() }
}

/// Puts back what an agent that was killed has left changed, and says so. What cannot be is left to the next one.
pub(super) fn restore(root: &SysRoot) {
    if !UndoLog::changes(root).is_ok_and(|changes| changes.iter().any(is_ours)) {
        return;
    }
    match UndoLog::open(root, BY).and_then(|mut log| log.revert_where(is_ours)) {
        Ok(undone) => {
            for (change, how) in undone {
                eprintln!("note: a run that was killed had changed {}: {how}", change.step.what());
            }
        }
        // Somebody who is alive has them.
        Err(UndoError::Held { .. }) => {}
        Err(error) => eprintln!("warning: what a run that was killed had changed is not put back: {error}"),
    }
}

impl Agent {
    /// Sets knobs until the group is torn down.
    pub(super) fn tune(&self, group: u32, knobs: &BTreeMap<String, String>) -> Result<Vec<Tuned>, Fault> {
        let group = self.group(group)?;
        let wanted = knobs.iter().map(|(name, value)| Wanted::new(name, value.clone()));
        let knobs = wanted.collect::<Result<Vec<_>, _>>().map_err(|why| Fault::Refused { why })?;
        let set = KnobSet { name: BY.to_owned(), summary: String::new(), knobs };
        let mut log = UndoLog::open(&self.root, BY).map_err(|error| refused(&error))?;
        let tuned = apply(&self.root, &set, &mut log);
        *group.tuned.borrow_mut() = Some(log);
        let tuned = tuned.map_err(|error| refused(&error))?;
        match tuned.iter().find_map(|one| Some((one, one.outcome.reason()?))) {
            Some((one, reason)) => {
                Err(Fault::Refused { why: format!("{} cannot be {}: {reason}", one.knob, one.wanted) })
            }
            None => Ok(tuned),
        }
    }

    /// Puts back what was set for a group.
    pub(super) fn untune(log: Option<UndoLog>) -> Result<(), Fault> {
        let Some(mut log) = log else { return Ok(()) };
        log.revert_where(is_ours).map(drop).map_err(|error| refused(&error))
    }
}
