//! A case: one combination of a test's axes, and its name.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ParamValue;

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
pub struct ParseCaseError(String);

impl Case {
    /// The case of these axes.
    pub fn new<'a>(axes: impl IntoIterator<Item = (&'a str, &'a ParamValue)>) -> Self {
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

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'+')
}

fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if is_unreserved(byte) {
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
            byte if is_unreserved(byte) => out.push(byte),
            _ => return None,
        }
    }
    String::from_utf8(out).ok()
}

/// An identifier as people read it: what [`Case`] escapes is as it was, `targets=/dev/sda`. Control characters stay
/// escaped, and so does what is no escape.
pub fn unescape_lossy(identifier: &str) -> String {
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let run = rest[at..].split_inclusive(|c: char| c != '%' && !c.is_ascii_hexdigit()).next().unwrap_or("");
        let escapes = run.as_bytes().chunks_exact(3).take_while(|escape| decode_escape(escape).is_some()).count();
        let bytes: Vec<u8> = run.as_bytes().chunks_exact(3).take(escapes).filter_map(decode_escape).collect();
        let text = String::from_utf8(bytes).ok().filter(|text| escapes > 0 && !text.contains(char::is_control));
        let end = at + (escapes * 3).max(1);
        out.push_str(text.as_deref().unwrap_or(&rest[at..end]));
        rest = &rest[end..];
    }
    out + rest
}

/// The byte that `%2F` stands for.
fn decode_escape(escape: &[u8]) -> Option<u8> {
    let [b'%', high, low] = escape else { return None };
    u8::from_str_radix(std::str::from_utf8(&[*high, *low]).ok()?, 16).ok()
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
    type Err = ParseCaseError;

    fn from_str(text: &str) -> Result<Self, ParseCaseError> {
        if text == EMPTY {
            return Ok(Self::default());
        }
        let axis = |part: &str| {
            let (name, value) = part.split_once('=')?;
            Some((unescape(name).filter(|name| !name.is_empty())?, unescape(value)?))
        };
        let axes: Option<BTreeMap<_, _>> = text.split(',').map(axis).collect();
        axes.map(Self).ok_or_else(|| ParseCaseError(text.to_owned()))
    }
}

impl TryFrom<String> for Case {
    type Error = ParseCaseError;
    fn try_from(text: String) -> Result<Self, ParseCaseError> {
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
        let rw = ParamValue::Text("read".into());
        let target = ParamValue::Text("/dev/sd a,b".into());
        let case = Case::new([("targets", &target), ("rw", &rw)]);
        assert_eq!(case.to_string(), "rw=read,targets=%2Fdev%2Fsd%20a%2Cb");
        assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
    }

    #[test]
    fn people_read_identifiers_without_escapes() {
        let shown = |text| unescape_lossy(text);
        assert_eq!(shown("P/fio/0000:rw=read,targets=%2Fdev%2Fsd%20a%2Cb"), "P/fio/0000:rw=read,targets=/dev/sd a,b");
        assert_eq!(shown("name=%C3%A9t%C3%A9,n=50%25"), "name=été,n=50%");
        assert_eq!(shown("a=%0A%1B[2J,b=%ff,c=%,d=%4,e=%zz,%%41"), "a=%0A%1B[2J,b=%ff,c=%,d=%4,e=%zz,%A");
        assert_eq!(shown("nothing=escaped"), "nothing=escaped");
    }

    #[test]
    fn no_axes_have_a_name_too() {
        assert_eq!(Case::default().to_string(), "-");
        assert_eq!("-".parse::<Case>().unwrap(), Case::default());
        assert!("".parse::<Case>().is_err());
    }

    proptest! {
        #[test]
        fn what_people_read_has_every_printable_character(value in "[^\\p{Cc}]{0,12}", noise: String) {
            prop_assert_eq!(unescape_lossy(&escape(&value)), value);
            unescape_lossy(&noise);
        }

        #[test]
        fn any_value_survives_its_name(name in "[a-z][a-z-]*", value: String) {
            let value = ParamValue::Text(value);
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
