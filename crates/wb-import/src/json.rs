//! Lenient parsing of JSON of other programs: among other output, several documents in a file, numbers as text.

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, de::IgnoredAny};

use crate::ReadError;
use crate::format::Format;

/// Maximum number of invalid starts of a document that are tried.
const MAX_TRIES: usize = 16;

/// Parses a file that is one document.
pub(crate) fn parse_document<T: DeserializeOwned>(format: Format, text: &str) -> Result<T, ReadError> {
    serde_json::from_str(text).map_err(|error| malformed(format, &error, 0))
}

/// A document in a text.
#[derive(Debug)]
pub(crate) struct Document<'a, T> {
    pub(crate) content: T,
    /// The text between it and the next document.
    pub(crate) trailer: &'a str,
}

/// Documents in a text.
#[derive(Debug)]
pub(crate) struct Documents<'a, T> {
    /// At least one.
    pub(crate) complete: Vec<Document<'a, T>>,
    /// The error of a document that the text ends within.
    pub(crate) truncated: Option<ReadError>,
}

/// Parses the documents in a text, among other lines; each begins at the start of a line. An error is that of the first
/// possible start of a document.
pub(crate) fn parse_documents<T: DeserializeOwned>(format: Format, text: &str) -> Result<Documents<'_, T>, ReadError> {
    let (mut documents, mut first_error, mut tries, mut at) = (Vec::<Document<'_, T>>::new(), None, 0, 0);
    let (mut last_end, mut truncated) = (0, None);
    while let Some(start) = find_document_start(text, at).filter(|_| tries < MAX_TRIES) {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter();
        match stream.next() {
            Some(Ok(content)) => {
                if let Some(last) = documents.last_mut() {
                    last.trailer = &text[last_end..start];
                }
                at = start + stream.byte_offset();
                (last_end, truncated) = (at, None);
                documents.push(Document { content, trailer: &text[at..] });
            }
            Some(Err(error)) => {
                tries += 1;
                let lines = text[..start].matches('\n').count();
                first_error.get_or_insert_with(|| malformed(format, &error, lines));
                if error.is_eof() {
                    truncated.get_or_insert_with(|| malformed(format, &error, lines));
                }
                at = start + 1;
            }
            None => break,
        }
    }
    match (documents.is_empty(), first_error) {
        (false, _) => Ok(Documents { complete: documents, truncated }),
        (true, Some(error)) => Err(error),
        (true, None) => Err(ReadError::Malformed { format, reason: "no JSON object".to_owned() }),
    }
}

/// Checks that a text consists of JSON documents; returns the first error otherwise.
pub(crate) fn check_well_formed(text: &str) -> Result<(), String> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut documents = documents.map(|document| document.map_err(|error| format_location(&error, 0))).peekable();
    match documents.peek() {
        Some(_) => documents.try_for_each(|document| document.map(drop)),
        None => Err("empty file".to_owned()),
    }
}

/// Position of the next opening brace at the start of a line, or directly after a document.
fn find_document_start(text: &str, from: usize) -> Option<usize> {
    let rest = &text[from..];
    if rest.trim_start().starts_with('{') {
        return Some(from + rest.len() - rest.trim_start().len());
    }
    rest.find("\n{").map(|at| from + at + 1)
}

/// The error of a document that begins after a number of lines.
pub(crate) fn malformed(format: Format, error: &serde_json::Error, lines_before: usize) -> ReadError {
    ReadError::Malformed { format, reason: format_location(error, lines_before) }
}

/// Formats an error with its position in the file.
fn format_location(error: &serde_json::Error, lines_before: usize) -> String {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    format!("line {}, column {}: {message}", error.line() + lines_before, error.column())
}

/// A finite number, also in quotes; `None` for any other value, and by default for a missing one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LenientNumber(pub(crate) Option<f64>);

impl<'de> Deserialize<'de> for LenientNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
            Other(IgnoredAny),
        }
        let number = match Written::deserialize(deserializer)? {
            Written::Number(number) => Some(number),
            Written::Text(text) => text.trim().parse().ok(),
            Written::Other(_) => None,
        };
        Ok(Self(number.filter(|number| number.is_finite())))
    }
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
    use serde_json::Value;

    use super::*;

    #[test]
    fn documents_are_found_among_other_lines() {
        let count = |text: &str| parse_documents::<Value>(Format::Fio, text).unwrap().complete.len();
        assert_eq!(count("{}"), 1);
        assert_eq!(count("a: {x}\n{ \"a\": 1 }\n\nb\n{}\n"), 2);
        assert_eq!(count("{}{}"), 2);
        assert_eq!(count("{broken\n{}"), 1);
    }

    #[test]
    fn text_after_a_document_is_its_trailer() {
        let documents = parse_documents::<Value>(Format::Fio, "a\n{}\nb\n{}{}\nc").unwrap();
        let trailers: Vec<&str> = documents.complete.iter().map(|document| document.trailer).collect();
        assert_eq!(trailers, ["\nb\n", "", "\nc"]);
    }

    #[test]
    fn only_a_document_at_the_end_is_truncated() {
        let truncated = |text: &str| parse_documents::<Value>(Format::Fio, text).unwrap().truncated;
        for complete in ["{}", "{}\nend }", "{}\n{ not JSON }", "{\n{}"] {
            assert!(truncated(complete).is_none(), "{complete}");
        }
        let error = truncated("{}\n{\n\"a\": 1,\n").unwrap();
        assert!(error.to_string().starts_with("invalid fio results: line 4, column 0: EOF"), "{error}");
    }

    #[test]
    fn an_error_has_its_line_in_the_file() {
        let error = parse_documents::<Value>(Format::Fio, "x\n{\n\"a\": }").unwrap_err();
        assert_eq!(error.to_string(), "invalid fio results: line 3, column 6: expected value");
    }

    #[test]
    fn invalid_json_is_reported() {
        assert_eq!(check_well_formed("{\"a\": [1]}\n{}"), Ok(()));
        assert_eq!(check_well_formed(" \n"), Err("empty file".to_owned()));
        assert_eq!(check_well_formed("{}\n{\"a\": 1"), Err("line 2, column 7: EOF while parsing an object".to_owned()));
    }

    #[test]
    fn numbers_may_be_in_quotes() {
        let parse = |text: &str| serde_json::from_str::<LenientNumber>(text).unwrap().0;
        assert_eq!(
            [parse("1"), parse("\" 1.5 \""), parse("\"odd\""), parse("null")],
            [Some(1.0), Some(1.5), None, None]
        );
        assert_eq!([parse("[1]"), parse("\"inf\"")], [None, None]);
    }
}
