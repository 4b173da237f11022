//! Messages of serde in the words of users, who know no type of Rust.

/// Returns a message of serde without the names of Rust types: `invalid type: string "2", expected u32` becomes
/// `invalid value "2": expected a whole number from 0 to 4294967295`. Any other message comes back as it is.
pub fn humanize_serde_error(message: &str) -> String {
    let kinds = ["invalid type: ", "invalid value: "];
    let Some(rest) = kinds.iter().find_map(|kind| message.strip_prefix(kind)) else {
        return match message.split_once("data did not match any variant of untagged enum ") {
            Some((before, after)) => {
                let place = after.find(" at line ").map_or("", |at| &after[at..]);
                format!("{before}invalid value: none of its forms has such a value{place}")
            }
            None => message.to_owned(),
        };
    };
    let Some((given, expected)) = rest.rsplit_once(", expected ") else { return message.to_owned() };
    let (expected, place) = expected.split_at(expected.find(" at line ").unwrap_or(expected.len()));
    format!("invalid value {}: expected {}{place}", describe_given(given), describe_expected(expected))
}

/// A value that serde names with its type: `string "2"`, `` integer `-1` ``, `map`.
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

/// What serde expects, by the name of a Rust type or in words of its own.
fn describe_expected(expected: &str) -> String {
    let whole = |least: i128, most: i128| format!("a whole number from {least} to {most}");
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
        "a string" | "string" => "a text".to_owned(),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    fn of<T: for<'de> Deserialize<'de>>(json: &str) -> String {
        let Err(error) = serde_json::from_str::<T>(json) else { panic!("{json} is one") };
        humanize_serde_error(&error.to_string())
    }

    #[test]
    fn what_was_expected_is_told_without_the_names_of_rust_types() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "it is never made")]
        struct Shape {
            size: u8,
        }
        let whole = "expected a whole number from";
        for (said, expected) in [
            (of::<u32>("\"2\""), format!("invalid value \"2\": {whole} 0 to 4294967295 at line 1 column 3")),
            (of::<u32>("-1"), format!("invalid value `-1`: {whole} 0 to 4294967295 at line 1 column 2")),
            (of::<u8>("1.5"), format!("invalid value `1.5`: {whole} 0 to 255 at line 1 column 3")),
            (of::<bool>("1"), "invalid value `1`: expected true or false at line 1 column 1".to_owned()),
            (of::<f64>("true"), "invalid value `true`: expected a number at line 1 column 4".to_owned()),
            (of::<Vec<u8>>("3"), "invalid value `3`: expected a list at line 1 column 1".to_owned()),
            (
                of::<BTreeMap<String, u8>>("3"),
                "invalid value `3`: expected names and values at line 1 column 1".to_owned(),
            ),
            (of::<Shape>("3"), "invalid value `3`: expected names and values at line 1 column 1".to_owned()),
            (of::<Shape>("{}"), "missing field `size` at line 1 column 2".to_owned()),
        ] {
            assert_eq!(said, expected);
        }
        assert!(of::<i64>("[]").starts_with(&format!("invalid value of a list: {whole} -9223372036854775808 to")));
        assert!(of::<String>("{}").starts_with("invalid value of names and values: expected a text"));
    }

    #[test]
    fn a_text_with_the_words_of_a_message_is_quoted_whole() {
        let said = humanize_serde_error("invalid type: string \"a, expected u8\", expected u32");
        assert_eq!(said, "invalid value \"a, expected u8\": expected a whole number from 0 to 4294967295");
    }

    #[test]
    fn an_unnamed_choice_is_not_told_by_its_type() {
        let said = humanize_serde_error("data did not match any variant of untagged enum Words at line 1 column 3");
        assert_eq!(said, "invalid value: none of its forms has such a value at line 1 column 3");
    }
}
