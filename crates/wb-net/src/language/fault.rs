//! What a profile's text has wrong, and what else is to be said of it, each with its place.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
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
const SHOWN: usize = 20;

/// Everything that is wrong with a text, in its order; at least one.
#[derive(Debug)]
pub struct Faults {
    source: NamedSource<String>,
    faults: Vec<Fault>,
}

/// Something to know about a profile that can be run nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its bytes in the text.
    pub span: Range<usize>,
    /// Its line, counted from 1.
    pub line: usize,
    /// Its column in characters, counted from 1.
    pub column: usize,
    /// What is to be known.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl Faults {
    pub(super) fn new(name: &str, text: &str, faults: Vec<Fault>) -> Self {
        Self { source: NamedSource::new(name, text.to_owned()), faults }
    }

    /// Each of them.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The first of them, where there are very many.
    pub fn shown(&self) -> &[Fault] {
        &self.faults[..self.faults.len().min(SHOWN)]
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
    fn single(&self) -> Option<&Fault> {
        match self.faults.as_slice() {
            [fault] => Some(fault),
            _ => None,
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(fault) => fault.fmt(f),
            None => {
                let (name, all) = (self.source_name(), self.faults.len());
                write!(f, "`{name}` has {all} faults")?;
                if all > SHOWN { write!(f, "; these are the first {SHOWN}") } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for Faults {}

impl Diagnostic for Faults {
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
        several.then(|| Box::new(self.shown().iter().map(|fault| fault as &dyn Diagnostic)) as _)
    }
}

impl Diagnostic for Fault {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = Some(self.label.clone()).filter(|label| !label.is_empty());
        let span = LabeledSpan::new(label, self.span.start, self.span.len());
        Some(Box::new(std::iter::once(span)))
    }
}
