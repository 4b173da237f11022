//! Writes large amounts of markup directly instead of through a template.

use std::fmt::{Display, Write};

use minijinja::{HtmlEscape, Value};

/// A builder of markup that escapes text.
#[derive(Default)]
pub(super) struct HtmlWriter(String);

impl HtmlWriter {
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{}", HtmlEscape(text));
        self
    }

    /// Appends generated text that needs no escaping, such as a number or a word.
    pub(super) fn figure(&mut self, figure: impl Display) -> &mut Self {
        let _ = write!(self.0, "{figure}");
        self
    }

    pub(super) fn finish(self) -> Value {
        Value::from_safe_string(self.0)
    }
}
