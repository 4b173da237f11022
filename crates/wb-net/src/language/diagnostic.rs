//! What a profile's text has wrong, and what else is to be said of it, each with its place.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProfileDiagnostic {
    /// Its bytes in the text.
    pub span: Range<usize>,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column in characters, counted from 1.
    pub column: usize,
    /// What stands there.
    pub text: String,
    /// What is wrong.
    pub message: String,
    /// What to write beside the place.
    pub label: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
    /// The way out.
    pub help: Option<String>,
}

/// So many are shown; who has more corrects these first.
const MAX_SHOWN: usize = 20;

/// Everything that is wrong with a text, in its order; at least one.
#[derive(Debug)]
pub struct ProfileDiagnostics {
    source: NamedSource<String>,
    diagnostics: Vec<ProfileDiagnostic>,
}

/// Something to know about a profile that can be run nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileNote {
    /// Its bytes in the text.
    pub span: Range<usize>,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column in characters, counted from 1.
    pub column: usize,
    /// What is to be known.
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

    /// Each of them.
    pub fn diagnostics(&self) -> &[ProfileDiagnostic] {
        &self.diagnostics
    }

    /// The first of them, where there are very many.
    pub fn first_diagnostics(&self) -> &[ProfileDiagnostic] {
        &self.diagnostics[..self.diagnostics.len().min(MAX_SHOWN)]
    }

    /// Where the text comes from, as people call it.
    pub fn source_name(&self) -> &str {
        self.source.name()
    }

    /// The text.
    pub fn source_text(&self) -> &str {
        self.source.inner()
    }

    /// The only one, when drawing it alone says everything.
    fn single(&self) -> Option<&ProfileDiagnostic> {
        match self.diagnostics.as_slice() {
            [fault] => Some(fault),
            _ => None,
        }
    }
}

impl fmt::Display for ProfileDiagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(fault) => fault.fmt(f),
            None => {
                let (name, all) = (self.source_name(), self.diagnostics.len());
                write!(f, "`{name}` has {all} faults")?;
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
        several.then(|| Box::new(self.first_diagnostics().iter().map(|fault| fault as &dyn Diagnostic)) as _)
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
