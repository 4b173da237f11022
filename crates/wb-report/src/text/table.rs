//! The one way to draw a table on a terminal.
//!
//! Own code rather than comfy-table (looked at: 8.0), since three things are wanted that it does not have: headings
//! that span the columns of a group; a table too wide for the terminal continues below with its first column
//! repeated, instead of squeezing figures into two lines; and colour without a terminal library behind it.

use super::Style;
use super::wrap::{longest_part, sanitize, width, wrap};

/// How a cell or a line is to be seen. Never the only carrier of a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As the terminal has it.
    #[default]
    Plain,
    /// What heads something.
    Strong,
    /// What stands back.
    Quiet,
    /// As wanted.
    Good,
    /// To be looked at.
    Doubtful,
    /// Not there.
    Bad,
}

/// Which side of its column a cell is set against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Figures.
    Right,
}

/// One cell.
#[derive(Debug, Clone, Default)]
pub struct TableCell {
    text: String,
    tone: Tone,
}

impl TableCell {
    /// In this tone.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: sanitize(text.as_ref()), tone }
    }
}

impl<T: AsRef<str>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

enum TableRow {
    Heading(String),
    Cells(Vec<TableCell>),
}

/// Rows under column heads; the first column names the row and is the one that wraps.
pub struct Table {
    heads: Vec<(String, Align)>,
    rows: Vec<TableRow>,
}

const GAP: usize = 2;
const MIN_NAME_WIDTH: usize = 16;
const MIN_TEXT_WIDTH: usize = 13;
/// Words up to this long stay whole where the other columns leave room.
const MAX_WHOLE_WORD: usize = 24;

impl Table {
    /// A table with these columns, of which there must be one.
    pub fn new(heads: &[(&str, Align)]) -> Self {
        Self { heads: heads.iter().map(|(head, align)| (sanitize(head), *align)).collect(), rows: Vec::new() }
    }

    /// A line across all columns, above the rows that belong to it.
    pub fn heading(&mut self, text: &str) {
        self.rows.push(TableRow::Heading(sanitize(text)));
    }

    /// A row; cells that are not given are empty.
    pub fn row(&mut self, mut cells: Vec<TableCell>) {
        cells.resize_with(self.heads.len(), TableCell::default);
        self.rows.push(TableRow::Cells(cells));
    }

    /// The heads, and the texts of each row that is no heading: for where it is drawn otherwise.
    pub(crate) fn raw_texts(&self) -> (Vec<&str>, Vec<Vec<&str>>) {
        let rows = self.rows.iter().filter_map(|row| match row {
            TableRow::Heading(_) => None,
            TableRow::Cells(cells) => Some(cells.iter().map(|cell| cell.text.as_str()).collect()),
        });
        (self.heads.iter().map(|(head, _)| head.as_str()).collect(), rows.collect())
    }

    /// Whether every cell has its natural width.
    pub(crate) fn fits(&self, style: Style) -> bool {
        total_width(&self.max_widths(width)) <= style.width
    }

    /// The lines, each ended.
    pub fn draw(&self, style: Style) -> String {
        let widths = self.widths(style.width);
        split_panels(&widths, style.width)
            .iter()
            .map(|panel| self.panel(panel, &widths, style))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Natural widths where they fit; else texts are cut down to their words, then the name, then words; else there
    /// will be panels.
    fn widths(&self, limit: usize) -> Vec<usize> {
        let natural = self.max_widths(width);
        let words = self.max_widths(longest_part);
        let mut widths = natural.clone();
        let texts = self.heads.iter().enumerate().skip(1).filter(|(_, (_, align))| *align == Align::Left);
        let texts: Vec<usize> = texts.map(|(at, _)| at).collect();
        let whole = texts.iter().map(|at| (*at, words[*at].clamp(MIN_TEXT_WIDTH, MAX_WHOLE_WORD)));
        let name = [(0, MIN_NAME_WIDTH)];
        let cut = texts.iter().map(|at| (*at, MIN_TEXT_WIDTH));
        for (at, least) in whole.chain(name).chain(cut) {
            let excess = total_width(&widths).saturating_sub(limit);
            widths[at] = widths[at].saturating_sub(excess).max(least.min(widths[at]));
        }
        if total_width(&widths) > limit {
            widths[0] = natural[0].min(limit * 2 / 5).max(1);
            let beside = limit.saturating_sub(widths[0] + GAP).max(1);
            widths.iter_mut().skip(1).for_each(|width| *width = (*width).min(beside));
        }
        widths
    }

    /// The most of this measure in each column.
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
        let heads: Vec<TableCell> = self.heads.iter().map(|(head, _)| TableCell::toned(head, Tone::Quiet)).collect();
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
        let wrapped: Vec<Vec<String>> = columns.iter().map(|&at| wrap(&cells[at].text, widths[at])).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = String::new();
        for depth in 0..height {
            let mut blanks = 0;
            for (lines, &at) in wrapped.iter().zip(columns) {
                let text = lines.get(depth).map_or("", String::as_str);
                let room = widths[at].saturating_sub(width(text));
                let (before, after) = if self.heads[at].1 == Align::Right { (room, 0) } else { (0, room) };
                if !text.is_empty() {
                    out += &" ".repeat(blanks + before);
                    out += &style.paint(text, cells[at].tone);
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

/// Heads of a table of figures: the first column names the rows.
pub(crate) fn figure_columns<'a>(name: &'a str, columns: &[&'a str]) -> Vec<(&'a str, Align)> {
    std::iter::once((name, Align::Left)).chain(columns.iter().map(|head| (*head, Align::Right))).collect()
}

/// A row of a table of figures.
pub(crate) fn figure_row<T: AsRef<str>>(name: String, figures: impl IntoIterator<Item = T>) -> Vec<TableCell> {
    std::iter::once(TableCell::from(name)).chain(figures.into_iter().map(TableCell::from)).collect()
}

fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Which columns stand beside each other: as many as fit, the first in every panel.
fn split_panels(widths: &[usize], limit: usize) -> Vec<Vec<usize>> {
    let name = widths.first().copied().unwrap_or(0);
    let mut panels = vec![vec![0]];
    let mut used = name;
    for (at, width) in widths.iter().enumerate().skip(1) {
        let alone = panels.last().is_some_and(|panel| panel.len() == 1);
        if used + GAP + width > limit && !alone {
            panels.push(vec![0]);
            used = name;
        }
        if let Some(panel) = panels.last_mut() {
            panel.push(at);
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
        table.row(vec!["size=M,threads=2".into(), "12 Gflops".into(), TableCell::toned("failed", Tone::Bad)]);
        table
    }

    #[test]
    fn columns_line_up_and_headings_span_them() {
        insta::assert_snapshot!(table().draw(Style { width: 80, colour: false }), @r"
        case                   median  outcome
        a group of cells
        size=S            4.21 Gflops  measured
        size=M,threads=2    12 Gflops  failed
        ");
    }

    #[test]
    fn a_narrow_terminal_gets_the_rest_below() {
        insta::assert_snapshot!(table().draw(Style { width: 30, colour: false }), @r"
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
    fn words_stay_whole_while_the_name_can_give_way() {
        let mut table = Table::new(&[("cell", Align::Left), ("key", Align::Left)]);
        table.row(vec!["block-size=4k,rw=read,threads=2".into(), "0123456789abcdef".into()]);
        insta::assert_snapshot!(table.draw(Style { width: 40, colour: false }), @r"
        cell                    key
        block-size=4k,rw=read,  0123456789abcdef
        threads=2
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for limit in 20..60 {
            let drawn = table().draw(Style { width: limit, colour: false });
            assert!(drawn.lines().all(|line| width(line) <= limit), "{limit}:\n{drawn}");
        }
    }

    #[test]
    fn colour_adds_only_escapes() {
        let drawn = table().draw(Style { width: 80, colour: true });
        assert!(drawn.contains("\u{1b}[31mfailed\u{1b}[0m"), "{drawn:?}");
    }
}
