//! Errors about an entry of a file, which say where it is: parsed entries have no places of their own, so that an error has
//! the path to its entry, and the text is searched for it.

use wb_diagnostics::{Diagnostic, SourceText, Suggestion};

use super::places::Places;

#[derive(Debug)]
pub(super) struct EntryError {
    message: String,
    suggestion: Option<Suggestion>,
    help: Option<String>,
    /// From the entry to the top of the file: who calls adds the outer steps.
    path: Vec<Step>,
}

/// A step from a table or a list into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Item(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Item(index)
    }
}

impl EntryError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), suggestion: None, help: None, path: Vec::new() }
    }

    /// With what is expected instead.
    pub(super) fn with_help(self, suggestion: Option<Suggestion>, help: impl Into<String>) -> Self {
        Self { suggestion, help: Some(help.into()), ..self }
    }

    /// Of the entry with this key, or of the item with this index.
    pub(super) fn within(mut self, step: impl Into<Step>) -> Self {
        self.path.push(step.into());
        self
    }

    /// With what is invalid in front: `invalid endpoint NAME: `.
    pub(super) fn with_subject(mut self, subject: &str) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    pub(super) fn into_diagnostic(self, source: &SourceText, places: Option<Places>) -> Diagnostic {
        let path: Vec<Step> = self.path.into_iter().rev().collect();
        let diagnostic = match places {
            Some(places) => Diagnostic::at(source, places.find(&path), self.message, "here"),
            None => Diagnostic::new(format!("{}: {}", source.name, self.message)),
        };
        let diagnostic = diagnostic.with_suggestion(self.suggestion);
        match self.help {
            Some(help) => diagnostic.with_help(help),
            None => diagnostic,
        }
    }
}

/// Converts each item of a list, whose errors get its place.
pub(super) fn convert_items<T, U>(
    items: impl IntoIterator<Item = T>,
    list: &str,
    mut convert: impl FnMut(T) -> Result<U, EntryError>,
) -> Result<Vec<U>, EntryError> {
    let converted = items.into_iter().enumerate();
    converted.map(|(index, item)| convert(item).map_err(|error| error.within(index).within(list))).collect()
}
