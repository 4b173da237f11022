//! Markup that is written here rather than by a template, because there is much of it.

use std::fmt::{Display, Write};

use minijinja::{HtmlEscape, Value};

/// Markup in the making: what is written as `text` is escaped.
#[derive(Default)]
pub(super) struct HtmlWriter(String);

impl HtmlWriter {
    /// Markup itself.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text from anywhere.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{}", HtmlEscape(text));
        self
    }

    /// Text that the program made: a number or a word without anything to escape.
    pub(super) fn figure(&mut self, figure: impl Display) -> &mut Self {
        let _ = write!(self.0, "{figure}");
        self
    }

    /// It, as a template takes it.
    pub(super) fn finish(self) -> Value {
        Value::from_safe_string(self.0)
    }
}
