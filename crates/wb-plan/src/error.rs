//! Errors in plans, each with its location in the source.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use wb_model::serde_message::humanize_serde_error;

use crate::SourceText;
use crate::suggestion::{parse_unknown_name, suggest};

/// One or more errors in a plan, each with its location.
#[derive(Debug)]
pub struct PlanError {
    first: Box<PlanDiagnostic>,
    others: Vec<PlanDiagnostic>,
}

/// A single error with its location and a help text.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct PlanDiagnostic {
    message: String,
    location: Option<Location>,
    help: Option<String>,
}

#[derive(Debug)]
struct Location {
    source: NamedSource<String>,
    span: Range<usize>,
    label: String,
}

impl PlanError {
    /// An error at a location in a source.
    pub fn at(source: &SourceText, span: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Self {
        let place = Location {
            source: NamedSource::new(source.name.as_ref(), source.text.to_string()),
            span,
            label: label.into(),
        };
        Self::of(PlanDiagnostic { message: message.into(), location: Some(place), help: None })
    }

    /// An error of the TOML parser, with a spelling suggestion for an unknown name.
    pub(crate) fn from_toml(source: &SourceText, error: &toml::de::Error) -> Self {
        let message = error.message().trim().replace('\n', ", ");
        let at = error.span().unwrap_or(0..0);
        let Some((kind, given, expected)) = parse_unknown_name(&message) else {
            let message = humanize_serde_error(&message);
            return Self::at(source, at, format!("invalid plan: {message}"), "here").with_help(
                "a plan has `name`, `summary`, `tools`, `on`, `publish`, [sampling], [tool-groups] and one [[test]] per test",
            );
        };
        let near = suggest(given, expected.iter().copied());
        let label = near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        Self::at(source, at, format!("unknown {kind} `{given}`"), label)
            .with_help(format!("expected one of {}", expected.join(", ")))
    }

    /// An error without a single location.
    pub fn without_location(message: impl Into<String>) -> Self {
        Self::of(PlanDiagnostic { message: message.into(), location: None, help: None })
    }

    fn of(mistake: PlanDiagnostic) -> Self {
        Self { first: Box::new(mistake), others: Vec::new() }
    }

    /// Combines several errors into one, in order and without duplicates; `None` if there are none.
    pub fn merge(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut all = errors.next()?;
        for Self { first, others } in errors {
            for mistake in std::iter::once(*first).chain(others) {
                // An error in a key of the whole plan is found once for each of its tests.
                if !all.diagnostics().any(|earlier| earlier.is_same(&mistake)) {
                    all.others.push(mistake);
                }
            }
        }
        Some(all)
    }

    /// Sets the help text of the first error.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.first.help = Some(help.into());
        self
    }

    /// The single errors, in the order in which they were found.
    pub fn diagnostics(&self) -> impl Iterator<Item = &PlanDiagnostic> {
        std::iter::once(self.first.as_ref()).chain(&self.others)
    }
}

impl std::error::Error for PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self.diagnostics().map(PlanDiagnostic::to_string).collect();
        f.write_str(&messages.join("; "))
    }
}

impl Diagnostic for PlanError {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.first.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.first.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.first.labels()
    }
}

/// Collects the errors of several independent steps, so that all are reported at once.
#[derive(Debug, Default)]
pub(crate) struct ErrorCollector(Vec<PlanError>);

impl ErrorCollector {
    /// The value of a step; `None` if it failed, and its error is collected.
    pub(crate) fn ok<T>(&mut self, result: Result<T, PlanError>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Collects an error.
    pub(crate) fn push(&mut self, error: PlanError) {
        self.0.push(error);
    }

    /// Fails with all collected errors, if any.
    pub(crate) fn finish(self) -> Result<(), PlanError> {
        PlanError::merge(self.0).map_or(Ok(()), Err)
    }
}

impl PlanDiagnostic {
    fn is_same(&self, other: &Self) -> bool {
        let place = |of: &Self| of.location.as_ref().map(|place| (place.source.name().to_owned(), place.span.clone()));
        self.message == other.message && place(self) == place(other)
    }
}

impl Diagnostic for PlanDiagnostic {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.location.as_ref().map(|place| &place.source as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.location.as_ref()?;
        let label = Some(place.label.clone()).filter(|label| !label.is_empty());
        let span = LabeledSpan::new(label, place.span.start, place.span.len());
        Some(Box::new(std::iter::once(span)))
    }
}
