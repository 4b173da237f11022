//! Dry run: what applying knob sets would change.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::SysRoot;
use wb_sys::undo::{Refusal, ResetSetting};

use crate::unsupported::Unsupported;
use crate::writes::KnobWrites;
use crate::{Knob, KnobTarget, KnobWrite};

use super::sets::{KnobSet, KnobSetting, find};

/// The result of setting, or planning to set, a knob for one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnobResult {
    /// Name of the knob.
    pub knob: String,
    /// Target.
    pub target: String,
    /// Value before, formatted for output; absent where it cannot be read.
    pub before: Option<String>,
    /// Requested value.
    pub requested: String,
    /// Outcome.
    #[serde(flatten)]
    pub outcome: KnobOutcome,
    /// Other settings that the system has reset with it, until it is reverted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resets: Vec<ResetSetting>,
}

/// Outcome of setting a knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum KnobOutcome {
    /// It already had the requested value.
    Unchanged,
    /// It would be changed.
    Pending,
    /// It was changed.
    Set {
        /// Value now, formatted for output.
        now: String,
    },
    /// It was changed, but not to the requested value: fewer huge pages than requested.
    PartiallySet {
        /// Value now, formatted for output.
        now: String,
        /// The written value and the resulting one.
        reason: String,
    },
    /// The action was performed.
    Done,
    /// Skipped, because this one of several targets cannot be set by its nature.
    Skipped {
        /// The reason.
        reason: String,
    },
    /// It cannot be set here.
    Unsupported {
        /// The reason.
        reason: String,
    },
}

impl KnobOutcome {
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unsupported { reason } | Self::PartiallySet { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

/// Determines what applying a set would change. No change is attempted.
pub fn plan(sys: &SysRoot, set: &KnobSet) -> Vec<KnobResult> {
    plan_all(sys, std::slice::from_ref(set)).concat()
}

/// Plans several sets in order. If there are several values for the same knob and target, only the last is planned.
pub fn plan_all(sys: &SysRoot, sets: &[KnobSet]) -> Vec<Vec<KnobResult>> {
    let of_set = |resolved: Vec<ResolvedKnob<'_>>| {
        let planned = resolved.iter().flat_map(|resolved| plan_knob(sys, resolved));
        planned.map(|planned| planned.result).collect()
    };
    resolve(sys, sets).into_iter().map(of_set).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobRefusal {
    pub reason: String,
    /// Whether the machine lists the valid values, and this value is not among them.
    pub is_unknown_value: bool,
}

impl From<String> for KnobRefusal {
    fn from(reason: String) -> Self {
        Self { reason, is_unknown_value: false }
    }
}

/// Checks by reading alone whether a knob can be set to a value on a machine: the target exists, the value is valid,
/// and this user may write it.
pub fn check_settable(sys: &SysRoot, setting: &KnobSetting) -> Result<(), KnobRefusal> {
    setting.check_known()?;
    let is_unknown_value = is_unknown_value(sys, setting);
    let set = KnobSet { name: setting.key(), summary: String::new(), knobs: vec![setting.clone()] };
    match plan(sys, &set).iter().find_map(|result| result.outcome.reason()) {
        Some(reason) => Err(KnobRefusal { reason: reason.to_owned(), is_unknown_value }),
        None => Ok(()),
    }
}

/// Whether the values for the targets of a setting are known, and this value is not among them for any target.
fn is_unknown_value(sys: &SysRoot, setting: &KnobSetting) -> bool {
    let Some(knob) = find(&setting.knob) else { return false };
    // Without a target nothing is offered.
    let targets = targets(sys, knob, setting).unwrap_or_default();
    let offered: Vec<String> = targets.iter().flat_map(|target| knob.offered_values(sys, target)).collect();
    // Several words are profiles of tuned.
    !offered.is_empty() && !setting.value.split_whitespace().all(|word| offered.iter().any(|value| value == word))
}

/// The error of a knob with several targets, one of which must be named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: write {}", .forms.join(" or "))]
pub struct AmbiguousTarget {
    pub problem: String,
    /// The valid forms, one for each target.
    pub forms: Vec<String>,
}

pub fn require_target(sys: &SysRoot, setting: &KnobSetting) -> Result<(), AmbiguousTarget> {
    let knob = find(&setting.knob).filter(|_| setting.target.is_none());
    let Some((knob, required)) = knob.and_then(|knob| Some((knob, knob.required_target()?))) else { return Ok(()) };
    let targets = knob.targets(sys);
    if targets.len() < 2 {
        return Ok(());
    }
    let (name, value) = (knob.name(), &setting.value);
    Err(AmbiguousTarget {
        problem: format!("`{name}={value}` needs {required}, since there are several here"),
        forms: targets.iter().map(|target| format!("`{name}@{target}={value}`")).collect(),
    })
}

pub(super) struct PlannedKnob {
    pub(super) result: KnobResult,
    pub(super) target: KnobTarget,
    pub(super) knob: &'static dyn Knob,
    /// Whether the user named the target.
    pub(super) named: bool,
    pub(super) writes: Vec<KnobWrite>,
}

/// A requested value with its knob and targets, or the reason why there are none.
pub(super) struct ResolvedKnob<'a> {
    value: &'a KnobSetting,
    knob: &'static dyn Knob,
    targets: Result<Vec<KnobTarget>, Unsupported>,
}

/// Resolves the targets of all values in several sets. Each target is assigned to the last value for it.
pub(super) fn resolve<'a>(sys: &SysRoot, sets: &'a [KnobSet]) -> Vec<Vec<ResolvedKnob<'a>>> {
    let resolve_value = |value: &'a KnobSetting| {
        let knob = find(&value.knob)?;
        Some(ResolvedKnob { value, knob, targets: targets(sys, knob, value) })
    };
    let resolve_set = |set: &'a KnobSet| set.knobs.iter().filter_map(resolve_value).collect::<Vec<_>>();
    let mut all: Vec<Vec<ResolvedKnob<'a>>> = sets.iter().map(resolve_set).collect();
    let mut taken: BTreeSet<(&str, KnobTarget)> = BTreeSet::new();
    for ResolvedKnob { knob, targets, .. } in all.iter_mut().rev().flat_map(|set| set.iter_mut().rev()) {
        if let Ok(targets) = targets {
            targets.retain(|target| taken.insert((knob.name(), target.clone())));
        }
    }
    all
}

/// The targets of a value: the named one, or the default targets of its knob.
fn targets(sys: &SysRoot, knob: &dyn Knob, value: &KnobSetting) -> Result<Vec<KnobTarget>, Unsupported> {
    require_target(sys, value).map_err(|ambiguous| Unsupported(ambiguous.to_string()))?;
    let targets: Vec<KnobTarget> = match &value.target {
        None => knob.default_targets(sys),
        Some(name) => knob.targets(sys).into_iter().filter(|target| *name == target.to_string()).collect(),
    };
    match (targets.is_empty(), &value.target) {
        (false, _) => Ok(targets),
        (true, Some(target)) => Err(Unsupported(format!("no such target: `{target}`"))),
        (true, None) => Err(knob.unsupported()),
    }
}

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

/// Marks the targets that cannot be set by their nature as skipped, where others can be set.
pub(super) fn mark_skipped(all: &mut [PlannedKnob]) {
    let refused = |entry: &PlannedKnob| entry.result.outcome.reason().is_some();
    if all.iter().all(refused) {
        return;
    }
    for entry in all.iter_mut().filter(|entry| entry.knob.allows_partial() && !entry.named) {
        if let KnobOutcome::Unsupported { reason } = &entry.result.outcome {
            entry.result.outcome = KnobOutcome::Skipped { reason: reason.clone() };
        }
    }
}

fn plan_target(
    knob: &'static dyn Knob,
    setting: &KnobSetting,
    target: KnobTarget,
    was: Option<String>,
    writes: KnobWrites,
    sys: &SysRoot,
) -> PlannedKnob {
    let (outcome, writes) = match writes.and_then(|writes| Ok((outcome(sys, &writes)?, writes))) {
        Ok(both) => both,
        Err(Unsupported(reason)) => (KnobOutcome::Unsupported { reason }, Vec::new()),
    };
    let (name, requested) = (knob.name().to_owned(), setting.value.clone());
    let result =
        KnobResult { knob: name, target: target.to_string(), before: was, requested, outcome, resets: Vec::new() };
    PlannedKnob { result, target, knob, named: setting.target.is_some(), writes }
}

fn outcome(sys: &SysRoot, writes: &[KnobWrite]) -> Result<KnobOutcome, Unsupported> {
    match compare(sys, writes)? {
        WriteCheck::Same => Ok(KnobOutcome::Unchanged),
        WriteCheck::Differs(None) => Ok(KnobOutcome::Pending),
        WriteCheck::Differs(Some(refusal)) => Err(Unsupported(refusal.to_string())),
    }
}

pub(crate) enum WriteCheck {
    Same,
    /// Some state differs from the requested one; with the reason why it cannot be set, if reading can tell.
    Differs(Option<Refusal>),
}

/// A refusal that applies even to root takes precedence over missing privileges.
pub(crate) fn compare(sys: &SysRoot, writes: &[KnobWrite]) -> Result<WriteCheck, Unsupported> {
    let mut compared = WriteCheck::Same;
    for write in writes {
        let refusal = match write {
            KnobWrite::Action(action) => action.refusal(sys),
            KnobWrite::State { resource, state } => match resource.is_in_state(sys, Some(state.as_bytes())) {
                Err(error) => return Err(Unsupported(error.to_string())),
                Ok(true) => continue,
                Ok(false) => resource.refusal(sys),
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

    fn check(fake: &FakeRoot, key: &str, value: &str) -> Result<(), KnobRefusal> {
        check_settable(&fake.root(), &KnobSetting::new(key, value.to_owned()).unwrap())
    }

    fn refusal(fake: &FakeRoot, key: &str, value: &str) -> String {
        check(fake, key, value).unwrap_err().reason
    }

    #[test]
    fn settable_knobs_are_determined_by_reading_alone() {
        let fake = fake_root::laptop().file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        assert_eq!(check(&fake, "governor", "performance"), Ok(()));
        assert_eq!(check(&fake, "governor", "powersave"), Ok(()), "unchanged");
        assert_eq!(refusal(&fake, "io-scheduler@nope", "none"), "no such target: `nope`");
        let unknown = check_settable(&fake.root(), &KnobSetting::from_checked_key("swapiness", "1".to_owned()));
        assert!(unknown.is_err_and(|refusal| refusal.reason.starts_with("unknown knob `swapiness`")));
        assert_eq!(refusal(&fake, "thp", "often"), "invalid value `often`: expected one of always, madvise, never");
        let container = fake_root::container();
        assert_eq!(refusal(&container, "clocksource", "tsc"), "the kernel does not report its clock source");
        assert_eq!(refusal(&fake, "wbt", "0"), "no such file: `/sys/block/nvme0n1/queue/wbt_lat_usec`");
    }

    #[test]
    fn every_open_list_is_that_of_the_machine() {
        let policy = "/sys/devices/system/cpu/cpufreq/policy0";
        let clock = "/sys/devices/system/clocksource/clocksource0";
        let fake = fake_root::laptop()
            .file(&format!("{policy}/scaling_available_governors"), "performance powersave\n")
            .file(&format!("{policy}/energy_performance_preference"), "power\n")
            .file(&format!("{policy}/energy_performance_available_preferences"), "performance power\n")
            .file(&format!("{clock}/current_clocksource"), "tsc\n")
            .file(&format!("{clock}/available_clocksource"), "tsc hpet\n")
            .file("/sys/firmware/acpi/platform_profile", "balanced\n")
            .file("/sys/firmware/acpi/platform_profile_choices", "quiet balanced performance\n")
            .file("/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n")
            .file("/etc/tuned/active_profile", "balanced\n")
            .file("/usr/lib/tuned/profiles/latency-performance/tuned.conf", "")
            .file("/etc/tuned/profiles/mine/tuned.conf", "");
        for (knob, typo, near) in [
            ("governor", "performnce", "performance"),
            ("energy-preference", "powr", "power"),
            ("clocksource", "tcs", "tsc"),
            ("platform-profile", "quit", "quiet"),
            ("io-scheduler", "mq-dedline", "mq-deadline"),
        ] {
            let refused = check(&fake, knob, typo).unwrap_err();
            assert!(refused.is_unknown_value, "{knob}");
            let expected = format!("; did you mean `{near}`?");
            assert!(refused.reason.ends_with(&expected), "{knob}: {}", refused.reason);
            assert!(check(&fake, knob, near).is_ok(), "{knob}");
        }
        let tuned = find("tuned-profile").unwrap();
        assert_eq!(tuned.offered_values(&fake.root(), &KnobTarget::System), ["latency-performance", "mine"]);
        let refused = tuned.writes(&fake.root(), &KnobTarget::System, "latency-performnce").unwrap_err().0;
        assert!(refused.ends_with("; did you mean `latency-performance`?"), "{refused}");
        let elsewhere = check(&fake_root::container(), "governor", "performnce").unwrap_err();
        assert!(!elsewhere.is_unknown_value, "without frequency policies no value is known");
    }

    #[test]
    fn values_outside_the_documented_range_are_refused() {
        let names = ["kernel/perf_event_paranoid", "kernel/perf_event_max_sample_rate", "vm/dirty_expire_centisecs"];
        let fake = names.iter().fold(fake_root::laptop(), |fake, name| fake.file(&format!("/proc/sys/{name}"), "2\n"));
        let minimum = format!("at least {} KiB, which is two memory pages", 2 * rustix::param::page_size() / 1024);
        for (key, value, expected) in [
            ("aslr", "3", "0, 1 or 2"),
            ("aslr", "-1", "0, 1 or 2"),
            ("perf-paranoid", "99", "a whole number from -1 to 4"),
            ("perf-sample-rate", "0", "a whole number of at least 1"),
            ("swappiness", "201", "a whole number from 0 to 200"),
            ("nr-requests@nvme0n1", "1", "a whole number of at least 4"),
            ("read-ahead@nvme0n1", "1", "whole KiB with a unit, such as 128k"),
            ("wbt@nvme0n1", "-1", "a whole number of at least 0"),
            ("dirty-limit", "0", &minimum),
            ("dirty-limit", "1", &minimum),
            ("writeback-expiry", "-10", "a whole number of at least 0"),
            ("writeback-expiry", "15", "a multiple of 10 ms, the kernel's resolution"),
        ] {
            let knob = key.split('@').next().unwrap();
            assert_eq!(refusal(&fake, key, value), format!("invalid value `{value}` for {knob}: expected {expected}"));
        }
    }

    #[test]
    fn of_two_values_for_one_target_only_the_later_one_is_planned() {
        let fake = fake_root::laptop();
        let set = |key: &str, value: &str| {
            let setting = KnobSetting::new(key, value.to_owned()).unwrap();
            KnobSet { name: format!("{key}={value}"), summary: String::new(), knobs: vec![setting] }
        };
        let planned = |sets: &[KnobSet]| {
            let all = plan_all(&fake.root(), sets).into_iter();
            all.map(|result| result.len()).collect::<Vec<_>>()
        };
        let disks = planned(&[set("nr-requests", "64")])[0];
        assert_eq!(planned(&[set("nr-requests", "64"), set("nr-requests", "32")]), [0, disks]);
        assert_eq!(planned(&[set("nr-requests", "64"), set("nr-requests@nvme0n1", "32")]), [disks - 1, 1]);
        assert_eq!(planned(&[set("nr-requests@nvme0n1", "64"), set("nr-requests", "32")]), [0, disks]);
        assert_eq!(planned(&[set("thp", "never"), set("nr-requests", "32"), set("thp-enabled", "always")])[1], disks);
    }

    #[test]
    fn a_read_only_setting_cannot_be_set_even_by_root() {
        use std::os::unix::fs::PermissionsExt;
        let fake = fake_root::laptop();
        let path = fake.root().path("/proc/sys/vm/swappiness").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(refusal(&fake, "swappiness", "1"), "the kernel provides `/proc/sys/vm/swappiness` read-only");
        assert_eq!(check(&fake, "swappiness", "60"), Ok(()), "no write is needed");
    }
}
