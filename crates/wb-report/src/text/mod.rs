//! Terminal output of a study: [`mod@summary`] with one line per cell, and [`mod@format`] with all details.

mod definitions;
mod format;
mod nested;
mod summary;
mod table;
mod wrap;

pub use format::format;
pub use summary::{solutions_text, summary};
pub use table::{Align, Table, TableCell, Tone};

pub(crate) use definitions::definition_list;
pub(crate) use nested::nested_latency_table;
pub(crate) use table::{figure_columns, figure_row};

use wrap::{sanitize, width, wrap};

/// Capabilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub width: usize,
    pub colour: bool,
    /// Sentences for other programs are not wrapped.
    pub is_terminal: bool,
}

impl Default for Style {
    /// A terminal of eighty columns without colour.
    fn default() -> Self {
        Self { width: 80, colour: false, is_terminal: true }
    }
}

impl Style {
    pub(crate) fn paint(self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => 1,
            Tone::Quiet => 2,
            Tone::Good => 32,
            Tone::Doubtful => 33,
            Tone::Bad => 31,
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub fn indent(self, columns: usize, text: &str) -> String {
        let lines = wrap(&sanitize(text), self.width.saturating_sub(columns));
        lines.iter().map(|line| format!("{}{line}\n", " ".repeat(columns))).collect()
    }

    pub(crate) fn sentence(self, text: &str) -> String {
        if self.is_terminal { self.indent(0, text) } else { format!("{}\n", sanitize(text)) }
    }

    pub(crate) fn heading(self, title: &str) -> String {
        format!("\n{}\n", self.paint(title, Tone::Strong))
    }

    /// Renders a named remark: the text beside the name, or indented below if it does not fit.
    pub(crate) fn remark(self, name: &str, text: &str) -> String {
        let (name, text) = (sanitize(name), sanitize(text));
        let beside = width(&name) + 4 + width(&text) <= self.width;
        if beside {
            return format!("  {name}  {}\n", self.paint(&text, Tone::Plain));
        }
        self.indent(2, &name) + &self.indent(4, &text)
    }
}
