//! Setting what can be set.

use std::collections::BTreeSet;

use wb_sys::undo::{ResetSetting, Step, UndoError};
use wb_sys::{SysRoot, UndoLog};

use crate::KnobWrite;
use crate::knob::KnobKind;

use super::plan::{KnobOutcome, KnobResult, PlannedKnob, WriteCheck, compare, mark_skipped, plan_knob, resolve};
use super::sets::KnobSet;

/// Sets what can be set, through the undo log: what cannot be is reported and hinders nothing else.
///
/// # Errors
/// When the log cannot be written: then nothing more is changed.
pub fn apply(sys: &SysRoot, set: &KnobSet, log: &mut UndoLog) -> Result<Vec<KnobResult>, UndoError> {
    Ok(apply_all(sys, std::slice::from_ref(set), log)?.concat())
}

/// Applies several sets, each in its place; where two set the same knob of the same target, only the later one does.
///
/// # Errors
/// As for [`apply`].
pub fn apply_all(sys: &SysRoot, sets: &[KnobSet], log: &mut UndoLog) -> Result<Vec<Vec<KnobResult>>, UndoError> {
    let mut all = Vec::new();
    for set in resolve(sys, sets) {
        let mut of_set = Vec::new();
        for resolved in &set {
            // Seen only now: what was set before may have reset it.
            let mut planned = plan_knob(sys, resolved);
            for one in planned.iter_mut().filter(|one| one.tuned.outcome == KnobOutcome::Differs) {
                (one.tuned.outcome, one.tuned.resets) = apply_writes(sys, one, log)?;
            }
            mark_skipped(&mut planned);
            of_set.extend(planned);
        }
        all.push(of_set);
    }
    reapply_reset(sys, &mut all, log)?;
    Ok(all.into_iter().map(|set| set.into_iter().map(|one| one.tuned).collect()).collect())
}

/// Sets again what a later change has reset, and leaves out of the resets whatever was set on purpose.
fn reapply_reset(sys: &SysRoot, all: &mut [Vec<PlannedKnob>], log: &mut UndoLog) -> Result<(), UndoError> {
    for one in all.iter_mut().flatten() {
        let should_hold = matches!(one.tuned.outcome, KnobOutcome::Unchanged | KnobOutcome::Set { .. });
        if should_hold && matches!(compare(sys, &one.writes), Ok(WriteCheck::Differs(None))) {
            let (outcome, resets) = apply_writes(sys, one, log)?;
            one.tuned.outcome = outcome;
            one.tuned.resets.extend(resets);
        }
    }
    let is_set = |one: &&PlannedKnob| {
        !matches!(one.tuned.outcome, KnobOutcome::Unsupported { .. } | KnobOutcome::Skipped { .. })
    };
    let ours: BTreeSet<String> = all.iter().flatten().filter(is_set).flat_map(files).collect();
    for one in all.iter_mut().flatten() {
        one.tuned.resets.retain(|reset| !ours.contains(&reset.path));
    }
    Ok(())
}

/// The kernel's files that setting a knob writes.
fn files(planned: &PlannedKnob) -> Vec<String> {
    let file = |write: &KnobWrite| match write {
        KnobWrite::State { step: Step::Setting { path }, .. } => Some(path.clone()),
        _ => None,
    };
    planned.writes.iter().filter_map(file).collect()
}

/// Makes the writes of a knob, all or none; what came of it, and which other settings that has reset.
fn apply_writes(
    sys: &SysRoot,
    planned: &PlannedKnob,
    log: &mut UndoLog,
) -> Result<(KnobOutcome, Vec<ResetSetting>), UndoError> {
    let before = log.open_changes().map(|change| change.number).max();
    let dependents = planned.knob.dependents(sys, &planned.target);
    let mut resets = Vec::new();
    for write in &planned.writes {
        let refused = match write {
            KnobWrite::Action(action) => action.execute(sys).err(),
            KnobWrite::State { step, state } => {
                match log.change_with(step.clone(), Some(state.as_bytes()), &dependents) {
                    Ok(reset) => {
                        resets.extend(reset.unwrap_or_default());
                        None
                    }
                    Err(UndoError::Step(error)) => Some(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
        };
        if let Some(reason) = refused {
            log.revert_where(|change| before.is_none_or(|before| change.number > before))?;
            return Ok((KnobOutcome::Unsupported { reason }, Vec::new()));
        }
    }
    if planned.knob.nature() == KnobKind::Action {
        return Ok((KnobOutcome::Done, Vec::new()));
    }
    let resets = restore_applied(log, resets)?;
    let now = planned.knob.read(sys, &planned.target);
    let now = now.map_or_else(|_| planned.tuned.requested.clone(), |value| value.to_string());
    Ok(match describe_mismatch(sys, &planned.writes) {
        Some(reason) => (KnobOutcome::Partial { now, reason }, resets),
        None => (KnobOutcome::Set { now }, resets),
    })
}

/// Sets again what was set before, through the log, and has been reset by another change; those that stay reset.
fn restore_applied(log: &mut UndoLog, resets: Vec<ResetSetting>) -> Result<Vec<ResetSetting>, UndoError> {
    let mut left = Vec::new();
    for reset in resets {
        let step = Step::setting(&reset.path);
        let was_set = log.open_changes().any(|change| change.step == step);
        match was_set.then(|| log.change(step, Some(reset.before.as_bytes()))) {
            Some(Ok(_)) => {}
            None | Some(Err(UndoError::Step(_))) => left.push(reset),
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(left)
}

/// What the system made of the writes, where that is something else.
fn describe_mismatch(sys: &SysRoot, writes: &[KnobWrite]) -> Option<String> {
    let of = |write: &KnobWrite| match write {
        KnobWrite::State { step: step @ (Step::Setting { .. } | Step::Command { .. }), state } => {
            let is_short = matches!(step.is_in_state(sys, Some(state.as_bytes())), Ok(false));
            let state = state.trim().replace('\n', ", ");
            is_short.then(|| match step {
                Step::Setting { path } => {
                    format!("the system made `{}` of `{state}` in {path}", sys.text(path).unwrap_or_default())
                }
                _ => format!("the system has not made `{state}` of {}", step.description()),
            })
        }
        // Groups fail where they are not made in full.
        _ => None,
    };
    let all: Vec<String> = writes.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root;

    use super::*;
    use crate::tune::plan;

    #[test]
    fn what_a_change_resets_is_saved_with_it() {
        let queue = "/sys/block/nvme0n1/queue";
        let made = ["nr_requests", "iosched/read_expire"]
            .iter()
            .fold(fake_root::laptop(), |made, name| made.file(&format!("{queue}/{name}"), "123\n"))
            .file(&format!("{queue}/scheduler"), "[mq-deadline] none\n");
        let sys = made.root();
        let set = KnobSet::parse("mine", "[knobs]\nio-scheduler = \"none\"\n").unwrap();
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        let tuned = apply(&sys, &set, &mut log).unwrap();
        assert_eq!((&tuned[0].outcome, tuned[0].resets.len()), (&KnobOutcome::Set { now: "none".to_owned() }, 0));
        let saved: Vec<String> =
            log.open_changes().flat_map(|change| change.dependents.iter().map(|it| it.path.clone())).collect();
        assert!(saved.contains(&format!("{queue}/nr_requests")) && !saved.contains(&format!("{queue}/scheduler")));
        assert_eq!(
            saved.last(),
            Some(&format!("{queue}/iosched/read_expire")),
            "after the queue's own, which reset it"
        );
        log.revert().unwrap();
    }

    #[test]
    fn a_set_is_applied_where_it_can_be_and_reverted_byte_for_byte() {
        let made = fake_root::laptop();
        let sys = made.root();
        let set = KnobSet::parse(
            "mine",
            "[knobs]\ngovernor = \"performance\"\nturbo = false\nswappiness = 1\n\"io-scheduler@nope\" = \"none\"\n",
        )
        .unwrap();
        let governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
        let before = sys.bytes(governor).unwrap();
        assert!(plan(&sys, &set).iter().any(|tuned| tuned.outcome == KnobOutcome::Differs));
        let mut log = UndoLog::open(&sys, "tune apply mine").unwrap();
        let tuned = apply(&sys, &set, &mut log).unwrap();
        let of = |knob: &str| tuned.iter().find(|tuned| tuned.knob == knob).unwrap();
        assert_eq!(of("governor").outcome, KnobOutcome::Set { now: "performance".to_owned() });
        assert_eq!((of("governor").before.as_deref(), of("turbo").before.as_deref()), (Some("powersave"), Some("on")));
        assert!(
            matches!(&of("io-scheduler").outcome, KnobOutcome::Unsupported { reason } if reason.contains("no nope"))
        );
        assert_ne!(sys.bytes(governor).unwrap(), before);
        assert!(
            apply(&sys, &set, &mut log).unwrap().iter().all(|tuned| !matches!(tuned.outcome, KnobOutcome::Set { .. }))
        );
        log.revert().unwrap();
        assert_eq!(sys.bytes(governor).unwrap(), before);
    }
}
