//! Pieces that the views of all pages are made of.

use minijinja::Value;
use serde::Serialize;

use crate::chart;
use crate::links::Link;

/// A name and a text.
#[derive(Serialize)]
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A name and texts, each of which may lead somewhere.
#[derive(Serialize)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) text: Vec<Link>,
}

/// A chart at two widths, of which the style shows the one that fits.
#[derive(Serialize)]
pub(crate) struct Figure {
    wide: Value,
    narrow: Value,
    caption: String,
    legend: Vec<Key>,
}

/// A shape in a chart, and what it stands for.
#[derive(Serialize)]
struct Key {
    key: Value,
    name: &'static str,
}

/// Hands out identifiers that are unique within a page.
#[derive(Default)]
pub(crate) struct Ids(usize);

const WIDE: f64 = 860.0;
const NARROW: f64 = 326.0;

impl Ids {
    pub(crate) fn next(&mut self) -> String {
        self.0 += 1;
        format!("c{}", self.0)
    }
}

impl Figure {
    pub(crate) fn of(chart: &dyn chart::Chart, caption: String, ids: &mut Ids) -> Self {
        let mut drawn = |width| Value::from_safe_string(chart::inline(chart, width, &ids.next()));
        Self { wide: drawn(WIDE), narrow: drawn(NARROW), caption, legend: Vec::new() }
    }

    /// The same with a legend: shapes, drawn, and their names.
    pub(crate) fn explaining(mut self, legend: impl Iterator<Item = (String, &'static str)>) -> Self {
        self.legend = legend.map(|(drawn, name)| Key { key: Value::from_safe_string(drawn), name }).collect();
        self
    }
}

pub(crate) fn pair(name: impl Into<String>, text: impl Into<String>) -> Pair {
    Pair { name: name.into(), text: text.into() }
}
