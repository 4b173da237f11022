//! What a set means on a machine, from reading alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::SysRoot;
use wb_sys::undo::{Refusal, Reset};

use crate::knob::Unsupported;
use crate::set::Writes;
use crate::{Knob, Target, Write};

use super::sets::{KnobSet, Wanted, find};

/// A knob at one of its targets, and what a set means there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tuned {
    /// The knob.
    pub knob: String,
    /// What it is set for.
    pub target: String,
    /// What it was, as people read it; none where that cannot be told.
    pub was: Option<String>,
    /// What the set wants.
    pub wanted: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The other settings that the system has reset with it, until it is put back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resets: Vec<Reset>,
}

/// What came of setting a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It is as wanted, and was before.
    Already,
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
    Left {
        /// Why.
        reason: String,
    },
    /// It cannot be set here.
    Unsupported {
        /// Why.
        reason: String,
    },
}

impl Outcome {
    /// Why it cannot be set here, or not in full, if so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unsupported { reason } | Self::Partial { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// What a set means on a machine; nothing is changed or tried.
pub fn plan(sys: &SysRoot, set: &KnobSet) -> Vec<Tuned> {
    planned(sys, set).into_iter().map(|planned| planned.tuned).collect()
}

/// Whether a knob, `io-scheduler` or `io-scheduler@sda`, can be set to a value on a machine, as far as reading tells:
/// that there is such a thing here, that it knows the value, and that this user may write it. Nothing is changed or tried.
///
/// # Errors
/// Why it cannot.
pub fn settable(sys: &SysRoot, key: &str, value: &str) -> Result<(), Unsupported> {
    let wanted = Wanted::new(key, value.to_owned()).map_err(Unsupported)?;
    let set = KnobSet { name: key.to_owned(), summary: String::new(), knobs: vec![wanted] };
    match plan(sys, &set).iter().find_map(|tuned| tuned.outcome.reason()) {
        Some(reason) => Err(Unsupported(reason.to_owned())),
        None => Ok(()),
    }
}

/// A knob that has several targets, one of which has to be named and is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: write {}", .forms.join(" or "))]
pub struct Ambiguous {
    /// What is missing.
    pub what: String,
    /// How it can be written, for each target.
    pub forms: Vec<String>,
}

/// Sees that a target is named where one has to be.
///
/// # Errors
/// Where none is.
pub fn require_target(sys: &SysRoot, wanted: &Wanted) -> Result<(), Ambiguous> {
    let knob = find(&wanted.knob).filter(|_| wanted.target.is_none());
    let Some((knob, required)) = knob.and_then(|knob| Some((knob, knob.required_target()?))) else { return Ok(()) };
    let targets = knob.targets(sys);
    if targets.len() < 2 {
        return Ok(());
    }
    let (name, value) = (knob.name(), &wanted.value);
    Err(Ambiguous {
        what: format!("`{name}={value}` needs {required}, since there are several here"),
        forms: targets.iter().map(|target| format!("`{name}@{target}={value}`")).collect(),
    })
}

/// What setting a knob comes to, before anything is written.
pub(super) struct Planned {
    pub(super) tuned: Tuned,
    pub(super) target: Target,
    pub(super) knob: &'static dyn Knob,
    /// Whether this target was named.
    pub(super) named: bool,
    pub(super) writes: Vec<Write>,
}

pub(super) fn planned(sys: &SysRoot, set: &KnobSet) -> Vec<Planned> {
    set.knobs.iter().flat_map(|wanted| of_knob(sys, wanted)).collect()
}

fn of_knob(sys: &SysRoot, wanted: &Wanted) -> Vec<Planned> {
    let Some(knob) = find(&wanted.knob) else { return Vec::new() };
    if let Err(ambiguous) = require_target(sys, wanted) {
        return vec![at(knob, wanted, Target::System, None, Err(Unsupported(ambiguous.to_string())), sys)];
    }
    let targets = match &wanted.target {
        None => knob.default_targets(sys),
        Some(name) => knob.targets(sys).into_iter().filter(|target| *name == target.to_string()).collect(),
    };
    if targets.is_empty() {
        let reason = match &wanted.target {
            Some(target) => format!("there is no {target} here that it could be set for"),
            None => knob.absent().to_owned(),
        };
        return vec![at(knob, wanted, Target::System, None, Err(Unsupported(reason)), sys)];
    }
    let all = targets.into_iter().map(|target| {
        let was = knob.read(sys, &target).ok().map(|value| value.to_string());
        let writes = knob.set(sys, &target, &wanted.value);
        at(knob, wanted, target, was, writes, sys)
    });
    let mut all: Vec<Planned> = all.collect();
    leave(&mut all);
    all
}

/// Where some targets of a knob can be set, those that cannot by their nature are left.
pub(super) fn leave(all: &mut [Planned]) {
    let refused = |one: &Planned| one.tuned.outcome.reason().is_some();
    if all.iter().all(refused) {
        return;
    }
    for one in all.iter_mut().filter(|one| one.knob.leaves_some() && !one.named) {
        if let Outcome::Unsupported { reason } = &one.tuned.outcome {
            one.tuned.outcome = Outcome::Left { reason: reason.clone() };
        }
    }
}

fn at(
    knob: &'static dyn Knob,
    wanted: &Wanted,
    target: Target,
    was: Option<String>,
    writes: Writes,
    sys: &SysRoot,
) -> Planned {
    let (outcome, writes) = match writes.and_then(|writes| Ok((outcome(sys, &writes)?, writes))) {
        Ok(both) => both,
        Err(Unsupported(reason)) => (Outcome::Unsupported { reason }, Vec::new()),
    };
    let (name, wanted_value) = (knob.name().to_owned(), wanted.value.clone());
    let tuned =
        Tuned { knob: name, target: target.to_string(), was, wanted: wanted_value, outcome, resets: Vec::new() };
    Planned { tuned, target, knob, named: wanted.target.is_some(), writes }
}

/// Whether all is as the writes would make it, or differs, or cannot be made so.
fn outcome(sys: &SysRoot, writes: &[Write]) -> Result<Outcome, Unsupported> {
    match compare(sys, writes)? {
        Compared::Same => Ok(Outcome::Already),
        Compared::Differs(None) => Ok(Outcome::Differs),
        Compared::Differs(Some(refusal)) => Err(Unsupported(refusal.to_string())),
    }
}

/// What there is against what writes would make of it.
pub(crate) enum Compared {
    /// It is so already.
    Same,
    /// It is not; why it cannot be made so, if that can be told from reading.
    Differs(Option<Refusal>),
}

/// Compares what there is with what writes would make of it; where several cannot be made, the first that not even root
/// could make counts.
pub(crate) fn compare(sys: &SysRoot, writes: &[Write]) -> Result<Compared, Unsupported> {
    let mut compared = Compared::Same;
    for write in writes {
        let refusal = match write {
            Write::Action(action) => action.refusal(sys),
            Write::State { step, state } => match step.holds(sys, Some(state.as_bytes())) {
                Err(error) => return Err(Unsupported(error.to_string())),
                Ok(true) => continue,
                Ok(false) => step.refusal(sys),
            },
        };
        match refusal {
            Some(Refusal::Other(_)) => return Ok(Compared::Differs(refusal)),
            Some(Refusal::NotRoot) => compared = Compared::Differs(refusal),
            None if matches!(compared, Compared::Same) => compared = Compared::Differs(None),
            None => {}
        }
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use wb_sys::made::{self, MadeRoot};

    use super::*;

    fn refusal(made: &MadeRoot, key: &str, value: &str) -> String {
        settable(&made.root(), key, value).unwrap_err().0
    }

    #[test]
    fn what_can_be_set_is_told_from_reading_alone() {
        let made = made::laptop().file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        assert_eq!(settable(&made.root(), "governor", "performance"), Ok(()));
        assert_eq!(settable(&made.root(), "governor", "powersave"), Ok(()), "it is so already");
        assert_eq!(refusal(&made, "io-scheduler@nope", "none"), "there is no nope here that it could be set for");
        assert!(refusal(&made, "swapiness", "1").starts_with("there is no knob `swapiness`"));
        assert_eq!(refusal(&made, "thp", "often"), "`often` is not among always, madvise, never");
        let container = made::container();
        assert_eq!(refusal(&container, "clocksource", "tsc"), "the kernel does not show which clock it uses");
        assert_eq!(refusal(&made, "wbt", "0"), "`/sys/block/nvme0n1/queue/wbt_lat_usec` is not there");
    }

    #[test]
    fn what_nobody_may_write_cannot_be_set_not_even_by_root() {
        use std::os::unix::fs::PermissionsExt;
        let made = made::laptop();
        let path = made.root().path("/proc/sys/vm/swappiness").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(
            refusal(&made, "swappiness", "1"),
            "the kernel shows `/proc/sys/vm/swappiness` and takes no value for it"
        );
        assert_eq!(settable(&made.root(), "swappiness", "60"), Ok(()), "nothing has to be written");
    }
}
