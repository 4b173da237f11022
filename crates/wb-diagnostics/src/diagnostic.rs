//! A single error in a text.

use std::fmt;
use std::ops::Range;

use miette::{LabeledSpan, SourceCode};

use crate::{SourceText, Suggestion};

/// An error message with its location in a source text, and help. Parsers of a part may leave the location to callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Diagnostic {
    message: String,
    label: String,
    help: Option<String>,
    location: Option<Box<Location>>,
}

/// Where a diagnostic is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub source: SourceText,
    pub span: Range<usize>,
}

impl Diagnostic {
    pub fn new(message: impl Into<String>) -> Self {
        Self::labelled(message, "")
    }

    /// Creates a diagnostic whose label is shown at the location that it is given later.
    pub fn labelled(message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { message: message.into(), label: label.into(), help: None, location: None }
    }

    pub fn at(source: &SourceText, span: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self::labelled(message, label).with_location(source, span)
    }

    pub(crate) fn with_location(mut self, source: &SourceText, span: Range<usize>) -> Self {
        self.location = Some(Box::new(Location { source: source.clone(), span }));
        self
    }

    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Makes a suggestion the label, if there is one.
    #[must_use]
    pub fn with_suggestion(self, suggestion: Option<Suggestion>) -> Self {
        match suggestion {
            Some(suggestion) => self.with_label(suggestion.to_string()),
            None => self,
        }
    }

    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// The text to show at the location; may be empty.
    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The location; `None` if the error concerns no single place of a text.
    pub fn location(&self) -> Option<&Location> {
        self.location.as_deref()
    }

    /// The part of the source text that it is about; empty without a location.
    pub fn excerpt(&self) -> &str {
        self.location().and_then(|location| location.source.text.get(location.span.clone())).unwrap_or_default()
    }

    /// The diagnostic in one line, without its label: `FILE:LINE:COLUMN: MESSAGE: HELP`.
    pub fn one_line(&self) -> String {
        let place = self
            .location()
            .map(|location| format!("{}:{}: ", location.source.name, location.source.position(location.span.start)));
        let help = self.help().map(|help| format!(": {help}"));
        [place.as_deref().unwrap_or_default(), &self.message, help.as_deref().unwrap_or_default()].concat()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let place = |of: &Self| of.location().map(|location| (location.source.name.clone(), location.span.clone()));
        self.message == other.message && place(self) == place(other)
    }
}

impl miette::Diagnostic for Diagnostic {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.help().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.location().map(|location| &location.source as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = &self.location()?.span;
        let label = Some(self.label.clone()).filter(|label| !label.is_empty());
        Some(Box::new(std::iter::once(LabeledSpan::new(label, span.start, span.len()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suggest;

    #[test]
    fn a_suggestion_replaces_the_label() {
        let unknown = |name| Diagnostic::labelled("unknown name", "unknown").with_suggestion(suggest(name, ["alpha"]));
        assert_eq!((unknown("alpah").label(), unknown("zebra").label()), ("did you mean `alpha`?", "unknown"));
    }

    #[test]
    fn one_line_has_position_message_and_help() {
        let source = SourceText::new("x.toml", "a = 1\nb = 2\n");
        let diagnostic = Diagnostic::at(&source, 6..7, "unknown key `b`", "here");
        assert_eq!((diagnostic.one_line().as_str(), diagnostic.excerpt()), ("x.toml:2:1: unknown key `b`", "b"));
        assert_eq!(Diagnostic::new("no").with_help("do").one_line(), "no: do");
    }
}
