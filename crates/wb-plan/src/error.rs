//! Everything that can be wrong with a plan, said once and with its place.

use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::Source;
use crate::nearest::{nearest, unknown_name};

/// What is wrong with a plan, and where.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct PlanError(Box<Mistake>);

#[derive(Debug)]
struct Mistake {
    message: String,
    place: Option<Place>,
    help: Option<String>,
}

#[derive(Debug)]
struct Place {
    source: NamedSource<String>,
    span: Range<usize>,
    label: String,
}

impl PlanError {
    /// A mistake at a place of a source.
    pub fn at(source: &Source, span: Range<usize>, message: impl Into<String>, label: impl Into<String>) -> Self {
        let place = Place {
            source: NamedSource::new(source.name.as_ref(), source.text.to_string()),
            span,
            label: label.into(),
        };
        Self(Box::new(Mistake { message: message.into(), place: Some(place), help: None }))
    }

    /// What the reader of TOML did not like, with the nearest right spelling where a name is unknown.
    pub(crate) fn toml(source: &Source, error: &toml::de::Error) -> Self {
        let message = error.message().trim().replace('\n', ", ");
        let at = error.span().unwrap_or(0..0);
        let Some((what, given, known)) = unknown_name(&message) else {
            return Self::at(source, at, format!("this plan cannot be read: {message}"), "here").with_help(
                "a plan has `name`, `summary`, `tools`, [sampling], [tool-groups] and one [[test]] per test",
            );
        };
        let near = nearest(given, known.iter().copied());
        let label = near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        Self::at(source, at, format!("there is no {what} `{given}` here"), label)
            .with_help(format!("known are {}", known.join(", ")))
    }

    /// A mistake that has no single place.
    pub fn plain(message: impl Into<String>) -> Self {
        Self(Box::new(Mistake { message: message.into(), place: None, help: None }))
    }

    /// With the way out.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }
}

impl Diagnostic for PlanError {
    fn help(&self) -> Option<Box<dyn std::fmt::Display + '_>> {
        self.0.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.place.as_ref().map(|place| &place.source as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.0.place.as_ref()?;
        let label = Some(place.label.clone()).filter(|label| !label.is_empty());
        let span = LabeledSpan::new(label, place.span.start, place.span.len());
        Some(Box::new(std::iter::once(span)))
    }
}
