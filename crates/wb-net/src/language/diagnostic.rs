//! Diagnostics and notes on a profile's text, each with its position.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// One error in a profile's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProfileDiagnostic {
    /// Its byte range in the text.
    pub span: Range<usize>,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column in characters, counted from 1.
    pub column: usize,
    /// The text in that range.
    pub text: String,
    /// The error message.
    pub message: String,
    /// The label at the span.
    pub label: String,
    /// The suggested replacement.
    pub suggestion: Option<String>,
    /// The help text.
    pub help: Option<String>,
}

/// Maximum number of errors that are shown at once.
const MAX_SHOWN: usize = 20;

/// All errors in a text, in order of position; at least one.
#[derive(Debug)]
pub struct ProfileDiagnostics {
    source: NamedSource<String>,
    diagnostics: Vec<ProfileDiagnostic>,
}

/// A remark on a profile that can be run nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileNote {
    /// Its byte range in the text.
    pub span: Range<usize>,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column in characters, counted from 1.
    pub column: usize,
    /// The remark.
    pub message: String,
}

impl fmt::Display for ProfileNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl ProfileDiagnostics {
    pub(super) fn new(name: &str, text: &str, diagnostics: Vec<ProfileDiagnostic>) -> Self {
        Self { source: NamedSource::new(name, text.to_owned()), diagnostics }
    }

    /// All diagnostics.
    pub fn diagnostics(&self) -> &[ProfileDiagnostic] {
        &self.diagnostics
    }

    /// The first diagnostics, up to the maximum that is shown.
    pub fn first_diagnostics(&self) -> &[ProfileDiagnostic] {
        &self.diagnostics[..self.diagnostics.len().min(MAX_SHOWN)]
    }

    /// The name of the text's source, for display.
    pub fn source_name(&self) -> &str {
        self.source.name()
    }

    /// The source text.
    pub fn source_text(&self) -> &str {
        self.source.inner()
    }

    /// The diagnostic if it is the only one, so that it is rendered alone.
    fn single(&self) -> Option<&ProfileDiagnostic> {
        match self.diagnostics.as_slice() {
            [diagnostic] => Some(diagnostic),
            _ => None,
        }
    }
}

impl fmt::Display for ProfileDiagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(diagnostic) => diagnostic.fmt(f),
            None => {
                let (name, all) = (self.source_name(), self.diagnostics.len());
                write!(f, "`{name}` has {all} errors")?;
                if all > MAX_SHOWN { write!(f, "; these are the first {MAX_SHOWN}") } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for ProfileDiagnostics {}

impl Diagnostic for ProfileDiagnostics {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.single().and_then(Diagnostic::help)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single().and_then(Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let several = self.single().is_none();
        several.then(|| Box::new(self.first_diagnostics().iter().map(|diagnostic| diagnostic as &dyn Diagnostic)) as _)
    }
}

impl Diagnostic for ProfileDiagnostic {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = Some(self.label.clone()).filter(|label| !label.is_empty());
        let span = LabeledSpan::new(label, self.span.start, self.span.len());
        Some(Box::new(std::iter::once(span)))
    }
}
