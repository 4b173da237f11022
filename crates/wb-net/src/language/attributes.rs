//! The attributes of a tag: each known, and given once.

use super::context::{ParseContext, ParseError};
use super::markup::{Attribute, Tag};
use super::spanned_text::{Span, SpannedText};

/// The attributes of one tag that it may have.
pub(super) struct Attributes<'t> {
    given: Vec<&'t Attribute>,
}

impl<'t> Attributes<'t> {
    /// Those of `tag` that are `known`; others, and repeated ones, are reported.
    pub(super) fn parse(scope: &mut ParseContext, tag: &'t Tag, known: &[&str]) -> Self {
        let mut attributes = Self { given: Vec::new() };
        for attribute in &tag.attributes {
            let name = attribute.name.as_str();
            if attributes.has(name) {
                let wrong =
                    ParseError::new(format!("`{name}` is given twice"), "again here").help("say what is meant once");
                scope.report(attribute.span.clone(), wrong);
            } else if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                attributes.given.push(attribute);
            } else {
                let element = tag.name.to_ascii_lowercase();
                let wrong = ParseError::new(format!("`{element}` has no attribute `{name}`"), "unknown")
                    .suggest(name, known.iter().copied())
                    .help(format!("it has {}", known.join(", ")));
                scope.report(attribute.span.clone(), wrong);
            }
        }
        attributes
    }

    fn find(&self, name: &str) -> Option<&'t Attribute> {
        self.given.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name)).copied()
    }

    /// Whether it is given, readable or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Where its name stands.
    pub(super) fn span(&self, name: &str) -> Option<Span> {
        self.find(name).map(|attribute| attribute.span.clone())
    }

    /// Its value before variables are filled in.
    pub(super) fn raw(&self, name: &str) -> Option<&'t SpannedText> {
        self.find(name).map(|attribute| &attribute.value)
    }

    /// Its value.
    pub(super) fn text(&self, scope: &mut ParseContext, name: &str) -> Option<SpannedText> {
        scope.expand(&self.raw(name)?.trim())
    }

    /// Its value by `read`; what that does not like is reported.
    pub(super) fn get<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Option<T> {
        let text = self.text(scope, name)?;
        if text.as_str().is_empty() {
            let wrong =
                ParseError::new(format!("`{name}` has no value"), "empty").help("leave it away, or say what is meant");
            scope.report(self.span(name)?, wrong);
            return None;
        }
        read(text.as_str()).map_err(|wrong| scope.report(text.span(), wrong)).ok()
    }

    /// The same where `read` has something to say of how the value is written.
    pub(super) fn get_with_note<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        read: impl FnOnce(&str) -> Result<(T, Option<String>), ParseError>,
    ) -> Option<T> {
        let (value, note) = self.get(scope, name, read)?;
        if let (Some(note), Some(text)) = (note, self.raw(name)) {
            scope.add_note(text.span(), note);
        }
        Some(value)
    }
}
