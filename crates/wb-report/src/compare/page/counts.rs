//! How many checks of each build came to what.

use serde::Serialize;
use wb_compare::comparison::{BuildHistory, Totals};

use crate::chart::{CountRow, CountsChart, count_key};
use crate::page::components::{IdGenerator, PageFigure};

/// A table: a row for each later build, a column for each kind that occurs.
#[derive(Serialize)]
pub(super) struct CountsView {
    heads: Vec<&'static str>,
    rows: Vec<(String, Vec<usize>)>,
    figure: Option<PageFigure>,
}

type CountColumn = (&'static str, fn(&Totals) -> usize);

const COLUMNS: [CountColumn; 15] = [
    ("gains", |totals| totals.gains),
    ("minor gains", |totals| totals.minor_gains),
    ("equals", |totals| totals.equals),
    ("minor losses", |totals| totals.minor_losses),
    ("losses", |totals| totals.losses),
    ("differing", |totals| totals.differing),
    ("inconclusive", |totals| totals.inconclusive),
    ("missing", |totals| totals.missing),
    ("invalid", |totals| totals.invalid),
    ("defined otherwise", |totals| totals.incomparable),
    ("errors", |totals| totals.errors),
    ("not primary", |totals| totals.not_primary),
    ("not primary, failed", |totals| totals.not_primary_failed),
    ("groups lost", |totals| totals.groups_lost),
    ("groups gained", |totals| totals.groups_gained),
];

/// Those that are always told, as on a terminal.
const ALWAYS_SHOWN: usize = 5;

/// A part of a bar: style, name, count.
type BarPart = (&'static str, &'static str, fn(&Totals) -> usize);

/// From what is good to what is not there.
const PARTS: [BarPart; 8] = [
    ("gain", "gains", |totals| totals.gains),
    ("minor-gain", "minor gains", |totals| totals.minor_gains),
    ("equal", "equals", |totals| totals.equals),
    ("minor-loss", "minor losses", |totals| totals.minor_losses),
    ("loss", "losses", |totals| totals.losses),
    ("differs", "differing", |totals| totals.differing),
    ("inconclusive", "inconclusive", |totals| totals.inconclusive),
    ("lacking", "missing, invalid or defined otherwise", |totals| {
        totals.missing + totals.invalid + totals.incomparable
    }),
];

impl CountsView {
    pub(super) fn new(history: &BuildHistory<'_>, names: &[String], charts: bool, ids: &mut IdGenerator) -> Self {
        let later = 1..history.builds.list().len();
        let totals: Vec<(&str, Totals)> = later.map(|at| (names[at].as_str(), history.totals(at))).collect();
        let occurs = |column: &CountColumn| totals.iter().any(|(_, totals)| column.1(totals) > 0);
        let columns: Vec<&CountColumn> = COLUMNS
            .iter()
            .enumerate()
            .filter(|(at, column)| *at < ALWAYS_SHOWN || occurs(column))
            .map(|(_, it)| it)
            .collect();
        let row = |(name, totals): &(&str, Totals)| {
            ((*name).to_owned(), columns.iter().map(|column| column.1(totals)).collect())
        };
        Self {
            heads: columns.iter().map(|(name, _)| *name).collect(),
            rows: totals.iter().map(row).collect(),
            figure: charts.then(|| counts_chart(&totals, ids)),
        }
    }
}

fn counts_chart(totals: &[(&str, Totals)], ids: &mut IdGenerator) -> PageFigure {
    let row = |(name, totals): &(&str, Totals)| CountRow { label: (*name).to_owned(), parts: parts(totals) };
    let counts =
        CountsChart { title: "primary checks of each build".to_owned(), rows: totals.iter().map(row).collect() };
    let legend = legend(totals.iter().map(|(_, totals)| totals));
    let caption = "How many primary checks of each build came to what, held against the first build.";
    PageFigure::of(&counts, caption.to_owned(), ids).with_legend(legend.into_iter())
}

/// The parts of a bar.
pub(super) fn parts(totals: &Totals) -> Vec<(&'static str, &'static str, usize)> {
    PARTS.map(|(class, name, count)| (class, name, count(totals))).to_vec()
}

/// The shapes and names of the parts that any bar has.
pub(super) fn legend<'a>(bars: impl Iterator<Item = &'a Totals> + Clone) -> Vec<(String, &'static str)> {
    let occurs = |count: fn(&Totals) -> usize| bars.clone().any(|totals| count(totals) > 0);
    let parts = PARTS.into_iter().filter(|(.., count)| occurs(*count));
    parts.map(|(class, name, _)| (count_key(class), name)).collect()
}
