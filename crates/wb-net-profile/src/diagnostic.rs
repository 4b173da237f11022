//! Diagnostics and notes on a profile's text, each with its position.

use std::fmt;

use miette::{LabeledSpan, SourceCode};
use wb_diagnostics::{Diagnostic, SourceText};

use super::spanned_text::Span;

const MAX_SHOWN: usize = 20;

/// All errors in a text, in order of position; at least one.
#[derive(Debug)]
pub struct ProfileDiagnostics {
    source: SourceText,
    diagnostics: Vec<Diagnostic>,
}

/// A remark on a profile that can be run nevertheless; displayed with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileNote {
    source: SourceText,
    span: Span,
    message: String,
}

impl ProfileNote {
    pub(super) fn new(source: &SourceText, span: Span, message: impl Into<String>) -> Self {
        Self { source: source.clone(), span, message: message.into() }
    }

    pub(super) fn start(&self) -> usize {
        self.span.start
    }
}

impl fmt::Display for ProfileNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.source.position(self.span.start).line, self.message)
    }
}

impl ProfileDiagnostics {
    pub(super) fn new(source: &SourceText, diagnostics: Vec<Diagnostic>) -> Self {
        Self { source: source.clone(), diagnostics }
    }

    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The first diagnostics, up to the maximum that is shown.
    pub fn first_diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics[..self.diagnostics.len().min(MAX_SHOWN)]
    }

    pub fn source_name(&self) -> &str {
        &self.source.name
    }

    /// The diagnostic if it is the only one, so that it is rendered alone.
    fn single(&self) -> Option<&Diagnostic> {
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

impl miette::Diagnostic for ProfileDiagnostics {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.single().and_then(miette::Diagnostic::help)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single().and_then(miette::Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        let several = self.single().is_none();
        several.then(|| {
            Box::new(self.first_diagnostics().iter().map(|diagnostic| diagnostic as &dyn miette::Diagnostic)) as _
        })
    }
}
