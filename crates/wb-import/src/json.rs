//! Lenient parsing of JSON among other output, with several documents in a file, numbers as text, and values that are
//! not finite.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IgnoredAny};

use crate::ReadError;
use crate::format::Format;

/// Maximum number of invalid starts of a document that are tried.
const MAX_TRIES: usize = 16;

/// Parses a file that is one document, among other lines.
pub(crate) fn parse_document<T: DeserializeOwned>(format: Format, text: &str) -> Result<T, ReadError> {
    let opening = format.definition().opening;
    let quoted = quote_non_finite(text);
    let (mut first_error, mut index) = (None, 0);
    for _ in 0..MAX_TRIES {
        let Some(start) = find_document_start(&quoted, opening, index) else { break };
        match parse_at(&quoted, start) {
            Ok((document, end)) => {
                return match find_document_start(&quoted, opening, end) {
                    None => Ok(document),
                    Some(next) => {
                        let line = 1 + quoted[..next].matches('\n').count();
                        let reason = format!("line {line}: another document, expected one");
                        Err(ReadError::Malformed { format, reason })
                    }
                };
            }
            Err(error) => {
                first_error.get_or_insert_with(|| error.locate(format, text, &quoted, start));
                index = start + 1;
            }
        }
    }
    Err(first_error.unwrap_or_else(|| no_document(format)))
}

#[derive(Debug)]
pub(crate) struct Document<T> {
    pub(crate) content: T,
    /// Text between it and the next document.
    pub(crate) trailer: String,
}

#[derive(Debug)]
pub(crate) struct Documents<T> {
    /// At least one.
    pub(crate) complete: Vec<Document<T>>,
    /// Error of a document that the text ends within.
    pub(crate) truncated: Option<ReadError>,
}

/// Each document begins at the start of a line; other lines are skipped. An error is that of the first possible start
/// of a document.
pub(crate) fn parse_documents<T: DeserializeOwned>(format: Format, text: &str) -> Result<Documents<T>, ReadError> {
    let quoted = quote_non_finite(text);
    let (mut documents, mut first_error, mut tries, mut position) = (Vec::<Document<T>>::new(), None, 0, 0);
    let (mut last_end, mut truncated) = (0, None);
    while let Some(start) = find_document_start(&quoted, '{', position).filter(|_| tries < MAX_TRIES) {
        match parse_at(&quoted, start) {
            Ok((content, end)) => {
                if let Some(last) = documents.last_mut() {
                    last.trailer = quoted[last_end..start].to_owned();
                }
                position = end;
                (last_end, truncated) = (end, None);
                documents.push(Document { content, trailer: String::new() });
            }
            Err(error) => {
                tries += 1;
                first_error.get_or_insert_with(|| error.locate(format, text, &quoted, start));
                if error.0.is_eof() {
                    truncated.get_or_insert_with(|| error.locate(format, text, &quoted, start));
                }
                position = start + 1;
            }
        }
    }
    if let Some(last) = documents.last_mut() {
        last.trailer = quoted[last_end..].to_owned();
    }
    match (documents.is_empty(), first_error) {
        (false, _) => Ok(Documents { complete: documents, truncated }),
        (true, error) => Err(error.unwrap_or_else(|| no_document(format))),
    }
}

fn no_document(format: Format) -> ReadError {
    ReadError::Malformed { format, reason: "no JSON object".to_owned() }
}

struct DocumentError(serde_json::Error);

/// Parses the document at a position; returns it with its end.
fn parse_at<T: DeserializeOwned>(text: &str, start: usize) -> Result<(T, usize), DocumentError> {
    let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter();
    match stream.next() {
        Some(Ok(document)) => Ok((document, start + stream.byte_offset())),
        Some(Err(error)) => Err(DocumentError(error)),
        None => Err(DocumentError(<serde_json::Error as serde::de::Error>::custom("no JSON object"))),
    }
}

impl DocumentError {
    /// Error with its position in the text before values were quoted.
    fn locate(&self, format: Format, text: &str, quoted: &str, start: usize) -> ReadError {
        let lines_before = quoted[..start].matches('\n').count();
        let line = self.0.line() + lines_before;
        let line_of = |text: &str| text.lines().nth(line.saturating_sub(1)).unwrap_or_default().as_bytes().to_vec();
        let (mut original, mut column) = (line_of(text).into_iter().peekable(), self.0.column());
        for byte in line_of(quoted).into_iter().take(self.0.column()) {
            // What is not in the original is a quote.
            if original.next_if_eq(&byte).is_none() {
                column -= 1;
            }
        }
        ReadError::Malformed { format, reason: format!("line {line}, column {column}: {}", describe(&self.0)) }
    }
}

/// Whether a text is what C or JavaScript prints for a number that is not finite.
pub(crate) fn is_non_finite(text: &str) -> bool {
    let name = text.strip_prefix(['-', '+']).unwrap_or(text);
    ["nan", "inf", "infinity"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Quotes bare values that are not finite (`NaN`, `-inf`), which JSON does not allow, so that the rest of the file is
/// read. Texts are unchanged; none continues beyond its line.
fn quote_non_finite(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut quoted, mut copied) = (String::new(), 0);
    let (mut position, mut is_text) = (0, false);
    while let Some(byte) = bytes.get(position) {
        match byte {
            b'\n' => is_text = false,
            b'"' => is_text = !is_text,
            b'\\' if is_text => position += 1,
            b'+' | b'-' | b'A'..=b'Z' | b'a'..=b'z' if !is_text => {
                let word = bytes[position + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
                let end = position + 1 + word;
                if is_non_finite(&text[position..end]) {
                    quoted.extend([&text[copied..position], "\"", &text[position..end], "\""]);
                    copied = end;
                }
                position = end - 1;
            }
            _ => {}
        }
        position += 1;
    }
    if copied == 0 { text.into() } else { (quoted + &text[copied..]).into() }
}

pub(crate) fn check_well_formed(text: &str) -> Result<(), String> {
    let quoted = quote_non_finite(text);
    let documents = serde_json::Deserializer::from_str(&quoted).into_iter::<IgnoredAny>();
    let mut documents = documents.map(|document| document.map_err(|error| format_location(&error, 0))).peekable();
    match documents.peek() {
        Some(_) => documents.try_for_each(|document| document.map(drop)),
        None => Err("empty file".to_owned()),
    }
}

/// Position of the next opening bracket at the start of a line, or directly after a document.
fn find_document_start(text: &str, opening: char, from: usize) -> Option<usize> {
    let rest = &text[from..];
    if rest.trim_start().starts_with(opening) {
        return Some(from + rest.len() - rest.trim_start().len());
    }
    rest.match_indices('\n')
        .map(|(position, _)| from + position + 1)
        .find(|position| text[*position..].starts_with(opening))
}

pub(crate) fn malformed(format: Format, error: &serde_json::Error, lines_before: usize) -> ReadError {
    ReadError::Malformed { format, reason: format_location(error, lines_before) }
}

fn format_location(error: &serde_json::Error, lines_before: usize) -> String {
    format!("line {}, column {}: {}", error.line() + lines_before, error.column(), describe(error))
}

fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    without_type_names(text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message))
}

/// Replaces names of this program's types in a parser's message by JSON's kinds of values.
pub(crate) fn without_type_names(message: &str) -> String {
    if message.contains("did not match any variant of untagged enum") {
        return "unexpected kind of value".to_owned();
    }
    let message = message.replace("invalid type: map", "invalid type: object");
    let message = message.replace("invalid type: sequence", "invalid type: list");
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message };
    let (kind, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    let (kind, rest) = match kind {
        "a" if rest == "sequence" => ("a list", ""),
        "a" if rest == "map" => ("an object", ""),
        "struct" | "enum" => ("an object", rest.split_once(' ').map_or("", |(_, rest)| rest)),
        "f32" | "f64" => ("a number", rest),
        _ if kind.strip_prefix(['u', 'i']).is_some_and(|size| size == "size" || size.parse::<u8>().is_ok()) => {
            ("an integer", rest)
        }
        _ => return message,
    };
    format!("{found}, expected {kind} {rest}").trim_end().to_owned()
}

/// Converts any value to text; a string without its quotes.
pub(crate) fn to_plain_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::formats::{fio, hyperfine, pbench};

    #[test]
    fn documents_are_found_among_other_lines() {
        let count = |text: &str| parse_documents::<Value>(fio::FORMAT, text).unwrap().complete.len();
        assert_eq!(count("{}"), 1);
        assert_eq!(count("a: {x}\n{ \"a\": 1 }\n\nb\n{}\n"), 2);
        assert_eq!(count("{}{}"), 2);
        assert_eq!(count("{broken\n{}"), 1);
    }

    #[test]
    fn text_after_a_document_is_its_trailer() {
        let documents = parse_documents::<Value>(fio::FORMAT, "a\n{}\nb\n{}{}\nc").unwrap();
        let trailers: Vec<&str> = documents.complete.iter().map(|document| document.trailer.as_str()).collect();
        assert_eq!(trailers, ["\nb\n", "", "\nc"]);
    }

    // A report that is cut off or followed by an error was read as if nothing had happened.
    #[test]
    fn only_a_document_at_the_end_is_truncated() {
        let truncated = |text: &str| parse_documents::<Value>(fio::FORMAT, text).unwrap().truncated;
        for complete in ["{}", "{}\nend }", "{}\n{ not JSON }", "{\n{}"] {
            assert!(truncated(complete).is_none(), "{complete}");
        }
        let error = truncated("{}\n{\n\"a\": 1,\n").unwrap();
        assert!(error.to_string().starts_with("invalid fio results: line 4, column 0: EOF"), "{error}");
    }

    #[test]
    fn an_error_has_its_line_in_the_file() {
        let error = parse_documents::<Value>(fio::FORMAT, "x\n{\n\"a\": }").unwrap_err();
        assert_eq!(error.to_string(), "invalid fio results: line 3, column 6: expected value");
    }

    #[test]
    fn values_that_are_not_finite_are_read_and_move_no_position() {
        for value in ["NaN", "nan", "-nan", "Infinity", "-Infinity", "inf", "-inf"] {
            let text = format!("it's \" here\n{{\"a\": {value}, \"b\": [{value},1], \"inf\": \"\\\" inf nan\"}}");
            let document: Value = parse_document(fio::FORMAT, &text).unwrap();
            assert_eq!(document, serde_json::json!({"a": value, "b": [value, 1], "inf": "\" inf nan"}), "{text}");
            let broken = format!("{{\"a\": {value}, \"b\": }}");
            let column = 14 + value.len();
            let error = parse_document::<Value>(fio::FORMAT, &broken).unwrap_err().to_string();
            assert!(error.ends_with(&format!("line 1, column {column}: expected value")), "{broken}: {error}");
        }
    }

    #[test]
    fn one_document_is_read_among_other_lines() {
        for text in ["{}", " \n {}\n", "a {\n***\n{}\n", "{}\nwarning", "{broken\n{}"] {
            assert_eq!(parse_document::<Value>(hyperfine::FORMAT, text).unwrap(), serde_json::json!({}), "{text}");
        }
        assert_eq!(parse_document::<Value>(pbench::FORMAT, "x\n[1]").unwrap(), serde_json::json!([1]));
        let error = parse_document::<Value>(hyperfine::FORMAT, "{}\n{}").unwrap_err();
        assert_eq!(error.to_string(), "invalid hyperfine results: line 2: another document, expected one");
    }

    #[test]
    fn messages_have_no_names_of_types() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its errors matter")]
        struct Outer {
            number: f64,
            integer: u32,
            list: Vec<i64>,
            nested: Box<Option<Outer>>,
        }
        for (text, expected) in [
            ("{\"number\": \"x\"}", "invalid type: string \"x\", expected a number"),
            ("{\"integer\": -1}", "invalid value: integer `-1`, expected an integer"),
            ("{\"list\": {}}", "invalid type: object, expected a list"),
            ("{\"list\": [1.5]}", "invalid type: floating point `1.5`, expected an integer"),
            ("{\"nested\": 5}", "invalid type: integer `5`, expected an object"),
        ] {
            let error = parse_document::<Outer>(fio::FORMAT, text).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn invalid_json_is_reported() {
        assert_eq!(check_well_formed("{\"a\": [1]}\n{}"), Ok(()));
        assert_eq!(check_well_formed(" \n"), Err("empty file".to_owned()));
        assert_eq!(check_well_formed("{}\n{\"a\": 1"), Err("line 2, column 7: EOF while parsing an object".to_owned()));
    }
}
