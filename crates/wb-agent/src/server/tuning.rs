//! Knobs that are set for a group and put back at its end, or by the next agent where this one is killed.

use std::collections::BTreeMap;
use std::io::Write;

use wb_knobs::KnobSet;
use wb_knobs::tune::{Tuned, Wanted, apply, settable};
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

/// On standard error; where nobody reads it any more, that is no reason to stop.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Puts back what an agent that was killed has left changed, and says so. What cannot be is left to the next one.
pub(super) fn restore(root: &SysRoot) {
    if !UndoLog::changes(root).is_ok_and(|changes| changes.iter().any(is_ours)) {
        return;
    }
    match UndoLog::open(root, BY).and_then(|mut log| log.revert_where(is_ours)) {
        Ok(undone) => {
            for (change, how) in undone {
                tell(&format!("note: a run that was killed had changed {}: {how}", change.step.what()));
            }
        }
        // Somebody who is alive has them.
        Err(UndoError::Held { .. }) => {}
        Err(error) => tell(&format!("warning: what a run that was killed had changed is not put back: {error}")),
    }
}

/// The knobs that cannot be set so, and why.
pub(super) fn unsettable(root: &SysRoot, knobs: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let refused = |(key, value): (&String, &String)| Some((key.clone(), settable(root, key, value).err()?.0));
    knobs.iter().filter_map(refused).collect()
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
