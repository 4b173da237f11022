//! Components that the views of all pages share.

use minijinja::Value;
use serde::Serialize;

use crate::chart;
use crate::links::Hyperlink;

#[derive(Serialize)]
pub(crate) struct NamedText {
    pub(crate) name: String,
    pub(crate) text: String,
}

#[derive(Serialize)]
pub(crate) struct NamedLinks {
    pub(crate) name: String,
    pub(crate) text: Vec<Hyperlink>,
}

/// A table of figures; the first column names the rows.
#[derive(Serialize)]
pub(crate) struct FigureTable {
    pub(crate) title: String,
    /// A common heading of all columns after the second.
    pub(crate) over: Option<&'static str>,
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<(String, Vec<String>)>,
}

/// A chart at two widths, of which the style sheet shows the fitting one.
#[derive(Serialize)]
pub(crate) struct PageFigure {
    wide: Value,
    narrow: Value,
    caption: String,
    legend: Vec<LegendEntry>,
}

#[derive(Serialize)]
struct LegendEntry {
    key: Value,
    name: &'static str,
}

/// Generates identifiers that are unique within a page.
#[derive(Default)]
pub(crate) struct IdGenerator(usize);

const WIDE: f64 = 860.0;
const NARROW: f64 = 326.0;

impl IdGenerator {
    pub(crate) fn next(&mut self) -> String {
        self.0 += 1;
        format!("c{}", self.0)
    }
}

impl PageFigure {
    pub(crate) fn new(chart: &dyn chart::Chart, caption: String, ids: &mut IdGenerator) -> Self {
        let mut rendered = |width| Value::from_safe_string(chart::inline(chart, width, &ids.next()));
        Self { wide: rendered(WIDE), narrow: rendered(NARROW), caption, legend: Vec::new() }
    }

    pub(crate) fn with_legend(mut self, legend: impl Iterator<Item = (String, &'static str)>) -> Self {
        self.legend = legend.map(|(symbol, name)| LegendEntry { key: Value::from_safe_string(symbol), name }).collect();
        self
    }
}

pub(crate) fn named_text(name: impl Into<String>, text: impl Into<String>) -> NamedText {
    NamedText { name: name.into(), text: text.into() }
}
