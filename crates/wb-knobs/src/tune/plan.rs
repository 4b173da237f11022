//! What a set means on a machine, from reading alone.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::SysRoot;
use wb_sys::undo::{Refusal, ResetSetting};

use crate::knob::Unsupported;
use crate::writes::KnobWrites;
use crate::{Knob, KnobTarget, KnobWrite};

use super::sets::{KnobSet, KnobSetting, find};

/// A knob at one of its targets, and what a set means there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobResult {
    /// The knob.
    pub knob: String,
    /// What it is set for.
    pub target: String,
    /// What it was, as people read it; none where that cannot be told.
    pub before: Option<String>,
    /// What the set wants.
    pub requested: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: KnobOutcome,
    /// The other settings that the system has reset with it, until it is put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resets: Vec<ResetSetting>,
}

/// What came of setting a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum KnobOutcome {
    /// It is as wanted, and was before.
    Unchanged,
    /// It would be changed.
    Differs,
    /// It was changed.
    Set {
        /// What it is now, as people read it.
        now: String,
    },
    /// It was changed, and is not as wanted: fewer huge pages than there should be.
    Partial {
        /// What it is now, as people read it.
        now: String,
        /// What was written and what the system made of it.
        reason: String,
    },
    /// It is no state but an action, and was done.
    Done,
    /// One of several targets that cannot be set by its nature, as some always are: it is left as it is.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It cannot be set here.
    Unsupported {
        /// Why.
        reason: String,
    },
}

impl KnobOutcome {
    /// Why it cannot be set here, or not in full, if so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unsupported { reason } | Self::Partial { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// What a set means on a machine; nothing is changed or tried.
pub fn plan(sys: &SysRoot, set: &KnobSet) -> Vec<KnobResult> {
    plan_all(sys, std::slice::from_ref(set)).concat()
}

/// What several sets mean, each in its place; where two set the same knob of the same target, only the later one does.
pub fn plan_all(sys: &SysRoot, sets: &[KnobSet]) -> Vec<Vec<KnobResult>> {
    let of_set = |resolved: Vec<ResolvedKnob<'_>>| {
        let planned = resolved.iter().flat_map(|resolved| plan_knob(sys, resolved));
        planned.map(|planned| planned.tuned).collect()
    };
    resolve(sys, sets).into_iter().map(of_set).collect()
}

/// Whether a knob, `io-scheduler` or `io-scheduler@sda`, can be set to a value on a machine, as far as reading tells:
/// that there is such a thing here, that it knows the value, and that this user may write it. Nothing is changed or tried.
///
/// # Errors
/// Why it cannot.
pub fn check_settable(sys: &SysRoot, key: &str, value: &str) -> Result<(), Unsupported> {
    let wanted = KnobSetting::new(key, value.to_owned()).map_err(Unsupported)?;
    let set = KnobSet { name: key.to_owned(), summary: String::new(), knobs: vec![wanted] };
    match plan(sys, &set).iter().find_map(|tuned| tuned.outcome.reason()) {
        Some(reason) => Err(Unsupported(reason.to_owned())),
        None => Ok(()),
    }
}

/// A knob that has several targets, one of which has to be named and is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: write {}", .forms.join(" or "))]
pub struct AmbiguousTarget {
    /// What is missing.
    pub what: String,
    /// How it can be written, for each target.
    pub forms: Vec<String>,
}

/// Sees that a target is named where one has to be.
///
/// # Errors
/// Where none is.
pub fn require_target(sys: &SysRoot, wanted: &KnobSetting) -> Result<(), AmbiguousTarget> {
    let knob = find(&wanted.knob).filter(|_| wanted.target.is_none());
    let Some((knob, required)) = knob.and_then(|knob| Some((knob, knob.required_target()?))) else { return Ok(()) };
    let targets = knob.targets(sys);
    if targets.len() < 2 {
        return Ok(());
    }
    let (name, value) = (knob.name(), &wanted.value);
    Err(AmbiguousTarget {
        what: format!("`{name}={value}` needs {required}, since there are several here"),
        forms: targets.iter().map(|target| format!("`{name}@{target}={value}`")).collect(),
    })
}

/// What setting a knob comes to, before anything is written.
pub(super) struct PlannedKnob {
    pub(super) tuned: KnobResult,
    pub(super) target: KnobTarget,
    pub(super) knob: &'static dyn Knob,
    /// Whether this target was named.
    pub(super) named: bool,
    pub(super) writes: Vec<KnobWrite>,
}

/// A value and the targets that it is for, or why there are none.
pub(super) struct ResolvedKnob<'a> {
    value: &'a KnobSetting,
    knob: &'static dyn Knob,
    targets: Result<Vec<KnobTarget>, Unsupported>,
}

/// The targets of every value of several sets: each target belongs to the last value that is for it.
pub(super) fn resolve<'a>(sys: &SysRoot, sets: &'a [KnobSet]) -> Vec<Vec<ResolvedKnob<'a>>> {
    let of_value = |value: &'a KnobSetting| {
        let knob = find(&value.knob)?;
        Some(ResolvedKnob { value, knob, targets: targets(sys, knob, value) })
    };
    let of_set = |set: &'a KnobSet| set.knobs.iter().filter_map(of_value).collect::<Vec<_>>();
    let mut all: Vec<Vec<ResolvedKnob<'a>>> = sets.iter().map(of_set).collect();
    let mut taken: BTreeSet<(&str, KnobTarget)> = BTreeSet::new();
    for ResolvedKnob { knob, targets, .. } in all.iter_mut().rev().flat_map(|set| set.iter_mut().rev()) {
        if let Ok(targets) = targets {
            targets.retain(|target| taken.insert((knob.name(), target.clone())));
        }
    }
    all
}

/// What a value is for: the target that it names, or those of its knob.
fn targets(sys: &SysRoot, knob: &dyn Knob, value: &KnobSetting) -> Result<Vec<KnobTarget>, Unsupported> {
    require_target(sys, value).map_err(|ambiguous| Unsupported(ambiguous.to_string()))?;
    let targets: Vec<KnobTarget> = match &value.target {
        None => knob.default_targets(sys),
        Some(name) => knob.targets(sys).into_iter().filter(|target| *name == target.to_string()).collect(),
    };
    match (targets.is_empty(), &value.target) {
        (false, _) => Ok(targets),
        (true, Some(target)) => Err(Unsupported(format!("there is no {target} here that it could be set for"))),
        (true, None) => Err(Unsupported(knob.unsupported_reason().to_owned())),
    }
}

/// What setting a value comes to at each of its targets.
pub(super) fn plan_knob(sys: &SysRoot, ResolvedKnob { value, knob, targets }: &ResolvedKnob<'_>) -> Vec<PlannedKnob> {
    let targets = match targets {
        Ok(targets) => targets,
        Err(reason) => return vec![plan_target(*knob, value, KnobTarget::System, None, Err(reason.clone()), sys)],
    };
    let all = targets.iter().map(|target| {
        let was = knob.read(sys, target).ok().map(|state| state.to_string());
        let writes = knob.writes(sys, target, &value.value);
        plan_target(*knob, value, target.clone(), was, writes, sys)
    });
    let mut all: Vec<PlannedKnob> = all.collect();
    mark_skipped(&mut all);
    all
}

/// Where some targets of a knob can be set, those that cannot by their nature are left.
pub(super) fn mark_skipped(all: &mut [PlannedKnob]) {
    let refused = |one: &PlannedKnob| one.tuned.outcome.reason().is_some();
    if all.iter().all(refused) {
        return;
    }
    for one in all.iter_mut().filter(|one| one.knob.allows_partial() && !one.named) {
        if let KnobOutcome::Unsupported { reason } = &one.tuned.outcome {
            one.tuned.outcome = KnobOutcome::Skipped { reason: reason.clone() };
        }
    }
}

fn plan_target(
    knob: &'static dyn Knob,
    wanted: &KnobSetting,
    target: KnobTarget,
    was: Option<String>,
    writes: KnobWrites,
    sys: &SysRoot,
) -> PlannedKnob {
    let (outcome, writes) = match writes.and_then(|writes| Ok((outcome(sys, &writes)?, writes))) {
        Ok(both) => both,
        Err(Unsupported(reason)) => (KnobOutcome::Unsupported { reason }, Vec::new()),
    };
    let (name, wanted_value) = (knob.name().to_owned(), wanted.value.clone());
    let tuned = KnobResult {
        knob: name,
        target: target.to_string(),
        before: was,
        requested: wanted_value,
        outcome,
        resets: Vec::new(),
    };
    PlannedKnob { tuned, target, knob, named: wanted.target.is_some(), writes }
}

/// Whether all is as the writes would make it, or differs, or cannot be made so.
fn outcome(sys: &SysRoot, writes: &[KnobWrite]) -> Result<KnobOutcome, Unsupported> {
    match compare(sys, writes)? {
        WriteCheck::Same => Ok(KnobOutcome::Unchanged),
        WriteCheck::Differs(None) => Ok(KnobOutcome::Differs),
        WriteCheck::Differs(Some(refusal)) => Err(Unsupported(refusal.to_string())),
    }
}

/// What there is against what writes would make of it.
pub(crate) enum WriteCheck {
    /// It is so already.
    Same,
    /// It is not; why it cannot be made so, if that can be told from reading.
    Differs(Option<Refusal>),
}

/// Compares what there is with what writes would make of it; where several cannot be made, the first that not even root
/// could make counts.
pub(crate) fn compare(sys: &SysRoot, writes: &[KnobWrite]) -> Result<WriteCheck, Unsupported> {
    let mut compared = WriteCheck::Same;
    for write in writes {
        let refusal = match write {
            KnobWrite::Action(action) => action.refusal(sys),
            KnobWrite::State { step, state } => match step.is_in_state(sys, Some(state.as_bytes())) {
                Err(error) => return Err(Unsupported(error.to_string())),
                Ok(true) => continue,
                Ok(false) => step.refusal(sys),
            },
        };
        match refusal {
            Some(Refusal::Other(_)) => return Ok(WriteCheck::Differs(refusal)),
            Some(Refusal::NotRoot) => compared = WriteCheck::Differs(refusal),
            None if matches!(compared, WriteCheck::Same) => compared = WriteCheck::Differs(None),
            None => {}
        }
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use wb_sys::fake_root::{self, FakeRoot};

    use super::*;

    fn refusal(made: &FakeRoot, key: &str, value: &str) -> String {
        check_settable(&made.root(), key, value).unwrap_err().0
    }

    #[test]
    fn what_can_be_set_is_told_from_reading_alone() {
        let made = fake_root::laptop().file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        assert_eq!(check_settable(&made.root(), "governor", "performance"), Ok(()));
        assert_eq!(check_settable(&made.root(), "governor", "powersave"), Ok(()), "it is so already");
        assert_eq!(refusal(&made, "io-scheduler@nope", "none"), "there is no nope here that it could be set for");
        assert!(refusal(&made, "swapiness", "1").starts_with("there is no knob `swapiness`"));
        assert_eq!(refusal(&made, "thp", "often"), "`often` is not among always, madvise, never");
        let container = fake_root::container();
        assert_eq!(refusal(&container, "clocksource", "tsc"), "the kernel does not show which clock it uses");
        assert_eq!(refusal(&made, "wbt", "0"), "`/sys/block/nvme0n1/queue/wbt_lat_usec` is not there");
    }

    #[test]
    fn values_outside_what_the_kernel_documents_are_refused_before_anything_is_written() {
        let names = ["kernel/perf_event_paranoid", "kernel/perf_event_max_sample_rate", "vm/dirty_expire_centisecs"];
        let made = names.iter().fold(fake_root::laptop(), |made, name| made.file(&format!("/proc/sys/{name}"), "2\n"));
        let least = format!("at least {} KiB, which is two pages of memory", 2 * rustix::param::page_size() / 1024);
        for (key, value, expected) in [
            ("aslr", "3", "0, 1 or 2"),
            ("aslr", "-1", "0, 1 or 2"),
            ("perf-paranoid", "99", "a whole number from -1 to 4"),
            ("perf-sample-rate", "0", "a whole number of at least 1"),
            ("swappiness", "201", "a whole number from 0 to 200"),
            ("nr-requests@nvme0n1", "1", "a whole number of at least 4"),
            ("read-ahead@nvme0n1", "1", "whole KiB, with their unit: `128k`"),
            ("wbt@nvme0n1", "-1", "a whole number of at least 0"),
            ("dirty-limit", "0", &least),
            ("dirty-limit", "1", &least),
            ("writeback-expiry", "-10", "a whole number of at least 0"),
            ("writeback-expiry", "15", "a multiple of 10 ms, in which the kernel counts"),
        ] {
            let knob = key.split('@').next().unwrap();
            assert_eq!(refusal(&made, key, value), format!("invalid value `{value}` for {knob}: expected {expected}"));
        }
    }

    #[test]
    fn where_two_values_are_for_one_target_only_the_later_one_is_planned() {
        let made = fake_root::laptop();
        let set = |key: &str, value: &str| {
            let wanted = KnobSetting::new(key, value.to_owned()).unwrap();
            KnobSet { name: format!("{key}={value}"), summary: String::new(), knobs: vec![wanted] }
        };
        let planned = |sets: &[KnobSet]| {
            let all = plan_all(&made.root(), sets).into_iter();
            all.map(|tuned| tuned.len()).collect::<Vec<_>>()
        };
        let disks = planned(&[set("nr-requests", "64")])[0];
        assert_eq!(planned(&[set("nr-requests", "64"), set("nr-requests", "32")]), [0, disks]);
        assert_eq!(planned(&[set("nr-requests", "64"), set("nr-requests@nvme0n1", "32")]), [disks - 1, 1]);
        assert_eq!(planned(&[set("nr-requests@nvme0n1", "64"), set("nr-requests", "32")]), [0, disks]);
        assert_eq!(planned(&[set("thp", "never"), set("nr-requests", "32"), set("thp-enabled", "always")])[1], disks);
    }

    #[test]
    fn what_nobody_may_write_cannot_be_set_not_even_by_root() {
        use std::os::unix::fs::PermissionsExt;
        let made = fake_root::laptop();
        let path = made.root().path("/proc/sys/vm/swappiness").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(
            refusal(&made, "swappiness", "1"),
            "the kernel shows `/proc/sys/vm/swappiness` and takes no value for it"
        );
        assert_eq!(check_settable(&made.root(), "swappiness", "60"), Ok(()), "nothing has to be written");
    }
}
