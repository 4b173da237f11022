//! Cases: combinations of a test's axes, and their names.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ParamValue, is_unprintable};

/// The axes of a cell with their values, sorted by name: `block-size=4k,rw=read`.
/// A test without axes has the case `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Case(BTreeMap<String, String>);

/// The name of the case of a test without axes.
const EMPTY: &str = "-";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid case `{0}`: expected axis=value,axis=value")]
pub struct ParseCaseError(String);

impl Case {
    pub fn new<'a>(axes: impl IntoIterator<Item = (&'a str, &'a ParamValue)>) -> Self {
        Self(axes.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect())
    }

    /// Returns the axes and their values as text, sorted by name.
    pub fn axes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, axis: &str) -> Option<&str> {
        self.0.get(axis).map(String::as_str)
    }

    /// Returns the case without one axis, which is common to all cells of a curve over that axis.
    pub fn without(&self, axis: &str) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(name, _)| *name != axis)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
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

/// Reverses the escapes of [`Case`] for display, as in `targets=/dev/sda`. Escaped control characters, marks of the
/// direction of text, and invalid escapes stay as they are.
pub fn unescape_lossy(identifier: &str) -> String {
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(index) = rest.find('%') {
        out.push_str(&rest[..index]);
        let bytes: Vec<u8> = rest.as_bytes()[index..].chunks_exact(3).map_while(decode_escape).collect();
        let escapes = bytes.len();
        let end = index + (escapes * 3).max(1);
        let encoded = &rest[index..end];
        rest = &rest[end..];
        if bytes.is_empty() {
            out.push_str(encoded);
            continue;
        }
        let mut position = 0;
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                let length = character.len_utf8();
                if is_unprintable(character) {
                    out.push_str(&encoded[position * 3..(position + length) * 3])
                } else {
                    out.push(character)
                }
                position += length;
            }
            let invalid = chunk.invalid().len();
            out.push_str(&encoded[position * 3..(position + invalid) * 3]);
            position += invalid;
        }
    }
    out + rest
}

/// Decodes an escape such as `%2F`.
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
            // An empty name is valid: other programs have such parameters, and every case that is written must be readable.
            Some((unescape(name)?, unescape(value)?))
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
    fn identifiers_are_displayed_without_escapes() {
        let display = |text| unescape_lossy(text);
        assert_eq!(display("P/fio/0000:rw=read,targets=%2Fdev%2Fsd%20a%2Cb"), "P/fio/0000:rw=read,targets=/dev/sd a,b");
        assert_eq!(display("name=%C3%A9t%C3%A9,n=50%25"), "name=été,n=50%");
        assert_eq!(display("a=%0A%1B[2J,b=%ff,c=%,d=%4,e=%zz,%%41"), "a=%0A%1B[2J,b=%ff,c=%,d=%4,e=%zz,%A");
        assert_eq!(display("nothing=escaped"), "nothing=escaped");
        let neighbours = escape("a,b \"q\" ü\nx\u{85}é");
        assert_eq!(display(&neighbours), "a,b \"q\" ü%0Ax%C2%85é");
        assert_eq!(display("c=%20%ff%20"), "c= %ff ");
    }

    // An import of a parameter with an empty name wrote one, which made the run unreadable.
    #[test]
    fn an_axis_may_have_an_empty_name() {
        let case = Case::new([("", &ParamValue::Text("x".into()))]);
        assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
    }

    #[test]
    fn the_empty_case_has_a_name() {
        assert_eq!(Case::default().to_string(), "-");
        assert_eq!("-".parse::<Case>().unwrap(), Case::default());
        assert!("".parse::<Case>().is_err());
    }

    #[test]
    fn what_controls_the_text_around_it_stays_escaped() {
        for mark in ['\u{61c}', '\u{200e}', '\u{202e}', '\u{2069}', '\u{1b}', '\u{9b}'] {
            let escaped = super::escape(&format!("a{mark}b/"));
            assert_eq!(unescape_lossy(&escaped), escaped.replace("%2F", "/"), "{escaped}");
        }
    }

    proptest! {
        #[test]
        fn printable_characters_are_unescaped(value in "[^\\p{Cc}\\p{Bidi_Control}]{0,12}", noise: String) {
            prop_assert_eq!(unescape_lossy(&escape(&value)), value);
            unescape_lossy(&noise);
        }

        #[test]
        fn every_case_survives_a_round_trip(axes in proptest::collection::btree_map(".{0,4}", ".{0,8}", 0..4)) {
            let axes: Vec<_> = axes.into_iter().map(|(name, value)| (name, ParamValue::Text(value))).collect();
            let case = Case::new(axes.iter().map(|(name, value)| (name.as_str(), value)));
            prop_assert!(!case.to_string().contains('/'));
            prop_assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Case>();
        }
    }
}
