//! What the template of a comparison's page is given.

use minijinja::Value;
use serde::Serialize;
use wb_compare::Outcome;
use wb_compare::outcome::{Decided, History, Method};
use wb_model::counted;

use super::boxes;
use super::builds::Builds;
use super::counts::CountsView;
use super::data;
use super::environment::{Environment, environments, tests};
use super::groups::GroupsView;
use super::kinds::{Kind, kinds};
use super::names::short;
use super::rows::{self, Rows};
use super::trends::{Trends, trends};
use super::{PageOptions, models};
use crate::compare::context::Row;
use crate::compare::figures::{BY_EVIDENCE, regressed_by};
use crate::page::pieces::{Figure, Ids, Pair, pair};
use crate::systems::SystemTable;

/// The page.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    title: String,
    tally: String,
    /// Whether the last build fails.
    failed: bool,
    facts: Vec<Pair>,
    builds: Builds,
    counts: CountsView,
    names: Vec<Name>,
    kinds: [Kind; Decided::ALL.len()],
    changes: Rows,
    other_failures: Rows,
    data: Value,
    errors: Vec<ErrorView>,
    groups: GroupsView,
    spread: Vec<Figure>,
    trends: Option<Trends>,
    systems: Option<SystemTable>,
    environments: Vec<Environment>,
    /// Programs that differ between the first build and the last.
    programs: Vec<Row>,
    notes: &'a [String],
}

/// A build's name at the head of a column.
#[derive(Serialize)]
struct Name {
    whole: String,
    short: String,
}

#[derive(Serialize)]
struct ErrorView {
    build: String,
    place: String,
    text: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(outcome: &Outcome, history: &History<'_>, options: &PageOptions<'a>) -> Self {
        let names: Vec<&str> = outcome.builds.iter().map(|build| build.name.as_str()).collect();
        let shorts = short(names.iter().copied());
        let ends: Vec<&str> = [names.first(), names.last()].into_iter().flatten().copied().collect();
        let environments = match options.environments {
            true => environments(&outcome.builds).into_iter().chain(tests(history.builds)).collect(),
            false => Vec::new(),
        };
        let mut ids = Ids::default();
        Self {
            title: ends.join(" → "),
            tally: tally(outcome),
            failed: outcome.exit != 0,
            facts: facts(outcome, history),
            builds: Builds::new(outcome, history, &environments),
            counts: CountsView::new(history, &shorts, options.charts, &mut ids),
            names: names.iter().zip(&shorts).map(|(whole, short)| Name::of(whole, short)).collect(),
            kinds: kinds(options.fail_on_gain),
            changes: rows::changes(history, options.fail_on_gain),
            other_failures: rows::other_failures(history, options.fail_on_gain),
            data: Value::from_safe_string(data::packed(history, &shorts, options.fail_on_gain)),
            errors: errors(outcome),
            groups: GroupsView::new(history, options.fail_on_gain),
            spread: if options.charts { boxes::figures(history, &shorts, &mut ids) } else { Vec::new() },
            trends: options.charts.then(|| trends(history, &shorts, &mut ids)).flatten(),
            systems: SystemTable::of_sides(&outcome.builds),
            environments,
            programs: outcome.context.programs.iter().map(Row::of).collect(),
            notes: options.notes,
        }
    }
}

impl Name {
    fn of(whole: &str, short: &str) -> Self {
        Self { whole: whole.to_owned(), short: short.to_owned() }
    }
}

/// What the last build comes to, in a line.
fn tally(outcome: &Outcome) -> String {
    let totals = &outcome.totals;
    let counted = |count: usize, one: &str, many: &str| {
        (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
    };
    let parts = [
        counted(totals.losses, "loss", "losses"),
        counted(totals.groups_lost, "group lost", "groups lost"),
        counted(totals.gains, "gain", "gains"),
        counted(totals.differing, "differs", "differ"),
        counted(totals.inconclusive, "inconclusive", "inconclusive"),
        counted(totals.missing, "missing", "missing"),
        counted(totals.invalid, "invalid", "invalid"),
        counted(totals.incomparable, "defined otherwise", "defined otherwise"),
        counted(totals.errors, "error", "errors"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let parts = if parts.is_empty() { "no difference that counts".to_owned() } else { parts.join(", ") };
    format!("{parts}; {} compared", self::counted(totals.compared(), "primary check"))
}

/// How it was judged.
fn facts(outcome: &Outcome, history: &History<'_>) -> Vec<Pair> {
    let method = match outcome.method {
        Some(Method::Tolerance) => "tolerances decide",
        Some(Method::Statistical) => "statistics decide",
        None => BY_EVIDENCE,
    };
    let options = history.tolerances.options;
    let tolerance = format!("±{} %, deviations ±{} points", options.tolerance, options.stddev_tolerance);
    let exit = match outcome.exit {
        0 => "0, no regression".to_owned(),
        2 => format!("2, a regression by {}", regressed_by(outcome).unwrap_or_default()),
        3 => "3, something missing, invalid, defined otherwise or ended in an error".to_owned(),
        _ => "4, nothing comparable".to_owned(),
    };
    let facts = [pair("method", method), pair("tolerance", tolerance), pair("exit status", exit)];
    facts.into_iter().chain(models::facts(history)).collect()
}

fn errors(outcome: &Outcome) -> Vec<ErrorView> {
    let of = |build: &wb_compare::outcome::BuildTold| {
        let name = build.name.clone();
        let view = move |(place, text): &(String, String)| ErrorView {
            build: name.clone(),
            place: place.clone(),
            text: text.clone(),
        };
        build.errors.iter().map(view).collect::<Vec<_>>()
    };
    outcome.builds.iter().flat_map(of).collect()
}
