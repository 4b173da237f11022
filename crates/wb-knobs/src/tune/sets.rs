//! Sets of knobs, which are data: what they want.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Knob, knobs};

/// A named set of knobs, each with the value that it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobSet {
    /// Its name.
    pub name: String,
    /// What it is for, in a line.
    pub summary: String,
    /// What is set.
    pub knobs: Vec<KnobSetting>,
}

/// A knob and the value that it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnobSetting {
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
pub struct KnobSetError {
    /// The set.
    pub name: String,
    /// What is wrong.
    pub what: String,
}

/// The sets that come with the program.
const BUILTIN_SETS: [(&str, &str); 3] = [
    ("quiet", include_str!("../../sets/quiet.toml")),
    ("latency", include_str!("../../sets/latency.toml")),
    ("throughput", include_str!("../../sets/throughput.toml")),
];

/// A set as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKnobSet {
    #[serde(default)]
    summary: String,
    knobs: BTreeMap<String, toml::Value>,
}

impl KnobSet {
    /// Reads a set: `summary`, and under `[knobs]` values by the names of knobs; `"io-scheduler@sda"` names a target.
    ///
    /// # Errors
    /// When it is no such text, or names a knob that there is not.
    pub fn parse(name: &str, text: &str) -> Result<Self, KnobSetError> {
        let bad = |what: String| KnobSetError { name: name.to_owned(), what };
        let RawKnobSet { summary, knobs } =
            toml::from_str(text).map_err(|error| bad(error.to_string().trim().to_owned()))?;
        let one = |(key, value): (String, toml::Value)| {
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Boolean(on) => if on { "on" } else { "off" }.to_owned(),
                toml::Value::Integer(number) => number.to_string(),
                other => return Err(bad(format!("`{key}` is {other}: a text, a number, true or false is expected"))),
            };
            KnobSetting::new(&key, value).map_err(bad)
        };
        Ok(Self { name: name.to_owned(), summary, knobs: knobs.into_iter().map(one).collect::<Result<_, _>>()? })
    }

    /// Those that come with the program.
    pub fn builtin() -> Vec<Self> {
        // A test reads each.
        BUILTIN_SETS.iter().filter_map(|(name, text)| Self::parse(name, text).ok()).collect()
    }
}

impl KnobSetting {
    /// What it is called where it is written: `io-scheduler@sda`.
    pub fn key(&self) -> String {
        self.target.as_ref().map_or(self.knob.clone(), |target| format!("{}@{target}", self.knob))
    }

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
const ALIASES: [(&str, &str); 2] = [("thp", "thp-enabled"), ("scheduler", "io-scheduler")];

/// The knob of a name, `thp-enabled`, or of a short one, `thp`.
pub fn find(name: &str) -> Option<&'static dyn Knob> {
    let name = ALIASES.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
    knobs::all().iter().copied().find(|knob| knob.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_sets_can_be_read() {
        assert_eq!(KnobSet::builtin().len(), BUILTIN_SETS.len());
        for set in KnobSet::builtin() {
            assert!(!set.summary.is_empty() && set.knobs.len() > 10, "{}", set.name);
        }
    }

    #[test]
    fn what_is_no_set_is_told() {
        let told = |text: &str| KnobSet::parse("x", text).unwrap_err().what;
        assert!(told("[knobs]\nswapiness = 1").starts_with("there is no knob `swapiness`; there are governor"));
        assert_eq!(told("[knobs]\nturbo = [1]"), "`turbo` is [1]: a text, a number, true or false is expected");
        assert!(told("knob = 1").contains("unknown field"));
    }
}
