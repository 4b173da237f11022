//! Sets of knobs: what they want, what that means here, and setting it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::undo::UndoError;
use wb_sys::{SysRoot, UndoLog};

use crate::knob::Unsupported;
use crate::{Knob, Target, Write, knobs};

/// A named set of knobs, each with the value that it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobSet {
    /// Its name.
    pub name: String,
    /// What it is for, in a line.
    pub summary: String,
    /// What is set.
    pub knobs: Vec<Wanted>,
}

/// A knob and the value that it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The knob's name.
    pub knob: String,
    /// The only target that is meant (`sda`); all of them where none is named.
    pub target: Option<String>,
    /// The value, as people write it.
    pub value: String,
}

/// A set that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {what}")]
pub struct BadSet {
    /// The set.
    pub name: String,
    /// What is wrong.
    pub what: String,
}

/// The sets that come with the program.
const SHIPPED: [(&str, &str); 3] = [
    ("quiet", include_str!("../sets/quiet.toml")),
    ("latency", include_str!("../sets/latency.toml")),
    ("throughput", include_str!("../sets/throughput.toml")),
];

/// A set as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    summary: String,
    knobs: BTreeMap<String, toml::Value>,
}

impl KnobSet {
    /// Reads a set: `summary`, and under `[knobs]` values by the names of knobs; `"io-scheduler@sda"` names a target.
    ///
    /// # Errors
    /// When it is no such text, or names a knob that there is not.
    pub fn parse(name: &str, text: &str) -> Result<Self, BadSet> {
        let bad = |what: String| BadSet { name: name.to_owned(), what };
        let Raw { summary, knobs } = toml::from_str(text).map_err(|error| bad(error.to_string().trim().to_owned()))?;
        let one = |(key, value): (String, toml::Value)| {
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Boolean(on) => if on { "on" } else { "off" }.to_owned(),
                toml::Value::Integer(number) => number.to_string(),
                other => return Err(bad(format!("`{key}` is {other}: a text, a number, true or false is expected"))),
            };
            Wanted::new(&key, value).map_err(bad)
        };
        Ok(Self { name: name.to_owned(), summary, knobs: knobs.into_iter().map(one).collect::<Result<_, _>>()? })
    }

    /// Those that come with the program.
    pub fn shipped() -> Vec<Self> {
        // A test reads each.
        SHIPPED.iter().filter_map(|(name, text)| Self::parse(name, text).ok()).collect()
    }
}

impl Wanted {
    /// `io-scheduler` or `io-scheduler@sda`, and a value.
    ///
    /// # Errors
    /// When there is no such knob; which there are.
    pub fn new(key: &str, value: String) -> Result<Self, String> {
        let (knob, target) = key.split_once('@').map_or((key, None), |(knob, target)| (knob, Some(target.to_owned())));
        match find(knob) {
            Some(knob) => Ok(Self { knob: knob.name().to_owned(), target, value }),
            None => {
                let names: Vec<&str> = knobs::all().iter().map(|knob| knob.name()).collect();
                Err(format!("there is no knob `{knob}`; there are {}", names.join(", ")))
            }
        }
    }
}

/// Short names.
const SHORT: [(&str, &str); 2] = [("thp", "thp-enabled"), ("scheduler", "io-scheduler")];

/// The knob of a name, `thp-enabled`, or of a short one, `thp`.
pub fn find(name: &str) -> Option<&'static dyn Knob> {
    let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    knobs::all().iter().copied().find(|knob| knob.name() == name)
}

impl Outcome {
    /// Why it cannot be set here, if so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unsupported { reason } => Some(reason),
            _ => None,
        }
    }
}

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
    /// It cannot be set here.
    Unsupported {
        /// Why.
        reason: String,
    },
}

/// What setting a knob comes to, before anything is written.
struct Planned {
    tuned: Tuned,
    target: Target,
    knob: &'static dyn Knob,
    writes: Vec<Write>,
}

/// What a set means on a machine; nothing is changed.
pub fn plan(sys: &SysRoot, set: &KnobSet) -> Vec<Tuned> {
    planned(sys, set).into_iter().map(|planned| planned.tuned).collect()
}

/// Sets what can be set, through the undo log: what cannot be is told and hinders nothing else.
///
/// # Errors
/// When the log cannot be written: then nothing more is changed.
pub fn apply(sys: &SysRoot, set: &KnobSet, log: &mut UndoLog) -> Result<Vec<Tuned>, UndoError> {
    let mut all = Vec::new();
    for Planned { mut tuned, target, knob, writes } in planned(sys, set) {
        if tuned.outcome == Outcome::Differs {
            tuned.outcome = match write(&writes, log)? {
                Some(reason) => Outcome::Unsupported { reason },
                None => {
                    let now = knob.read(sys, &target).map_or_else(|_| tuned.wanted.clone(), |value| value.to_string());
                    Outcome::Set { now }
                }
            };
        }
        all.push(tuned);
    }
    Ok(all)
}

/// Makes the writes of a knob; why that could not be, if so.
fn write(writes: &[Write], log: &mut UndoLog) -> Result<Option<String>, UndoError> {
    for write in writes {
        match log.change(write.step.clone(), Some(write.state.as_bytes())) {
            Ok(_) => {}
            Err(UndoError::Step(error)) => return Ok(Some(error.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn planned(sys: &SysRoot, set: &KnobSet) -> Vec<Planned> {
    set.knobs.iter().flat_map(|wanted| of_knob(sys, wanted)).collect()
}

fn of_knob(sys: &SysRoot, wanted: &Wanted) -> Vec<Planned> {
    let Some(knob) = find(&wanted.knob) else { return Vec::new() };
    let meant = |target: &Target| wanted.target.as_ref().is_none_or(|name| *name == target.to_string());
    let targets: Vec<Target> = knob.targets(sys).into_iter().filter(meant).collect();
    if targets.is_empty() {
        let reason = match &wanted.target {
            Some(target) => format!("there is no {target} here that it could be set for"),
            None => knob.absent().to_owned(),
        };
        return vec![planned_at(knob, wanted, Target::System, None, Err(Unsupported(reason)), sys)];
    }
    let at = |target: Target| {
        let was = knob.read(sys, &target).ok().map(|value| value.to_string());
        let writes = knob.set(sys, &target, &wanted.value);
        planned_at(knob, wanted, target, was, writes, sys)
    };
    targets.into_iter().map(at).collect()
}

fn planned_at(
    knob: &'static dyn Knob,
    wanted: &Wanted,
    target: Target,
    was: Option<String>,
    writes: Result<Vec<Write>, Unsupported>,
    sys: &SysRoot,
) -> Planned {
    let (outcome, writes) = match writes {
        Err(Unsupported(reason)) => (Outcome::Unsupported { reason }, Vec::new()),
        Ok(writes) => {
            let holds = |write: &Write| write.step.holds(sys, Some(write.state.as_bytes()));
            let outcome = match writes.iter().map(holds).collect::<Result<Vec<bool>, _>>() {
                Err(error) => Outcome::Unsupported { reason: error.to_string() },
                Ok(all) if all.iter().all(|holds| *holds) => Outcome::Already,
                Ok(_) => Outcome::Differs,
            };
            (outcome, writes)
        }
    };
    let tuned =
        Tuned { knob: knob.name().to_owned(), target: target.to_string(), was, wanted: wanted.value.clone(), outcome };
    Planned { tuned, target, knob, writes }
}

#[cfg(test)]
mod tests {
    use wb_sys::made;

    use super::*;

    #[test]
    fn shipped_sets_can_be_read() {
        assert_eq!(KnobSet::shipped().len(), SHIPPED.len());
        for set in KnobSet::shipped() {
            assert!(!set.summary.is_empty() && set.knobs.len() > 10, "{}", set.name);
        }
    }

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

    #[test]
    fn what_is_no_set_is_told() {
        let told = |text: &str| KnobSet::parse("x", text).unwrap_err().what;
        assert!(told("[knobs]\nswapiness = 1").starts_with("there is no knob `swapiness`; there are governor"));
        assert_eq!(told("[knobs]\nturbo = [1]"), "`turbo` is [1]: a text, a number, true or false is expected");
        assert!(told("knob = 1").contains("unknown field"));
    }
}
