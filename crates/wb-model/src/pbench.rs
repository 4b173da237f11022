//! The rules of pbench's result files that importing and comparing share.

use std::borrow::Cow;

/// The name under which pbench records the aggregate over all clients.
pub const ALL_CLIENTS: &str = "all";

/// Whether an iteration's name marks it as failed: `NAME-failN`.
pub fn is_failed_iteration(name: &str) -> bool {
    let number = name.rsplit_once("-fail").map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Quotes the numbers `NaN`, `Infinity` and `-Infinity`, which Python's JSON has beside those of the standard: one value
/// that is no figure then leaves the rest of a file readable. Texts are unchanged.
pub fn quote_non_finite(json: &str) -> Cow<'_, str> {
    const NAMES: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    if !NAMES.iter().any(|name| json.contains(name)) {
        return json.into();
    }
    let mut quoted = String::with_capacity(json.len() + 16);
    let (mut rest, mut is_text) = (json, false);
    while let Some(position) = rest.find(['"', '\\', 'N', 'I', '-']) {
        quoted.push_str(&rest[..position]);
        rest = &rest[position..];
        let name = NAMES.iter().find(|name| !is_text && rest.starts_with(**name));
        let length = match name {
            Some(name) => name.len(),
            // An escape is two characters, the second of any length.
            None if rest.starts_with('\\') => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            None => 1,
        };
        is_text ^= rest.starts_with('"');
        match name {
            Some(name) => quoted.extend(["\"", name, "\""]),
            None => quoted.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    (quoted + rest).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_python_are_quoted_outside_of_texts() {
        for (json, expected) in [
            (
                r#"{"a": NaN, "b": [-Infinity,Infinity], "c": -1}"#,
                r#"{"a": "NaN", "b": ["-Infinity","Infinity"], "c": -1}"#,
            ),
            (r#"{"NaN": "a NaN \" NaN \\", "b": NaN}"#, r#"{"NaN": "a NaN \" NaN \\", "b": "NaN"}"#),
            (r#"{"a": "NaN"}"#, r#"{"a": "NaN"}"#),
            ("NaN", "\"NaN\""),
            ("\"NaN\\", "\"NaN\\"),
            ("\\é NaN", "\\é \"NaN\""),
        ] {
            assert_eq!(quote_non_finite(json), expected);
        }
    }

    #[test]
    fn failed_iterations_end_with_their_number() {
        for (name, failed) in
            [("a-fail1", true), ("a-fail12", true), ("a-fail", false), ("a-fail1x", false), ("fail1", false)]
        {
            assert_eq!(is_failed_iteration(name), failed, "{name}");
        }
    }
}
