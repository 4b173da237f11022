//! The attributes of a tag: each known, and given once.

use super::markup::{Attribute, Tag};
use super::scope::{Scope, Wrong};
use super::text::{Span, Text};

/// The attributes of one tag that it may have.
pub(super) struct Attributes<'t> {
    given: Vec<&'t Attribute>,
}

impl<'t> Attributes<'t> {
    /// Those of `tag` that are `known`; others, and repeated ones, are reported.
    pub(super) fn read(scope: &mut Scope, tag: &'t Tag, known: &[&str]) -> Self {
        let mut attributes = Self { given: Vec::new() };
        for attribute in &tag.attributes {
            let name = attribute.name.as_str();
            if attributes.has(name) {
                let wrong = Wrong::new(format!("`{name}` is given twice"), "again here").help("say what is meant once");
                scope.fault(attribute.span.clone(), wrong);
            } else if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                attributes.given.push(attribute);
            } else {
                let element = tag.name.to_ascii_lowercase();
                let wrong = Wrong::new(format!("`{element}` has no attribute `{name}`"), "unknown")
                    .near(name, known.iter().copied())
                    .help(format!("it has {}", known.join(", ")));
                scope.fault(attribute.span.clone(), wrong);
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
    pub(super) fn raw(&self, name: &str) -> Option<&'t Text> {
        self.find(name).map(|attribute| &attribute.value)
    }

    /// Its value.
    pub(super) fn text(&self, scope: &mut Scope, name: &str) -> Option<Text> {
        scope.expand(&self.raw(name)?.trim())
    }

    /// Its value by `read`; what that does not like is reported.
    pub(super) fn get<T>(
        &self,
        scope: &mut Scope,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, Wrong>,
    ) -> Option<T> {
        let text = self.text(scope, name)?;
        if text.as_str().is_empty() {
            let wrong =
                Wrong::new(format!("`{name}` has no value"), "empty").help("leave it away, or say what is meant");
            scope.fault(self.span(name)?, wrong);
            return None;
        }
        read(text.as_str()).map_err(|wrong| scope.fault(text.span(), wrong)).ok()
    }

    /// The same where `read` has something to say of how the value is written.
    pub(super) fn get_noted<T>(
        &self,
        scope: &mut Scope,
        name: &str,
        read: impl FnOnce(&str) -> Result<(T, Option<String>), Wrong>,
    ) -> Option<T> {
        let (value, note) = self.get(scope, name, read)?;
        if let (Some(note), Some(text)) = (note, self.raw(name)) {
            scope.note(text.span(), note);
        }
        Some(value)
    }
}
