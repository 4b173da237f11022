//! Errors in a definition, with their positions.

use std::ops::Range;
use std::path::PathBuf;

use wb_model::serde_message::humanize_serde_error;
use wb_plan::suggestion::suggest;

/// Errors in a definition, or in reading it.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// A folder or file that cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// Its path.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The record of its copied files cannot be read.
    #[error(transparent)]
    Record(#[from] wb_record::RecordError),
    /// The definition is invalid.
    #[error("{file}:{line}:{column}: {diagnostic}")]
    Invalid {
        /// The definition's file.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Byte range in the file.
        span: Range<usize>,
        /// What is wrong, and help.
        diagnostic: Diagnostic,
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
    /// Converts an error of the TOML parser.
    pub(crate) fn malformed(file: &str, text: &str, error: &toml::de::Error) -> Self {
        SourceText { file, text }.malformed(error)
    }
}

/// An error message, with help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help.as_ref().map(|way_out| format!(": {way_out}")).unwrap_or_default())]
pub struct Diagnostic {
    /// What is wrong.
    pub message: String,
    /// How to fix it, if known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates a diagnostic without help.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// Adds help.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Creates a diagnostic for an unknown name, with the nearest known name or all of them as help.
    pub fn unknown<'a>(
        message: impl Into<String>,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        let help = match suggest(name, candidates.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let all: Vec<String> = candidates.into_iter().map(|candidate| format!("`{candidate}`")).collect();
                if all.is_empty() {
                    "none is defined".to_owned()
                } else {
                    format!("expected one of {}", all.join(", "))
                }
            }
        };
        Self::new(message).with_help(help)
    }
}

/// File name and text of a definition, for errors with positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceText<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl SourceText<'_> {
    /// Creates an error at a position.
    pub(super) fn error_at(&self, span: Range<usize>, diagnostic: Diagnostic) -> DefinitionError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        DefinitionError::Invalid { file: self.file.to_owned(), line, column, span, diagnostic }
    }

    /// Converts an error of the TOML parser; for an unknown name, help suggests the nearest known one.
    pub(super) fn malformed(&self, error: &toml::de::Error) -> DefinitionError {
        let message = error.message().trim();
        let diagnostic = parse_unknown_name(message)
            .unwrap_or_else(|| Diagnostic::new(humanize_serde_error(&message.replace('\n', ", "))));
        self.error_at(error.span().unwrap_or(0..0), diagnostic)
    }
}

/// Parses serde's message "unknown field `comand`, expected one of `command`, …".
fn parse_unknown_name(message: &str) -> Option<Diagnostic> {
    let (kind, rest) = [("field", "unknown field "), ("value", "unknown variant ")]
        .into_iter()
        .find_map(|(kind, start)| Some((kind, message.strip_prefix(start)?)))?;
    let mut names = rest.split('`').skip(1).step_by(2);
    let given = names.next()?;
    let expected: Vec<&str> = names.collect();
    Some(Diagnostic::unknown(format!("unknown {kind} `{given}`"), given, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_in_lines_and_characters() {
        let text = SourceText { file: "x.toml", text: "a = 1\né = 2\n" };
        assert_eq!(text.error_at(9..10, Diagnostic::new("no")).to_string(), "x.toml:2:3: no");
        assert_eq!(text.error_at(900..901, Diagnostic::new("no")).to_string(), "x.toml:3:1: no");
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest_one() {
        let diagnostic = parse_unknown_name("unknown field `comand`, expected one of `name`, `command`").unwrap();
        assert_eq!(diagnostic.to_string(), "unknown field `comand`: did you mean `command`?");
        let diagnostic = parse_unknown_name("unknown variant `zzzzzzz`, expected `a` or `b`").unwrap();
        assert_eq!(diagnostic.to_string(), "unknown value `zzzzzzz`: expected one of `a`, `b`");
    }
}
