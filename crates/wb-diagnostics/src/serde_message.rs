//! Rewrites messages of serde for users who do not know Rust types, and finds the unknown name in them.

use crate::{Suggestion, suggest};

/// Rewrites a message of serde without the names of Rust types: `invalid type: string "2", expected u32` becomes
/// `invalid value "2": expected a whole number from 0 to 4294967295`. Any other message is returned unchanged.
pub fn humanize_serde_error(message: &str) -> String {
    let prefixes = ["invalid type: ", "invalid value: "];
    let Some(rest) = prefixes.iter().find_map(|prefix| message.strip_prefix(prefix)) else {
        return match message.split_once("data did not match any variant of untagged enum ") {
            Some((before, after)) => {
                let place = after.find(" at line ").map_or("", |position| &after[position..]);
                format!("{before}invalid value: matches none of the accepted forms{place}")
            }
            None => describe_truncation(message).unwrap_or_else(|| message.to_owned()),
        };
    };
    let Some((given, expected)) = rest.rsplit_once(", expected ") else { return message.to_owned() };
    let (expected, place) = expected.split_at(expected.find(" at line ").unwrap_or(expected.len()));
    format!("invalid value {}: expected {}{place}", describe_given(given), describe_expected(expected))
}

/// Describes JSON that ends too early: `EOF while parsing an object at line 1 column 1`.
fn describe_truncation(message: &str) -> Option<String> {
    let rest = message.strip_prefix("EOF while parsing ")?;
    let place = rest.find(" at line ").map_or("", |position| &rest[position..]);
    Some(format!("incomplete JSON{place}"))
}

/// Describes a value that serde prints with its type: `string "2"`, `` integer `-1` ``, `map`.
fn describe_given(given: &str) -> &str {
    match given {
        "map" => "of names and values",
        "sequence" => "of a list",
        _ => {
            let start = given.find(['"', '`']).unwrap_or(0);
            &given[start..]
        }
    }
}

/// Describes what serde expects, given as the name of a Rust type or in serde's words.
fn describe_expected(expected: &str) -> String {
    let whole = |min: i128, max: i128| format!("a whole number from {min} to {max}");
    match expected {
        "u8" => whole(0, u8::MAX.into()),
        "u16" => whole(0, u16::MAX.into()),
        "u32" => whole(0, u32::MAX.into()),
        "u64" | "usize" => whole(0, u64::MAX.into()),
        "i8" => whole(i8::MIN.into(), i8::MAX.into()),
        "i16" => whole(i16::MIN.into(), i16::MAX.into()),
        "i32" => whole(i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => whole(i64::MIN.into(), i64::MAX.into()),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "string" => "a string".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "names and values".to_owned(),
        "unit" | "null" => "nothing".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => {
            "names and values".to_owned()
        }
        other if other.starts_with("enum ") => "one of its names".to_owned(),
        other if other.starts_with("tuple ") || other.starts_with("a tuple ") => "a list".to_owned(),
        other => other.to_owned(),
    }
}

/// An unknown name in a message of serde: ``unknown field `min-tme`, expected one of `min-time`, …``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName<'a> {
    pub kind: UnknownKind,
    pub given: &'a str,
    pub expected: Vec<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownKind {
    Field,
    Variant,
}

impl<'a> UnknownName<'a> {
    /// Parses a message of serde; `None` if it is about anything else.
    pub fn parse(message: &'a str) -> Option<Self> {
        let (kind, rest) = [(UnknownKind::Field, "unknown field "), (UnknownKind::Variant, "unknown variant ")]
            .into_iter()
            .find_map(|(kind, start)| Some((kind, message.strip_prefix(start)?)))?;
        let mut names = rest.split('`').skip(1).step_by(2);
        Some(Self { kind, given: names.next()?, expected: names.collect() })
    }

    pub fn suggestion(&self) -> Option<Suggestion> {
        suggest(self.given, &self.expected)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    fn message<T: for<'de> Deserialize<'de>>(json: &str) -> String {
        let Err(error) = serde_json::from_str::<T>(json) else { panic!("{json} is valid") };
        humanize_serde_error(&error.to_string())
    }

    #[test]
    fn messages_have_no_names_of_rust_types() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "it is never constructed")]
        struct Shape {
            size: u8,
        }
        let whole = "expected a whole number from";
        for (actual, expected) in [
            (message::<u32>("\"2\""), format!("invalid value \"2\": {whole} 0 to 4294967295 at line 1 column 3")),
            (message::<u32>("-1"), format!("invalid value `-1`: {whole} 0 to 4294967295 at line 1 column 2")),
            (message::<u8>("1.5"), format!("invalid value `1.5`: {whole} 0 to 255 at line 1 column 3")),
            (message::<bool>("1"), "invalid value `1`: expected true or false at line 1 column 1".to_owned()),
            (message::<f64>("true"), "invalid value `true`: expected a number at line 1 column 4".to_owned()),
            (message::<Vec<u8>>("3"), "invalid value `3`: expected a list at line 1 column 1".to_owned()),
            (
                message::<BTreeMap<String, u8>>("3"),
                "invalid value `3`: expected names and values at line 1 column 1".to_owned(),
            ),
            (message::<Shape>("3"), "invalid value `3`: expected names and values at line 1 column 1".to_owned()),
            (message::<Shape>("{}"), "missing field `size` at line 1 column 2".to_owned()),
        ] {
            assert_eq!(actual, expected);
        }
        assert!(message::<i64>("[]").starts_with(&format!("invalid value of a list: {whole} -9223372036854775808 to")));
        assert!(message::<String>("{}").starts_with("invalid value of names and values: expected a string"));
    }

    #[test]
    fn json_that_ends_too_early_is_incomplete() {
        assert_eq!(message::<BTreeMap<String, u8>>("{"), "incomplete JSON at line 1 column 1");
        assert_eq!(message::<Vec<u8>>("[1"), "incomplete JSON at line 1 column 2");
    }

    #[test]
    fn a_string_that_resembles_a_message_is_quoted_completely() {
        let message = humanize_serde_error("invalid type: string \"a, expected u8\", expected u32");
        assert_eq!(message, "invalid value \"a, expected u8\": expected a whole number from 0 to 4294967295");
    }

    #[test]
    fn an_untagged_enum_is_not_named() {
        let message = humanize_serde_error("data did not match any variant of untagged enum Words at line 1 column 3");
        assert_eq!(message, "invalid value: matches none of the accepted forms at line 1 column 3");
    }
    #[test]
    fn an_unknown_name_is_found_with_the_valid_ones() {
        let message = "unknown field `sumary`, expected one of `summary`, `sets`, `knobs`";
        let unknown = UnknownName::parse(message).unwrap();
        assert_eq!((unknown.kind, unknown.given), (UnknownKind::Field, "sumary"));
        assert_eq!(unknown.expected, ["summary", "sets", "knobs"]);
        assert_eq!(unknown.suggestion(), Some(Suggestion::new("summary")));
        let unknown = UnknownName::parse("unknown variant `zebra`, expected `a` or `b`").unwrap();
        assert_eq!((unknown.kind, unknown.suggestion()), (UnknownKind::Variant, None));
        assert_eq!(UnknownName::parse("missing field `is`"), None);
    }
}
