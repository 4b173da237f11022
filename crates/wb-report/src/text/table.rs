//! Renders tables for the terminal.
//!
//! This does not use comfy-table (evaluated: 8.0) because that lacks three features: headings that span the columns of
//! a group; continuing a table that is too wide below, with its first column repeated, instead of wrapping figures; and
//! colour without a terminal library.

use super::Style;
use super::wrap::{longest_part, sanitize, width, wrap};

/// Emphasis of a cell or a line. It never carries meaning alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    /// Secondary text.
    Quiet,
    Good,
    /// Needs attention.
    Doubtful,
    /// A bad or missing result.
    Bad,
}

/// Alignment of the cells in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Debug, Clone, Default)]
pub struct TableCell {
    text: String,
    tone: Tone,
}

impl TableCell {
    pub fn with_tone(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: sanitize(text.as_ref()), tone }
    }
}

impl<T: AsRef<str>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::with_tone(text, Tone::Plain)
    }
}

enum TableRow {
    Heading(String),
    Cells(Vec<TableCell>),
}

/// A table with column heads; the first column names the row and may be wrapped.
pub struct Table {
    heads: Vec<(String, Align)>,
    rows: Vec<TableRow>,
}

const GAP: usize = 2;
const MIN_NAME_WIDTH: usize = 16;
const MIN_TEXT_WIDTH: usize = 13;
/// Words up to this length are not broken if the other columns leave room.
const MAX_WHOLE_WORD: usize = 24;

impl Table {
    /// Creates a table with these columns, at least one.
    pub fn new(heads: &[(&str, Align)]) -> Self {
        Self { heads: heads.iter().map(|(head, align)| (sanitize(head), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a line across all columns, above the rows that belong to it.
    pub fn heading(&mut self, text: &str) {
        self.rows.push(TableRow::Heading(sanitize(text)));
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, mut cells: Vec<TableCell>) {
        cells.resize_with(self.heads.len(), TableCell::default);
        self.rows.push(TableRow::Cells(cells));
    }

    /// The column heads and the texts of all rows except headings, for other renderers.
    pub(crate) fn raw_texts(&self) -> (Vec<&str>, Vec<Vec<&str>>) {
        let rows = self.rows.iter().filter_map(|row| match row {
            TableRow::Heading(_) => None,
            TableRow::Cells(cells) => Some(cells.iter().map(|cell| cell.text.as_str()).collect()),
        });
        (self.heads.iter().map(|(head, _)| head.as_str()).collect(), rows.collect())
    }

    pub(crate) fn fits(&self, style: Style) -> bool {
        total_width(&self.max_widths(width)) <= style.width
    }

    /// Renders the table; each line ends with a newline.
    pub fn draw(&self, style: Style) -> String {
        let widths = self.widths(style.width);
        split_panels(&widths, style.width)
            .iter()
            .map(|panel| self.panel(panel, &widths, style))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The widths of columns: natural if they fit; otherwise texts are reduced to their longest words and then the
    /// name, or the other way around, whichever takes fewer lines; then words; otherwise the table is split into
    /// panels.
    fn widths(&self, limit: usize) -> Vec<usize> {
        let natural = self.max_widths(width);
        if total_width(&natural) <= limit {
            return natural;
        }
        let words = self.max_widths(longest_part);
        let texts = self.heads.iter().enumerate().skip(1).filter(|(_, (_, align))| *align == Align::Left);
        let texts: Vec<usize> = texts.map(|(column, _)| column).collect();
        let whole = texts.iter().map(|column| (*column, words[*column].clamp(MIN_TEXT_WIDTH, MAX_WHOLE_WORD)));
        let name = [(0, MIN_NAME_WIDTH)];
        let parts = texts.iter().map(|column| (*column, MIN_TEXT_WIDTH));
        let texts_first = reduced(&natural, whole.clone().chain(name).chain(parts.clone()), limit);
        let name_first = reduced(&natural, name.into_iter().chain(whole).chain(parts), limit);
        let mut widths = if self.height(&name_first) < self.height(&texts_first) { name_first } else { texts_first };
        if total_width(&widths) > limit {
            widths[0] = natural[0].min(limit * 2 / 5).max(1);
            let beside = limit.saturating_sub(widths[0] + GAP).max(1);
            widths.iter_mut().skip(1).for_each(|width| *width = (*width).min(beside));
        }
        widths
    }

    fn height(&self, widths: &[usize]) -> usize {
        let height = |row: &TableRow| match row {
            TableRow::Heading(_) => 1,
            TableRow::Cells(cells) => {
                cells.iter().zip(widths).map(|(cell, width)| wrap(&cell.text, *width).len()).max().unwrap_or(0)
            }
        };
        self.rows.iter().map(height).sum()
    }

    fn max_widths(&self, measure: fn(&str) -> usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heads.iter().map(|(head, _)| measure(head)).collect();
        for row in &self.rows {
            if let TableRow::Cells(cells) = row {
                for (widest, cell) in widths.iter_mut().zip(cells) {
                    *widest = (*widest).max(measure(&cell.text));
                }
            }
        }
        widths
    }

    fn panel(&self, columns: &[usize], widths: &[usize], style: Style) -> String {
        let heads: Vec<TableCell> =
            self.heads.iter().map(|(head, _)| TableCell::with_tone(head, Tone::Quiet)).collect();
        let mut out = if self.heads.iter().all(|(head, _)| head.is_empty()) {
            String::new()
        } else {
            self.line(&heads, columns, widths, style)
        };
        for row in &self.rows {
            match row {
                TableRow::Heading(text) => {
                    for line in wrap(text, style.width) {
                        out += &style.paint(&line, Tone::Strong);
                        out.push('\n');
                    }
                }
                TableRow::Cells(cells) => out += &self.line(cells, columns, widths, style),
            }
        }
        out
    }

    fn line(&self, cells: &[TableCell], columns: &[usize], widths: &[usize], style: Style) -> String {
        let wrapped: Vec<Vec<String>> =
            columns.iter().map(|&column| wrap(&cells[column].text, widths[column])).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = String::new();
        for depth in 0..height {
            let mut blanks = 0;
            for (lines, &column) in wrapped.iter().zip(columns) {
                let text = lines.get(depth).map_or("", String::as_str);
                let room = widths[column].saturating_sub(width(text));
                let (before, after) = if self.heads[column].1 == Align::Right { (room, 0) } else { (0, room) };
                if !text.is_empty() {
                    out += &" ".repeat(blanks + before);
                    out += &style.paint(text, cells[column].tone);
                    blanks = after + GAP;
                } else {
                    blanks += room + GAP;
                }
            }
            out.push('\n');
        }
        out
    }
}

/// Column heads of a table of figures; the first column names the rows.
pub(crate) fn figure_columns<'a>(name: &'a str, columns: &[&'a str]) -> Vec<(&'a str, Align)> {
    std::iter::once((name, Align::Left)).chain(columns.iter().map(|head| (*head, Align::Right))).collect()
}

pub(crate) fn figure_row<T: AsRef<str>>(name: String, figures: impl IntoIterator<Item = T>) -> Vec<TableCell> {
    std::iter::once(TableCell::from(name)).chain(figures.into_iter().map(TableCell::from)).collect()
}

/// Widths after reducing these columns, in this order and no further than these minima, until all fit.
fn reduced(widths: &[usize], columns: impl Iterator<Item = (usize, usize)>, limit: usize) -> Vec<usize> {
    let mut widths = widths.to_owned();
    for (column, minimum) in columns {
        let excess = total_width(&widths).saturating_sub(limit);
        widths[column] = widths[column].saturating_sub(excess).max(minimum.min(widths[column]));
    }
    widths
}

fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Splits the columns into panels: as many as fit beside each other, with the first column in every panel.
fn split_panels(widths: &[usize], limit: usize) -> Vec<Vec<usize>> {
    let name = widths.first().copied().unwrap_or(0);
    let mut panels = vec![vec![0]];
    let mut used = name;
    for (column, width) in widths.iter().enumerate().skip(1) {
        let is_first = panels.last().is_some_and(|panel| panel.len() == 1);
        if used + GAP + width > limit && !is_first {
            panels.push(vec![0]);
            used = name;
        }
        if let Some(panel) = panels.last_mut() {
            panel.push(column);
        }
        used += GAP + width;
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("case", Align::Left), ("median", Align::Right), ("outcome", Align::Left)]);
        table.heading("a group of cells");
        table.row(vec!["size=S".into(), "4.21 Gflops".into(), "measured".into()]);
        table.row(vec!["size=M,threads=2".into(), "12 Gflops".into(), TableCell::with_tone("failed", Tone::Bad)]);
        table
    }

    #[test]
    fn columns_line_up_and_headings_span_them() {
        insta::assert_snapshot!(table().draw(Style { width: 80, colour: false, is_terminal: true }), @r"
        case                   median  outcome
        a group of cells
        size=S            4.21 Gflops  measured
        size=M,threads=2    12 Gflops  failed
        ");
    }

    #[test]
    fn narrow_terminal_continues_the_table_below() {
        insta::assert_snapshot!(table().draw(Style { width: 30, colour: false, is_terminal: true }), @r"
        case               median
        a group of cells
        size=S        4.21 Gflops
        size=M,         12 Gflops
        threads=2

        case          outcome
        a group of cells
        size=S        measured
        size=M,       failed
        threads=2
        ");
    }

    #[test]
    fn words_are_not_broken_while_the_name_can_be_wrapped() {
        let mut table = Table::new(&[("cell", Align::Left), ("key", Align::Left)]);
        table.row(vec!["block-size=4k,rw=read,threads=2".into(), "0123456789abcdef".into()]);
        insta::assert_snapshot!(table.draw(Style { width: 40, colour: false, is_terminal: true }), @r"
        cell                    key
        block-size=4k,rw=read,  0123456789abcdef
        threads=2
        ");
    }

    #[test]
    fn what_takes_fewer_lines_is_wrapped() {
        let mut table = Table::new(&[("case", Align::Left), ("median", Align::Right), ("outcome", Align::Left)]);
        for threads in 1..4 {
            let disturbed = "not converged, 2 disturbed";
            table.row(vec![format!("threads={threads}").into(), "45.3 Gflops".into(), disturbed.into()]);
        }
        table.row(vec!["protocol=tcp, size=64k, type=stream".into(), "15.9 Gbit/s".into(), "measured".into()]);
        insta::assert_snapshot!(table.draw(Style { width: 62, colour: false, is_terminal: true }), @r"
        case                        median  outcome
        threads=1              45.3 Gflops  not converged, 2 disturbed
        threads=2              45.3 Gflops  not converged, 2 disturbed
        threads=3              45.3 Gflops  not converged, 2 disturbed
        protocol=tcp,          15.9 Gbit/s  measured
        size=64k, type=stream
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for limit in 20..60 {
            let text = table().draw(Style { width: limit, colour: false, is_terminal: true });
            assert!(text.lines().all(|line| width(line) <= limit), "{limit}:\n{text}");
        }
    }

    #[test]
    fn colour_adds_only_escapes() {
        let text = table().draw(Style { width: 80, colour: true, is_terminal: true });
        assert!(text.contains("\u{1b}[31mfailed\u{1b}[0m"), "{text:?}");
    }
}
