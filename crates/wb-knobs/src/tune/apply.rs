use std::collections::BTreeSet;

use wb_sys::undo::{ManagedResource, ResetSetting, UndoError};
use wb_sys::{SysRoot, UndoLog};

use crate::KnobWrite;
use crate::knob::KnobKind;

use super::plan::{KnobOutcome, KnobResult, PlannedKnob, WriteCheck, compare, mark_skipped, plan_knob, resolve};
use super::sets::KnobSet;

/// Applies a set through the undo log. Knobs that cannot be set are reported and do not affect the others; if the log
/// cannot be written, nothing more is changed.
pub fn apply(sys: &SysRoot, set: &KnobSet, log: &mut UndoLog) -> Result<Vec<KnobResult>, UndoError> {
    Ok(apply_all(sys, std::slice::from_ref(set), log)?.concat())
}

/// Applies several sets in order. Of several values for the same knob and target, only the last is set.
pub fn apply_all(sys: &SysRoot, sets: &[KnobSet], log: &mut UndoLog) -> Result<Vec<Vec<KnobResult>>, UndoError> {
    let mut all = Vec::new();
    for set in resolve(sys, sets) {
        let mut of_set = Vec::new();
        for resolved in &set {
            // Read only now, because an earlier write may have reset it.
            let mut planned = plan_knob(sys, resolved);
            for entry in planned.iter_mut().filter(|entry| entry.result.outcome == KnobOutcome::Pending) {
                (entry.result.outcome, entry.result.resets) = apply_writes(sys, entry, log)?;
            }
            mark_skipped(&mut planned);
            of_set.extend(planned);
        }
        all.push(of_set);
    }
    reapply_reset(sys, &mut all, log)?;
    Ok(all.into_iter().map(|set| set.into_iter().map(|entry| entry.result).collect()).collect())
}

/// Sets knobs again that a later change has reset, and removes settings that were set intentionally from the resets.
fn reapply_reset(sys: &SysRoot, all: &mut [Vec<PlannedKnob>], log: &mut UndoLog) -> Result<(), UndoError> {
    for entry in all.iter_mut().flatten() {
        let was_applied = matches!(entry.result.outcome, KnobOutcome::Unchanged | KnobOutcome::Set { .. });
        if was_applied && matches!(compare(sys, &entry.writes), Ok(WriteCheck::Differs(None))) {
            let (outcome, resets) = apply_writes(sys, entry, log)?;
            entry.result.outcome = outcome;
            entry.result.resets.extend(resets);
        }
    }
    let is_set = |entry: &&PlannedKnob| {
        !matches!(entry.result.outcome, KnobOutcome::Unsupported { .. } | KnobOutcome::Skipped { .. })
    };
    let intended: BTreeSet<String> = all.iter().flatten().filter(is_set).flat_map(files).collect();
    for entry in all.iter_mut().flatten() {
        entry.result.resets.retain(|reset| !intended.contains(&reset.path));
    }
    Ok(())
}

fn files(planned: &PlannedKnob) -> Vec<String> {
    let file = |write: &KnobWrite| match write {
        KnobWrite::State { resource: ManagedResource::Setting { path }, .. } => Some(path.clone()),
        _ => None,
    };
    planned.writes.iter().filter_map(file).collect()
}

/// Performs all or none of the writes of a knob. Returns the outcome and the other settings that were reset.
fn apply_writes(
    sys: &SysRoot,
    planned: &PlannedKnob,
    log: &mut UndoLog,
) -> Result<(KnobOutcome, Vec<ResetSetting>), UndoError> {
    let before = log.open_changes().map(|change| change.number).max();
    let dependents = planned.knob.dependents(sys, &planned.target);
    let mut resets = Vec::new();
    for write in &planned.writes {
        let failure = match write {
            KnobWrite::Action(action) => action.execute(sys).err(),
            KnobWrite::State { resource, state } => {
                match log.change_with(resource.clone(), Some(state.as_bytes()), &dependents) {
                    Ok(reset) => {
                        resets.extend(reset.unwrap_or_default());
                        None
                    }
                    Err(UndoError::Resource(error)) => Some(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
        };
        if let Some(reason) = failure {
            log.revert_where(|change| before.is_none_or(|before| change.number > before))?;
            return Ok((KnobOutcome::Unsupported { reason }, Vec::new()));
        }
    }
    if planned.knob.nature() == KnobKind::Action {
        return Ok((KnobOutcome::Done, Vec::new()));
    }
    let resets = restore_applied(log, resets)?;
    let now = planned.knob.read(sys, &planned.target);
    let now = now.map_or_else(|_| planned.result.requested.clone(), |value| value.to_string());
    Ok(match describe_mismatch(sys, &planned.writes) {
        Some(reason) => (KnobOutcome::PartiallySet { now, reason }, resets),
        None => (KnobOutcome::Set { now }, resets),
    })
}

/// Restores settings that were set through the log before and have been reset by another change; returns the others.
fn restore_applied(log: &mut UndoLog, resets: Vec<ResetSetting>) -> Result<Vec<ResetSetting>, UndoError> {
    let mut remaining = Vec::new();
    for reset in resets {
        let resource = ManagedResource::setting(&reset.path);
        let was_set = log.open_changes().any(|change| change.resource == resource);
        match was_set.then(|| log.change(resource, Some(reset.before.as_bytes()))) {
            Some(Ok(_)) => {}
            None | Some(Err(UndoError::Resource(_))) => remaining.push(reset),
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(remaining)
}

/// Describes the writes that had a different result than requested.
fn describe_mismatch(sys: &SysRoot, writes: &[KnobWrite]) -> Option<String> {
    let mismatch = |write: &KnobWrite| match write {
        KnobWrite::State {
            resource: resource @ (ManagedResource::Setting { .. } | ManagedResource::Command { .. }),
            state,
        } => {
            let is_mismatched = matches!(resource.is_in_state(sys, Some(state.as_bytes())), Ok(false));
            let state = state.trim().replace('\n', ", ");
            is_mismatched.then(|| match resource {
                ManagedResource::Setting { path } => {
                    format!("the system set {path} to `{}` instead of `{state}`", sys.text(path).unwrap_or_default())
                }
                _ => format!("the system did not set {} to `{state}`", resource.description()),
            })
        }
        // A control group is created completely, or that was an error; caches are not read.
        _ => None,
    };
    let all: Vec<String> = writes.iter().filter_map(mismatch).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root;

    use super::*;
    use crate::tune::plan;

    #[test]
    fn dependents_are_saved_with_the_change() {
        let queue = "/sys/block/nvme0n1/queue";
        let fake = ["nr_requests", "iosched/read_expire"]
            .iter()
            .fold(fake_root::laptop(), |fake, name| fake.file(&format!("{queue}/{name}"), "123\n"))
            .file(&format!("{queue}/scheduler"), "[mq-deadline] none\n");
        let sys = fake.root();
        let set = KnobSet::parse("mine", "[knobs]\nio-scheduler = \"none\"\n").unwrap();
        let mut log = UndoLog::open(&sys, "a test").unwrap();
        let results = apply(&sys, &set, &mut log).unwrap();
        assert_eq!((&results[0].outcome, results[0].resets.len()), (&KnobOutcome::Set { now: "none".to_owned() }, 0));
        let saved: Vec<String> =
            log.open_changes().flat_map(|change| change.dependents.iter().map(|it| it.path.clone())).collect();
        assert!(saved.contains(&format!("{queue}/nr_requests")) && !saved.contains(&format!("{queue}/scheduler")));
        assert_eq!(
            saved.last(),
            Some(&format!("{queue}/iosched/read_expire")),
            "after the queue's own settings, which reset it"
        );
        log.revert().unwrap();
    }

    #[test]
    fn a_set_is_applied_where_possible_and_reverted_byte_for_byte() {
        let fake = fake_root::laptop();
        let sys = fake.root();
        let set = KnobSet::parse(
            "mine",
            "[knobs]\ngovernor = \"performance\"\nturbo = false\nswappiness = 1\n\"io-scheduler@nope\" = \"none\"\n",
        )
        .unwrap();
        let governor = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
        let before = sys.bytes(governor).unwrap();
        assert!(plan(&sys, &set).iter().any(|result| result.outcome == KnobOutcome::Pending));
        let mut log = UndoLog::open(&sys, "tune apply mine").unwrap();
        let results = apply(&sys, &set, &mut log).unwrap();
        let result_of = |knob: &str| results.iter().find(|result| result.knob == knob).unwrap();
        assert_eq!(result_of("governor").outcome, KnobOutcome::Set { now: "performance".to_owned() });
        assert_eq!(
            (result_of("governor").before.as_deref(), result_of("turbo").before.as_deref()),
            (Some("powersave"), Some("on"))
        );
        assert!(
            matches!(&result_of("io-scheduler").outcome, KnobOutcome::Unsupported { reason } if reason.contains("`nope`"))
        );
        assert_ne!(sys.bytes(governor).unwrap(), before);
        assert!(
            apply(&sys, &set, &mut log)
                .unwrap()
                .iter()
                .all(|result| !matches!(result.outcome, KnobOutcome::Set { .. }))
        );
        log.revert().unwrap();
        assert_eq!(sys.bytes(governor).unwrap(), before);
    }
}
