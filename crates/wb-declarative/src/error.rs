use std::path::PathBuf;

use wb_diagnostics::{Diagnostic, SourceText, UnknownKind, UnknownName, humanize_serde_error, suggest};

#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error("cannot read `{path}`: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// `TEST.files.json`, the list of the files that a run folder has with a definition, is unreadable.
    #[error(transparent)]
    Record(#[from] wb_record::RecordError),
    /// The only error with a position.
    #[error("{}", .0.one_line())]
    Invalid(#[from] Diagnostic),
    #[error(
        "`{first}` and `{second}` both define the test `{test}`: rename the test in one of them, or remove one file"
    )]
    Duplicate {
        test: String,
        /// The file that is used.
        first: String,
        /// The file that is skipped.
        second: String,
    },
}

/// Creates a diagnostic for an unknown name. Help is the nearest known name if one is similar, otherwise all known
/// names, or that there is none.
pub(super) fn unknown_name<'a>(
    message: impl Into<String>,
    name: &str,
    known_names: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let help = match suggest(name, known_names.clone()) {
        Some(suggestion) => suggestion.to_string(),
        None => {
            let quoted: Vec<String> = known_names.into_iter().map(|known| format!("`{known}`")).collect();
            match &quoted[..] {
                [] => "no name is valid here, as none is defined".to_owned(),
                [only] => format!("expected {only}"),
                several => format!("expected one of {}", several.join(", ")),
            }
        }
    };
    Diagnostic::new(message).with_help(help)
}

/// Converts an error from the TOML parser, with serde's messages rewritten for users. Without a position it is located
/// at the start of the text. The help for an unknown name suggests the nearest known one.
pub(crate) fn toml_diagnostic(text: &SourceText, error: &toml::de::Error) -> Diagnostic {
    let message = error.message().trim();
    let diagnostic = match UnknownName::parse(message) {
        Some(unknown) => unknown_name_in_toml(unknown),
        // Messages have one line.
        None => Diagnostic::new(humanize_serde_error(&message.replace('\n', ", "))),
    };
    text.locate(error.span().unwrap_or(0..0), diagnostic)
}

fn unknown_name_in_toml(UnknownName { kind, given, expected }: UnknownName<'_>) -> Diagnostic {
    let noun = match kind {
        UnknownKind::Field => "field",
        UnknownKind::Variant => "value",
    };
    unknown_name(format!("unknown {noun} `{given}`"), given, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_suggests_the_nearest_one() {
        let message = |message| unknown_name_in_toml(UnknownName::parse(message).unwrap()).one_line();
        assert_eq!(
            message("unknown field `comand`, expected one of `name`, `command`"),
            "unknown field `comand`: did you mean `command`?"
        );
        assert_eq!(
            message("unknown variant `zzzzzzz`, expected `a` or `b`"),
            "unknown value `zzzzzzz`: expected one of `a`, `b`"
        );
        assert_eq!(message("unknown field `zzzzzzz`, expected `a`"), "unknown field `zzzzzzz`: expected `a`");
        let without_names = unknown_name("unknown metric `a`", "a", []).one_line();
        assert_eq!(without_names, "unknown metric `a`: no name is valid here, as none is defined");
    }
}
