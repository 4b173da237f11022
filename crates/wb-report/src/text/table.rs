//! The one way to draw a table on a terminal.
//!
//! Own code rather than comfy-table (looked at: 8.0), since three things are wanted that it does not have: headings
//! that span the columns of a group; a table too wide for the terminal continues below with its first column
//! repeated, instead of squeezing figures into two lines; and colour without a terminal library behind it.

use super::Style;
use super::wrap::{clean, longest_part, width, wrap};

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
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// In this tone.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: clean(text.as_ref()), tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

enum Row {
    Heading(String),
    Cells(Vec<Cell>),
}

/// Rows under column heads; the first column names the row and is the one that wraps.
pub struct Table {
    heads: Vec<(String, Align)>,
    rows: Vec<Row>,
}

const GAP: usize = 2;
const NARROWEST_NAME: usize = 16;
const NARROWEST_TEXT: usize = 13;
/// Words up to this long stay whole where the other columns leave room.
const LONGEST_WORD: usize = 24;

impl Table {
    /// A table with these columns, of which there must be one.
    pub fn new(heads: &[(&str, Align)]) -> Self {
        Self { heads: heads.iter().map(|(head, align)| (clean(head), *align)).collect(), rows: Vec::new() }
    }

    /// A line across all columns, above the rows that belong to it.
    pub fn heading(&mut self, text: &str) {
        self.rows.push(Row::Heading(clean(text)));
    }

    /// A row; cells that are not given are empty.
    pub fn row(&mut self, mut cells: Vec<Cell>) {
        cells.resize_with(self.heads.len(), Cell::default);
        self.rows.push(Row::Cells(cells));
    }

    /// The heads, and the texts of each row that is no heading: for where it is drawn otherwise.
    pub(crate) fn texts(&self) -> (Vec<&str>, Vec<Vec<&str>>) {
        let rows = self.rows.iter().filter_map(|row| match row {
            Row::Heading(_) => None,
            Row::Cells(cells) => Some(cells.iter().map(|cell| cell.text.as_str()).collect()),
        });
        (self.heads.iter().map(|(head, _)| head.as_str()).collect(), rows.collect())
    }

    /// Whether every cell has its natural width.
    pub(crate) fn fits(&self, style: Style) -> bool {
        total(&self.widest(width)) <= style.width
    }

    /// The lines, each ended.
    pub fn draw(&self, style: Style) -> String {
        let widths = self.widths(style.width);
        panels(&widths, style.width)
            .iter()
            .map(|panel| self.panel(panel, &widths, style))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Natural widths where they fit; else texts are cut down to their words, then the name, then words; else there
    /// will be panels.
    fn widths(&self, limit: usize) -> Vec<usize> {
        let natural = self.widest(width);
        let words = self.widest(longest_part);
        let mut widths = natural.clone();
        let texts = self.heads.iter().enumerate().skip(1).filter(|(_, (_, align))| *align == Align::Left);
        let texts: Vec<usize> = texts.map(|(at, _)| at).collect();
        let whole = texts.iter().map(|at| (*at, words[*at].clamp(NARROWEST_TEXT, LONGEST_WORD)));
        let name = [(0, NARROWEST_NAME)];
        let cut = texts.iter().map(|at| (*at, NARROWEST_TEXT));
        for (at, least) in whole.chain(name).chain(cut) {
            let excess = total(&widths).saturating_sub(limit);
            widths[at] = widths[at].saturating_sub(excess).max(least.min(widths[at]));
        }
        if total(&widths) > limit {
            widths[0] = natural[0].min(limit * 2 / 5).max(1);
            let beside = limit.saturating_sub(widths[0] + GAP).max(1);
            widths.iter_mut().skip(1).for_each(|width| *width = (*width).min(beside));
        }
        widths
    }

    /// The most of this measure in each column.
    fn widest(&self, measure: fn(&str) -> usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heads.iter().map(|(head, _)| measure(head)).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (widest, cell) in widths.iter_mut().zip(cells) {
                    *widest = (*widest).max(measure(&cell.text));
                }
            }
        }
        widths
    }

    fn panel(&self, columns: &[usize], widths: &[usize], style: Style) -> String {
        let heads: Vec<Cell> = self.heads.iter().map(|(head, _)| Cell::toned(head, Tone::Quiet)).collect();
        let mut out = if self.heads.iter().all(|(head, _)| head.is_empty()) {
            String::new()
        } else {
            self.line(&heads, columns, widths, style)
        };
        for row in &self.rows {
            match row {
                Row::Heading(text) => {
                    for line in wrap(text, style.width) {
                        out += &style.paint(&line, Tone::Strong);
                        out.push('\n');
                    }
                }
                Row::Cells(cells) => out += &self.line(cells, columns, widths, style),
            }
        }
        out
    }

    fn line(&self, cells: &[Cell], columns: &[usize], widths: &[usize], style: Style) -> String {
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
pub(crate) fn heads_of<'a>(name: &'a str, columns: &[&'a str]) -> Vec<(&'a str, Align)> {
    std::iter::once((name, Align::Left)).chain(columns.iter().map(|head| (*head, Align::Right))).collect()
}

/// A row of a table of figures.
pub(crate) fn named<T: AsRef<str>>(name: String, figures: impl IntoIterator<Item = T>) -> Vec<Cell> {
    std::iter::once(Cell::from(name)).chain(figures.into_iter().map(Cell::from)).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Which columns stand beside each other: as many as fit, the first in every panel.
fn panels(widths: &[usize], limit: usize) -> Vec<Vec<usize>> {
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
        table.row(vec!["size=M,threads=2".into(), "12 Gflops".into(), Cell::toned("failed", Tone::Bad)]);
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
