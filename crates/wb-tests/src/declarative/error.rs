//! What can be wrong with a definition, said with its place.

use std::ops::Range;
use std::path::PathBuf;

use wb_model::serde_message::humanize_serde_error;
use wb_plan::suggestion::suggest;

/// What is wrong with a definition, and where.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// A folder or file that cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The record of its files cannot be read.
    #[error(transparent)]
    Record(#[from] wb_record::RecordError),
    /// Something that a definition cannot say.
    #[error("{file}:{line}:{column}: {fault}")]
    Invalid {
        /// The definition's file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// The bytes of the file that are meant.
        span: Range<usize>,
        /// What is wrong, and the way out where one is known.
        fault: Diagnostic,
    },
    /// Two files of one folder that define the same test.
    #[error("`{first}` and `{second}` both define the test `{test}`: rename one, or remove it")]
    Duplicate {
        /// The test.
        test: String,
        /// A file.
        first: String,
        /// Another file.
        second: String,
    },
}

impl DefinitionError {
    /// A file whose text the reader of TOML did not like.
    pub(crate) fn malformed(file: &str, text: &str, error: &toml::de::Error) -> Self {
        SourceText { file, text }.malformed(error)
    }
}

/// What is wrong with something, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", way_out.as_ref().map(|way_out| format!(": {way_out}")).unwrap_or_default())]
pub struct Diagnostic {
    /// What is wrong.
    pub what: String,
    /// The way out, where one is known.
    pub way_out: Option<String>,
}

impl Diagnostic {
    /// Something that is wrong.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), way_out: None }
    }

    /// With the way out.
    pub fn with_help(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }

    /// Something that is not among what there is.
    pub fn unknown<'a>(what: impl Into<String>, given: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        let way_out = match suggest(given, known.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let all: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
                if all.is_empty() { "there is none".to_owned() } else { format!("there is {}", all.join(", ")) }
            }
        };
        Self::new(what).with_help(way_out)
    }
}

/// A definition's text, for messages that point into it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceText<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl SourceText<'_> {
    /// A fault at a place.
    pub(super) fn error_at(&self, span: Range<usize>, fault: Diagnostic) -> DefinitionError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        DefinitionError::Invalid { file: self.file.to_owned(), line, column, span, fault }
    }

    /// What the reader of TOML did not like, with the nearest right spelling where a name is unknown.
    pub(super) fn malformed(&self, error: &toml::de::Error) -> DefinitionError {
        let message = error.message().trim();
        let fault = parse_unknown_name(message)
            .unwrap_or_else(|| Diagnostic::new(humanize_serde_error(&message.replace('\n', ", "))));
        self.error_at(error.span().unwrap_or(0..0), fault)
    }
}

/// Reads "unknown field `comand`, expected one of `command`, …", as serde words it.
fn parse_unknown_name(message: &str) -> Option<Diagnostic> {
    let (what, rest) = [("field", "unknown field "), ("value", "unknown variant ")]
        .into_iter()
        .find_map(|(what, start)| Some((what, message.strip_prefix(start)?)))?;
    let mut names = rest.split('`').skip(1).step_by(2);
    let given = names.next()?;
    let known: Vec<&str> = names.collect();
    Some(Diagnostic::unknown(format!("there is no {what} `{given}` here"), given, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        let text = SourceText { file: "x.toml", text: "a = 1\né = 2\n" };
        assert_eq!(text.error_at(9..10, Diagnostic::new("no")).to_string(), "x.toml:2:3: no");
        assert_eq!(text.error_at(900..901, Diagnostic::new("no")).to_string(), "x.toml:3:1: no");
    }

    #[test]
    fn an_unknown_name_finds_its_right_spelling() {
        let fault = parse_unknown_name("unknown field `comand`, expected one of `name`, `command`").unwrap();
        assert_eq!(fault.to_string(), "there is no field `comand` here: did you mean `command`?");
        let fault = parse_unknown_name("unknown variant `zzzzzzz`, expected `a` or `b`").unwrap();
        assert_eq!(fault.to_string(), "there is no value `zzzzzzz` here: there is `a`, `b`");
    }
}
