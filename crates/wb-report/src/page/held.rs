//! What was held against what, on a page.

use serde::Serialize;
use wb_compare::variants::Held;

use super::pieces::{Pair, pair};
use crate::compare::held::{Section, sections};
use crate::text::Table;

/// What was held against what.
#[derive(Serialize)]
pub(super) struct HeldView {
    asked: Pair,
    cases: Vec<CaseView>,
}

#[derive(Serialize)]
struct CaseView {
    title: String,
    about: Option<String>,
    tables: Vec<FiguresView>,
    remarks: Vec<Pair>,
    end: Option<String>,
}

/// What the template needs of a table; the first column names the rows.
#[derive(Serialize)]
struct FiguresView {
    title: String,
    heads: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl HeldView {
    pub(super) fn new(held: &Held) -> Self {
        let (sections, (metric, asked)) = sections(held);
        let case = |section: Section| CaseView {
            tables: section.tables.iter().map(|table| FiguresView::new(&section.title, table)).collect(),
            title: section.title,
            about: section.about,
            remarks: section.remarks.iter().map(|(name, text)| pair(name, text)).collect(),
            end: section.end,
        };
        Self { asked: pair(metric, asked), cases: sections.into_iter().map(case).collect() }
    }
}

impl FiguresView {
    fn new(title: &str, table: &Table) -> Self {
        let (heads, rows) = table.texts();
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let row = |row: Vec<&str>| Some((row.first()?.to_string(), owned(&row[1..])));
        Self { title: title.to_owned(), heads: owned(&heads), rows: rows.into_iter().filter_map(row).collect() }
    }
}
