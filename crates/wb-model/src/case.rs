//! A case: one combination of a test's axes, and its name.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Value;

/// The axes of a cell with their values, sorted by name: `block-size=4k,rw=read`.
/// A test without axes has the case `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Case(BTreeMap<String, String>);

/// The name of the case of a test without axes.
const EMPTY: &str = "-";

/// A text that is no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a case: `axis=value,axis=value` is expected")]
pub struct BadCase(String);

impl Case {
    /// The case of these axes.
    pub fn new<'a>(axes: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        Self(axes.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect())
    }

    /// The axes and their values as text, sorted by name.
    pub fn axes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are no axes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of one axis.
    pub fn get(&self, axis: &str) -> Option<&str> {
        self.0.get(axis).map(String::as_str)
    }

    /// The same case without one axis: what cells of a curve over that axis have in common.
    pub fn without(&self, axis: &str) -> Self {
        Self(self.0.iter().filter(|(name, _)| *name != axis).map(|(n, v)| (n.clone(), v.clone())).collect())
    }
}

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'+')
}

fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if plain(byte) {
            out.push(byte as char)
        } else {
            out.push_str(&format!("%{byte:02X}"))
        }
        out
    })
}

fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            byte if plain(byte) => out.push(byte),
            _ => return None,
        }
    }
    String::from_utf8(out).ok()
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.pad(EMPTY);
        }
        let parts: Vec<String> =
            self.0.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
        f.pad(&parts.join(","))
    }
}

impl FromStr for Case {
    type Err = BadCase;

    fn from_str(text: &str) -> Result<Self, BadCase> {
        if text == EMPTY {
            return Ok(Self::default());
        }
        let axis = |part: &str| {
            let (name, value) = part.split_once('=')?;
            Some((unescape(name).filter(|name| !name.is_empty())?, unescape(value)?))
        };
        let axes: Option<BTreeMap<_, _>> = text.split(',').map(axis).collect();
        axes.map(Self).ok_or_else(|| BadCase(text.to_owned()))
    }
}

impl TryFrom<String> for Case {
    type Error = BadCase;
    fn try_from(text: String) -> Result<Self, BadCase> {
        text.parse()
    }
}

impl From<Case> for String {
    fn from(case: Case) -> String {
        case.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn axes_are_sorted_and_escaped() {
        let rw = Value::Text("read".into());
        let target = Value::Text("/dev/sd a,b".into());
        let case = Case::new([("targets", &target), ("rw", &rw)]);
        assert_eq!(case.to_string(), "rw=read,targets=%2Fdev%2Fsd%20a%2Cb");
        assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
    }

    #[test]
    fn no_axes_have_a_name_too() {
        assert_eq!(Case::default().to_string(), "-");
        assert_eq!("-".parse::<Case>().unwrap(), Case::default());
        assert!("".parse::<Case>().is_err());
    }

    proptest! {
        #[test]
        fn any_value_survives_its_name(name in "[a-z][a-z-]*", value: String) {
            let value = Value::Text(value);
            let case = Case::new([(name.as_str(), &value)]);
            prop_assert!(!case.to_string().contains('/'));
            prop_assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Case>();
        }
    }
}
