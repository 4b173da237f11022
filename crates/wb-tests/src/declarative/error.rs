//! Errors in a definition, with their positions.

use std::path::PathBuf;

use wb_diagnostics::{Diagnostic, SourceText, UnknownKind, UnknownName, humanize_serde_error, suggest};

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
    #[error("{}", .0.one_line())]
    Invalid(#[from] Diagnostic),
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

/// Creates a diagnostic for an unknown name, with the nearest known name or all of them as help.
pub(super) fn unknown_name<'a>(
    message: impl Into<String>,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let help = match suggest(name, candidates.clone()) {
        Some(suggestion) => suggestion.to_string(),
        None => {
            let all: Vec<String> = candidates.into_iter().map(|candidate| format!("`{candidate}`")).collect();
            if all.is_empty() { "none is defined".to_owned() } else { format!("expected one of {}", all.join(", ")) }
        }
    };
    Diagnostic::new(message).with_help(help)
}

/// Converts an error of the TOML parser; for an unknown name, help suggests the nearest known one.
pub(crate) fn toml_error(source: &SourceText, error: &toml::de::Error) -> Diagnostic {
    let message = error.message().trim();
    let diagnostic = match UnknownName::parse(message) {
        Some(unknown) => unknown_in_toml(unknown),
        None => Diagnostic::new(humanize_serde_error(&message.replace('\n', ", "))),
    };
    source.locate(error.span().unwrap_or(0..0), diagnostic)
}

fn unknown_in_toml(UnknownName { kind, given, expected }: UnknownName<'_>) -> Diagnostic {
    let kind = match kind {
        UnknownKind::Field => "field",
        UnknownKind::Variant => "value",
    };
    unknown_name(format!("unknown {kind} `{given}`"), given, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_suggests_the_nearest_one() {
        let message = |message| unknown_in_toml(UnknownName::parse(message).unwrap()).one_line();
        assert_eq!(
            message("unknown field `comand`, expected one of `name`, `command`"),
            "unknown field `comand`: did you mean `command`?"
        );
        assert_eq!(
            message("unknown variant `zzzzzzz`, expected `a` or `b`"),
            "unknown value `zzzzzzz`: expected one of `a`, `b`"
        );
    }
}
