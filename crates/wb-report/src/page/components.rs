//! Pieces that the views of all pages are made of.

use minijinja::Value;
use serde::Serialize;

use crate::chart;
use crate::links::Hyperlink;

/// A name and a text.
#[derive(Serialize)]
pub(crate) struct NamedText {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A name and texts, each of which may lead somewhere.
#[derive(Serialize)]
pub(crate) struct NamedLinks {
    pub(crate) name: String,
    pub(crate) text: Vec<Hyperlink>,
}

/// A chart at two widths, of which the style shows the one that fits.
#[derive(Serialize)]
pub(crate) struct PageFigure {
    wide: Value,
    narrow: Value,
    caption: String,
    legend: Vec<LegendEntry>,
}

/// A shape in a chart, and what it stands for.
#[derive(Serialize)]
struct LegendEntry {
    key: Value,
    name: &'static str,
}

/// Hands out identifiers that are unique within a page.
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
    pub(crate) fn of(chart: &dyn chart::Chart, caption: String, ids: &mut IdGenerator) -> Self {
        let mut drawn = |width| Value::from_safe_string(chart::inline(chart, width, &ids.next()));
        Self { wide: drawn(WIDE), narrow: drawn(NARROW), caption, legend: Vec::new() }
    }

    /// The same with a legend: shapes, drawn, and their names.
    pub(crate) fn with_legend(mut self, legend: impl Iterator<Item = (String, &'static str)>) -> Self {
        self.legend = legend.map(|(drawn, name)| LegendEntry { key: Value::from_safe_string(drawn), name }).collect();
        self
    }
}

pub(crate) fn named_text(name: impl Into<String>, text: impl Into<String>) -> NamedText {
    NamedText { name: name.into(), text: text.into() }
}
