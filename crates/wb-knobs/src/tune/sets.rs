use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::unsupported::Unsupported;
use crate::{Knob, KnobTarget, knobs};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobSet {
    pub name: String,
    /// Purpose, in one line.
    pub summary: String,
    pub knobs: Vec<KnobSetting>,
}

/// A knob with the value to set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KnobSetting {
    /// Name of the knob, or its short name.
    pub knob: String,
    /// Target (`sda`); all default targets where none is named.
    pub target: Option<String>,
    /// Value as users write it: `128k`, `off`, `1200-2000`.
    pub value: String,
}

fn unknown_knob(name: &str) -> String {
    let names: Vec<&str> = knobs::all().iter().map(|knob| knob.name()).collect();
    format!("unknown knob `{name}`: expected one of {}", names.join(", "))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct KnobSetError {
    pub name: String,
    pub reason: String,
}

const BUILTIN_SETS: [(&str, &str); 3] = [
    ("quiet", include_str!("../../sets/quiet.toml")),
    ("latency", include_str!("../../sets/latency.toml")),
    ("throughput", include_str!("../../sets/throughput.toml")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKnobSet {
    #[serde(default)]
    summary: String,
    knobs: BTreeMap<String, toml::Value>,
}

impl KnobSet {
    /// Parses a set: `summary`, and under `[knobs]` values by the names of knobs; `"io-scheduler@sda"` names a target.
    pub fn parse(name: &str, text: &str) -> Result<Self, KnobSetError> {
        let invalid = |what: String| KnobSetError { name: name.to_owned(), reason: what };
        let RawKnobSet { summary, knobs } =
            toml::from_str(text).map_err(|error| invalid(error.to_string().trim().to_owned()))?;
        let parse_setting = |(key, value): (String, toml::Value)| {
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Boolean(on) => if on { "on" } else { "off" }.to_owned(),
                toml::Value::Integer(number) => number.to_string(),
                other => {
                    return Err(invalid(format!(
                        "invalid value {other} of `{key}`: expected a string, number or boolean"
                    )));
                }
            };
            let setting = KnobSetting::new(&key, value).map_err(invalid)?;
            setting.check_value().map_err(invalid)?;
            Ok(setting)
        };
        Ok(Self {
            name: name.to_owned(),
            summary,
            knobs: knobs.into_iter().map(parse_setting).collect::<Result<_, _>>()?,
        })
    }

    pub fn builtin() -> Vec<Self> {
        // A test parses each.
        BUILTIN_SETS.iter().filter_map(|(name, text)| Self::parse(name, text).ok()).collect()
    }
}

impl KnobSetting {
    /// The key in a knob set: `io-scheduler@sda`.
    pub fn key(&self) -> String {
        self.target.as_ref().map_or(self.knob.clone(), |target| format!("{}@{target}", self.knob))
    }

    /// Parses a user's `key`, `io-scheduler` or `io-scheduler@sda`. Fails with the known knobs if the knob is unknown.
    pub fn new(key: &str, value: String) -> Result<Self, String> {
        let setting = Self::from_checked_key(key, value);
        let knob = find(&setting.knob).ok_or_else(|| unknown_knob(&setting.knob))?;
        Ok(Self { knob: knob.name().to_owned(), ..setting })
    }

    /// Fails with the known knobs if its knob is none of them: it came from a program with other knobs.
    pub fn check_known(&self) -> Result<(), String> {
        find(&self.knob).map(|_| ()).ok_or_else(|| unknown_knob(&self.knob))
    }

    /// Splits a key whose knob was found to exist when the user's text was read. The name is kept as it is.
    pub fn from_checked_key(key: &str, value: String) -> Self {
        let (knob, target) = key.split_once('@').map_or((key, None), |(knob, target)| (knob, Some(target)));
        Self { knob: knob.to_owned(), target: target.map(str::to_owned), value }
    }

    /// The setting of a knob for one target, or for all default targets.
    pub fn for_knob(knob: &dyn Knob, target: Option<&KnobTarget>, value: &str) -> Self {
        Self { knob: knob.name().to_owned(), target: target.map(KnobTarget::to_string), value: value.to_owned() }
    }

    /// Checks the value as far as it is valid or invalid on every machine.
    pub fn check_value(&self) -> Result<(), String> {
        let checked = find(&self.knob).map_or(Ok(()), |knob| knob.check_value(&self.value));
        checked.map_err(
            |Unsupported(reason)| {
                if reason.contains(&self.knob) { reason } else { format!("knob `{}`: {reason}", self.key()) }
            },
        )
    }
}

const ALIASES: [(&str, &str); 2] = [("thp", "thp-enabled"), ("scheduler", "io-scheduler")];

/// Finds a knob by its name, `thp-enabled`, or its short name, `thp`.
pub fn find(name: &str) -> Option<&'static dyn Knob> {
    let name = ALIASES.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    knobs::all().iter().copied().find(|knob| knob.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_sets_can_be_parsed() {
        assert_eq!(KnobSet::builtin().len(), BUILTIN_SETS.len());
        for set in KnobSet::builtin() {
            assert!(!set.summary.is_empty() && set.knobs.len() > 10, "{}", set.name);
        }
    }

    #[test]
    fn every_knob_refuses_what_no_machine_accepts() {
        // Options that modules, drivers, firmware or files of the user define.
        const OPEN: [&str; 6] =
            ["governor", "energy-preference", "tuned-profile", "platform-profile", "clocksource", "io-scheduler"];
        for knob in knobs::all() {
            let setting = KnobSetting::new(knob.name(), "no such value".to_owned()).unwrap();
            assert_eq!(setting.check_value().is_ok(), OPEN.contains(&knob.name()), "{}", knob.name());
        }
        for set in KnobSet::builtin() {
            set.knobs.iter().for_each(|setting| assert_eq!(setting.check_value(), Ok(()), "{}", setting.key()));
        }
    }

    #[test]
    fn settings_round_trip_and_unknown_knobs_are_refused() {
        for key in ["swappiness", "scheduler@sda", "nr-hugepages@node0/1048576kB"] {
            let setting = KnobSetting::from_checked_key(key, "1".to_owned());
            assert_eq!(setting.key(), key);
            let json = serde_json::to_string(&setting).unwrap();
            assert_eq!(serde_json::from_str::<KnobSetting>(&json).unwrap(), setting);
        }
        let error = KnobSetting::from_checked_key("swapiness", "1".to_owned()).check_known().unwrap_err();
        assert!(error.starts_with("unknown knob `swapiness`: expected one of governor"), "{error}");
    }

    #[test]
    fn invalid_sets_are_refused() {
        let message = |text: &str| KnobSet::parse("x", text).unwrap_err().reason;
        assert!(message("[knobs]\nswapiness = 1").starts_with("unknown knob `swapiness`: expected one of governor"));
        assert_eq!(
            message("[knobs]\nturbo = [1]"),
            "invalid value [1] of `turbo`: expected a string, number or boolean"
        );
        assert!(message("knob = 1").contains("unknown field"));
    }
}
