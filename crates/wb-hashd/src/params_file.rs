//! A file of parameters, which is read again when it changes.

use std::ops::Range;
use std::path::{Path, PathBuf};

use wb_diagnostics::{Diagnostic, SourceText, UnknownKind, UnknownName, humanize_serde_error};

use crate::HashdParams;

/// A TOML or JSON file of parameters.
#[derive(Debug)]
pub struct ParamsFile {
    path: PathBuf,
    /// The text, or the error, that was last returned.
    last: Option<Result<String, String>>,
    /// What was found when the file was read last, if that was different.
    changed: Option<Result<String, String>>,
}

impl ParamsFile {
    /// Nothing is read yet. A name that ends in `.json` is JSON, any other TOML.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), last: None, changed: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file. `None` if it is unchanged. A change counts once two readings agree: whoever writes the file may not
    /// have finished, and an empty file has valid parameters.
    pub fn read_if_changed(&mut self) -> Option<Result<HashdParams, Diagnostic>> {
        let text = std::fs::read_to_string(&self.path).map_err(|error| error.to_string());
        if self.last.as_ref() == Some(&text) {
            self.changed = None;
            return None;
        }
        let is_settled = self.last.is_none() || self.changed.as_ref() == Some(&text);
        if !is_settled {
            self.changed = Some(text);
            return None;
        }
        self.changed = None;
        let params = match &text {
            Ok(text) => parse(&self.path, text),
            Err(error) => Err(Diagnostic::new(format!("cannot read `{}`: {error}", self.path.display()))),
        };
        self.last = Some(text);
        Some(params)
    }
}

fn parse(path: &Path, text: &str) -> Result<HashdParams, Diagnostic> {
    let source = SourceText::new(&path.display().to_string(), text);
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let params: HashdParams = if is_json {
        serde_json::from_str(text).map_err(|error| {
            let span = source.rest_of_line(error.line() as u64, error.column() as u64);
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            at(&source, span.unwrap_or(0..0), message)
        })?
    } else {
        toml::from_str(text)
            .map_err(|error: toml::de::Error| at(&source, error.span().unwrap_or(0..0), error.message()))?
    };
    params.validate().map_err(|error| {
        let span = line_of(text, error.name.split(' ').next().unwrap_or(error.name));
        Diagnostic::at(&source, span, error.to_string(), "here")
    })?;
    Ok(params)
}

/// An error of serde at its place, with the name that was probably meant.
fn at(source: &SourceText, span: Range<usize>, message: &str) -> Diagnostic {
    let unknown = UnknownName::parse(message);
    let suggestion = unknown.as_ref().and_then(UnknownName::suggestion);
    let message = match unknown {
        Some(UnknownName { kind: UnknownKind::Field, given, .. }) => format!("unknown parameter `{given}`"),
        _ => humanize_serde_error(message),
    };
    Diagnostic::at(source, span, message, "here")
        .with_suggestion(suggestion)
        .with_help("`weighbridge schema hashd-params` describes all parameters")
}

fn line_of(text: &str, name: &str) -> Range<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let key = line.trim_start_matches([' ', '\t', '{', '[', ',', '"']);
        if key.strip_prefix(name).is_some_and(|rest| !rest.starts_with('-')) {
            return start..start + line.trim_end().len();
        }
        start += line.len();
    }
    0..0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    fn error(name: &str, text: &str) -> String {
        let error = parse(Path::new(name), text).unwrap_err();
        format!("{} [{}]", error.one_line(), error.label())
    }

    #[test]
    fn errors_name_the_place_and_what_is_expected() {
        assert_eq!(
            error("a.toml", "cpu-ratio = 1\nmem-frac = 2\n"),
            "a.toml:2:1: invalid mem-frac `2`: expected a number from 0 to 1 [here]"
        );
        let unknown = error("a.toml", "memfrac = 0.5\n");
        assert!(unknown.starts_with("a.toml:1:1: ") && unknown.contains("did you mean `mem-frac`?"), "{unknown}");
        let invalid = error("a.json", "{\n \"mem-frac\": \"x\"}");
        assert!(invalid.starts_with("a.json:2:"), "{invalid}");
    }

    #[test]
    fn file_is_read_again_only_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params.toml");
        let mut file = ParamsFile::new(&path);
        assert!(file.read_if_changed().unwrap().is_err());
        assert!(file.read_if_changed().is_none());
        std::fs::write(&path, "rps-target = 20\n").unwrap();
        assert!(file.read_if_changed().is_none());
        assert_eq!(file.read_if_changed().unwrap().unwrap().rps_target, Some(20.0));
        assert!(file.read_if_changed().is_none());
        std::fs::write(&path, "rps-target = -1\n").unwrap();
        assert!(file.read_if_changed().is_none());
        assert!(file.read_if_changed().unwrap().is_err());
    }

    // An empty file, which a writer leaves for a moment, has valid parameters.
    #[test]
    fn a_file_that_is_being_written_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params.toml");
        std::fs::write(&path, "rps-target = 20\n").unwrap();
        let mut file = ParamsFile::new(&path);
        assert_eq!(file.read_if_changed().unwrap().unwrap().rps_target, Some(20.0), "the first time at once");
        for part in ["", "rps-tar", "rps-target = 6", "rps-target = 60\n"] {
            std::fs::write(&path, part).unwrap();
            assert!(file.read_if_changed().is_none(), "{part}");
        }
        assert_eq!(file.read_if_changed().unwrap().unwrap().rps_target, Some(60.0));
    }
}
