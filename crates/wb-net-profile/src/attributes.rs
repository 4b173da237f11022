//! The attributes of a tag: each must be known and given once.

use wb_diagnostics::{Diagnostic, suggest};

use super::context::ParseContext;
use super::markup::{Attribute, Tag};
use super::spanned_text::{Span, SpannedText};

/// The valid attributes of one tag.
pub(super) struct Attributes<'t> {
    given: Vec<&'t Attribute>,
}

impl<'t> Attributes<'t> {
    /// Collects the attributes of `tag` that are in `allowed`; unknown and repeated ones are reported.
    pub(super) fn parse(scope: &mut ParseContext, tag: &'t Tag, allowed: &[&str]) -> Self {
        let mut attributes = Self { given: Vec::new() };
        for attribute in &tag.attributes {
            let name = attribute.name.as_str();
            if attributes.has(name) {
                let error = Diagnostic::labelled(format!("`{name}` is given twice"), "again here")
                    .with_help("remove the duplicate");
                scope.report(attribute.span.clone(), error);
            } else if allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name)) {
                attributes.given.push(attribute);
            } else {
                let element = tag.name.to_ascii_lowercase();
                let error = Diagnostic::labelled(format!("unknown attribute `{name}` of `{element}`"), "unknown")
                    .with_suggestion(suggest(name, allowed))
                    .with_help(format!("expected one of {}", allowed.join(", ")));
                scope.report(attribute.span.clone(), error);
            }
        }
        attributes
    }

    fn find(&self, name: &str) -> Option<&'t Attribute> {
        self.given.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name)).copied()
    }

    /// Whether the attribute is given, valid or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub(super) fn span(&self, name: &str) -> Option<Span> {
        self.find(name).map(|attribute| attribute.span.clone())
    }

    /// Its value before variables are expanded.
    pub(super) fn raw(&self, name: &str) -> Option<&'t SpannedText> {
        self.find(name).map(|attribute| &attribute.value)
    }

    /// Its value, with variables expanded.
    pub(super) fn text(&self, scope: &mut ParseContext, name: &str) -> Option<SpannedText> {
        scope.expand(&self.raw(name)?.trim())
    }

    /// Its value, parsed by `parse`; errors are reported.
    pub(super) fn get<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        let text = self.text(scope, name)?;
        if text.as_str().is_empty() {
            let error = Diagnostic::labelled(format!("`{name}` has no value"), "empty")
                .with_help("remove it, or give it a value");
            scope.report(self.span(name)?, error);
            return None;
        }
        parse(text.as_str()).map_err(|error| scope.report(text.span(), error)).ok()
    }

    pub(super) fn get_with_note<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        parse: impl FnOnce(&str) -> Result<(T, Option<String>), Diagnostic>,
    ) -> Option<T> {
        let (value, note) = self.get(scope, name, parse)?;
        if let (Some(note), Some(text)) = (note, self.raw(name)) {
            scope.add_note(text.span(), note);
        }
        Some(value)
    }
}
