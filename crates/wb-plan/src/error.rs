//! Everything that can be wrong with a plan, said once and with its place.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use wb_model::serde_message::humanize_serde_error;

use crate::SourceText;
use crate::suggestion::{parse_unknown_name, suggest};

/// What is wrong with a plan, and where: one mistake or several, each with its place.
#[derive(Debug)]
pub struct PlanError {
    first: Box<PlanDiagnostic>,
    others: Vec<PlanDiagnostic>,
}

/// One mistake, its place and the way out.
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
    /// A mistake at a place of a source.
    pub fn at(source: &SourceText, span: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Self {
        let place = Location {
            source: NamedSource::new(source.name.as_ref(), source.text.to_string()),
            span,
            label: label.into(),
        };
        Self::of(PlanDiagnostic { message: message.into(), location: Some(place), help: None })
    }

    /// What the reader of TOML did not like, with the nearest right spelling where a name is unknown.
    pub(crate) fn from_toml(source: &SourceText, error: &toml::de::Error) -> Self {
        let message = error.message().trim().replace('\n', ", ");
        let at = error.span().unwrap_or(0..0);
        let Some((what, given, known)) = parse_unknown_name(&message) else {
            let message = humanize_serde_error(&message);
            return Self::at(source, at, format!("this plan cannot be read: {message}"), "here").with_help(
                "a plan has `name`, `summary`, `tools`, `on`, `publish`, [sampling], [tool-groups] and one [[test]] per test",
            );
        };
        let near = suggest(given, known.iter().copied());
        let label = near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        Self::at(source, at, format!("there is no {what} `{given}` here"), label)
            .with_help(format!("known are {}", known.join(", ")))
    }

    /// A mistake that has no single place.
    pub fn without_location(message: impl Into<String>) -> Self {
        Self::of(PlanDiagnostic { message: message.into(), location: None, help: None })
    }

    fn of(mistake: PlanDiagnostic) -> Self {
        Self { first: Box::new(mistake), others: Vec::new() }
    }

    /// Several errors as one, in their order; none where there is none.
    pub fn merge(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut all = errors.next()?;
        for Self { first, others } in errors {
            for mistake in std::iter::once(*first).chain(others) {
                // What is wrong with a key of the whole plan is found with each of its tests.
                if !all.diagnostics().any(|earlier| earlier.is_same(&mistake)) {
                    all.others.push(mistake);
                }
            }
        }
        Some(all)
    }

    /// With the way out of the first mistake.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.first.help = Some(help.into());
        self
    }

    /// Every mistake, in the order in which they were found.
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
    /// The value of a step; none where it failed, which is remembered.
    pub(crate) fn ok<T>(&mut self, result: Result<T, PlanError>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Remembers an error.
    pub(crate) fn push(&mut self, error: PlanError) {
        self.0.push(error);
    }

    /// Fails where any step did, with all of their errors.
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
