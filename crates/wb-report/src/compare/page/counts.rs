//! Counts of verdicts per build, as table and bar chart.

use serde::Serialize;
use wb_results::comparison::Totals;

use super::check_table::CheckTable;
use crate::chart::{CountRow, CountsChart, count_key};
use crate::compare::totals::{ALWAYS_SHOWN, NamedTotal, OTHERS, VERDICTS};
use crate::compare::wording::Wording;
use crate::page::components::{IdGenerator, PageFigure};

/// A table with a row for each judged build or part and a column for each verdict that occurs.
#[derive(Serialize)]
pub(super) struct CountsView {
    heads: Vec<&'static str>,
    rows: Vec<(String, Vec<usize>)>,
}

/// What was not compared.
const ERRORS: [NamedTotal; 4] = [
    ("missing", |totals| totals.missing),
    ("invalid", |totals| totals.invalid),
    ("incomparable", |totals| totals.incomparable),
    ("errors", |totals| totals.errors),
];

type BarPart = (&'static str, &'static str, fn(&Totals) -> usize);

/// From improved to missing checks.
const PARTS: [BarPart; 10] = [
    ("improved", "improved", |totals| totals.better),
    ("minor-gain", "minor-gain", |totals| totals.minor_gain),
    ("equivalent", "equivalent", |totals| totals.equivalent),
    ("minor-loss", "minor-loss", |totals| totals.minor_loss),
    ("regressed", "regressed", |totals| totals.worse),
    ("differs", "differs", |totals| totals.differs),
    ("unconfirmed", "unconfirmed", |totals| totals.unconfirmed),
    ("inconclusive", "inconclusive", |totals| totals.inconclusive),
    ("new", "new", |totals| totals.new),
    ("lacking", "missing, invalid or incomparable", |totals| totals.missing + totals.invalid + totals.incomparable),
];

impl CountsView {
    pub(super) fn new(table: &CheckTable<'_>, names: &[String]) -> Self {
        let wording = Wording::of_builds(table.history.builds);
        let totals = totals_by_column(table, names);
        let occurs = |column: &NamedTotal| totals.iter().any(|(_, totals)| column.1(totals) > 0);
        let columns = VERDICTS.into_iter().chain(ERRORS).chain(OTHERS).enumerate();
        let shown = columns.filter(|(index, column)| *index < ALWAYS_SHOWN || occurs(column));
        let columns: Vec<NamedTotal> = shown.map(|(_, column)| column).collect();
        let row = |(name, totals): &(&str, Totals)| {
            ((*name).to_owned(), columns.iter().map(|column| column.1(totals)).collect())
        };
        Self {
            heads: columns.iter().map(|(name, _)| wording.total(name)).collect(),
            rows: totals.iter().map(row).collect(),
        }
    }
}

fn totals_by_column<'a>(table: &CheckTable<'_>, names: &'a [String]) -> Vec<(&'a str, Totals)> {
    table.judged().map(|column| (names[column].as_str(), table.totals(column))).collect()
}

pub(super) fn counts_chart(table: &CheckTable<'_>, names: &[String], ids: &mut IdGenerator) -> PageFigure {
    let wording = Wording::of_builds(table.history.builds);
    let side = wording.page_words().side;
    let totals = totals_by_column(table, names);
    let row = |(name, totals): &(&str, Totals)| CountRow { label: (*name).to_owned(), parts: parts(totals) };
    let counts =
        CountsChart { title: format!("primary checks of each {side}"), rows: totals.iter().map(row).collect() };
    let legend = legend(totals.iter().map(|(_, totals)| totals)).into_iter();
    let legend = legend.map(|(key, name)| (key, wording.total(name)));
    let caption = format!("Verdicts on the primary checks of each {side}, compared with the first {side}.");
    PageFigure::new(&counts, caption, ids).with_legend(legend)
}

pub(super) fn parts(totals: &Totals) -> Vec<(&'static str, &'static str, usize)> {
    PARTS.map(|(class, name, count)| (class, name, count(totals))).to_vec()
}

pub(super) fn legend<'a>(bars: impl Iterator<Item = &'a Totals> + Clone) -> Vec<(String, &'static str)> {
    let occurs = |count: fn(&Totals) -> usize| bars.clone().any(|totals| count(totals) > 0);
    let parts = PARTS.into_iter().filter(|(.., count)| occurs(*count));
    parts.map(|(class, name, _)| (count_key(class), name)).collect()
}
