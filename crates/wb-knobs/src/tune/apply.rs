//! Setting what can be set.

use wb_sys::undo::UndoError;
use wb_sys::{SysRoot, UndoLog};

use crate::Write;
use crate::knob::Nature;

use super::plan::{Outcome, Planned, Tuned, leave, planned};
use super::sets::KnobSet;

/// Sets what can be set, through the undo log: what cannot be is told and hinders nothing else.
///
/// # Errors
/// When the log cannot be written: then nothing more is changed.
pub fn apply(sys: &SysRoot, set: &KnobSet, log: &mut UndoLog) -> Result<Vec<Tuned>, UndoError> {
    let mut all = planned(sys, set);
    for one in &mut all {
        if one.tuned.outcome == Outcome::Differs {
            one.tuned.outcome = write(sys, one, log)?;
        }
    }
    all.chunk_by_mut(|one, next| one.tuned.knob == next.tuned.knob).for_each(leave);
    Ok(all.into_iter().map(|one| one.tuned).collect())
}

/// Makes the writes of a knob, all or none; what came of it.
fn write(sys: &SysRoot, planned: &Planned, log: &mut UndoLog) -> Result<Outcome, UndoError> {
    let before = log.open_changes().map(|change| change.number).max();
    for write in &planned.writes {
        let refused = match write {
            Write::Action(action) => action.carry_out(sys).err(),
            Write::State { step, state } => match log.change(step.clone(), Some(state.as_bytes())) {
                Ok(_) => None,
                Err(UndoError::Step(error)) => Some(error.to_string()),
                Err(error) => return Err(error),
            },
        };
        if let Some(reason) = refused {
            log.revert_where(|change| before.is_none_or(|before| change.number > before))?;
            return Ok(Outcome::Unsupported { reason });
        }
    }
    if planned.knob.nature() == Nature::Action {
        return Ok(Outcome::Done);
    }
    let now = planned.knob.read(sys, &planned.target);
    Ok(Outcome::Set { now: now.map_or_else(|_| planned.tuned.wanted.clone(), |value| value.to_string()) })
}

#[cfg(test)]
mod tests {
    use wb_sys::made;

    use super::*;
    use crate::tune::plan;

    #[test]
    fn a_set_is_applied_where_it_can_be_and_reverted_byte_for_byte() {
        let made = made::laptop();
        let sys = made.root();
        let set = KnobSet::parse(
            "mine",
            "[knobs]\ngovernor = \"performance\"\nturbo = false\nswappiness = 1\n\"io-scheduler@nope\" = \"none\"\n",
        )
        .unwrap();
        let governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
        let before = sys.bytes(governor).unwrap();
        assert!(plan(&sys, &set).iter().any(|tuned| tuned.outcome == Outcome::Differs));
        let mut log = UndoLog::open(&sys, "tune apply mine").unwrap();
        let tuned = apply(&sys, &set, &mut log).unwrap();
        let of = |knob: &str| tuned.iter().find(|tuned| tuned.knob == knob).unwrap();
        assert_eq!(of("governor").outcome, Outcome::Set { now: "performance".to_owned() });
        assert_eq!((of("governor").was.as_deref(), of("turbo").was.as_deref()), (Some("powersave"), Some("on")));
        assert!(matches!(&of("io-scheduler").outcome, Outcome::Unsupported { reason } if reason.contains("no nope")));
        assert_ne!(sys.bytes(governor).unwrap(), before);
        assert!(apply(&sys, &set, &mut log).unwrap().iter().all(|tuned| !matches!(tuned.outcome, Outcome::Set { .. })));
        log.revert().unwrap();
        assert_eq!(sys.bytes(governor).unwrap(), before);
    }
}
