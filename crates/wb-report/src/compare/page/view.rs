//! The data for the template of a comparison's page.

use minijinja::Value;
use serde::Serialize;
use wb_compare::ComparisonResult;
use wb_compare::comparison::{BuildHistory, CheckResult, FinalVerdict};
use wb_model::pluralize;

use super::box_plots;
use super::build_names::shorten_names;
use super::builds::BuildTable;
use super::counts::CountsView;
use super::data;
use super::environment::{EnvironmentView, environments, test_environment};
use super::groups::GroupsView;
use super::rows::{self, CheckRows};
use super::trends::{TestTrends, build_trends};
use super::verdict_style::{VerdictStyle, VerdictStyles};
use super::{PageOptions, models};
use crate::compare::context::DifferenceRow;
use crate::compare::figures::{describe_method, regressing_methods, unmatched_note};
use crate::compare::headline::headline_with;
use crate::compare::wording::{PageWords, Wording};
use crate::page::components::{IdGenerator, NamedText, PageFigure, named_text};
use crate::systems::SystemTable;

/// Data of the page.
#[derive(Serialize)]
pub(super) struct ComparisonPage {
    title: String,
    headline: String,
    tally: String,
    mark: Mark,
    facts: Vec<NamedText>,
    builds: BuildTable,
    counts: CountsView,
    names: Vec<BuildName>,
    kinds: [VerdictStyle; FinalVerdict::ALL.len()],
    changes: CheckRows,
    other_failures: CheckRows,
    data: Value,
    errors: Vec<ErrorView>,
    groups: GroupsView,
    spread: Vec<PageFigure>,
    trends: Option<TestTrends>,
    systems: Option<SystemTable>,
    environments: Vec<EnvironmentView>,
    /// Programs that differ between the first build and the last.
    programs: Vec<DifferenceRow>,
    notes: Vec<String>,
    words: PageWords,
}

/// A build's name in a column header.
#[derive(Serialize)]
struct BuildName {
    whole: String,
    short: String,
}

#[derive(Serialize)]
struct ErrorView {
    build: String,
    location: String,
    message: String,
}

/// The sign before the headline.
#[derive(Serialize)]
struct Mark {
    class: &'static str,
    symbol: &'static str,
}

impl Mark {
    /// A tick only if every primary check is equal.
    fn of(outcome: &ComparisonResult) -> Self {
        let is_equal = |check: &CheckResult| !check.primary || !check.final_verdict.is_notable();
        match outcome.exit_code {
            0 if outcome.checks.iter().all(is_equal) => Self { class: "good", symbol: "✔" },
            0 => Self { class: "doubtful", symbol: "•" },
            _ => Self { class: "bad", symbol: "✕" },
        }
    }
}

impl ComparisonPage {
    pub(super) fn new(outcome: &ComparisonResult, history: &BuildHistory<'_>, options: &PageOptions<'_>) -> Self {
        let names: Vec<&str> = outcome.builds.iter().map(|build| build.name.as_str()).collect();
        let shorts = shorten_names(names.iter().copied());
        let ends: Vec<&str> = [names.first(), names.last()].into_iter().flatten().copied().collect();
        let environments = match options.environments {
            true => environments(&outcome.builds).into_iter().chain(test_environment(history.builds)).collect(),
            false => Vec::new(),
        };
        let mut ids = IdGenerator::default();
        let wording = Wording::of(outcome);
        let styles = VerdictStyles { fail_on: options.fail_on, wording };
        Self {
            title: ends.join(" → "),
            headline: headline_with(outcome, str::to_owned, str::to_owned),
            tally: totals_line(outcome),
            mark: Mark::of(outcome),
            facts: facts(outcome, history),
            builds: BuildTable::new(outcome, history, &environments),
            counts: CountsView::new(history, &shorts, options.charts, &mut ids),
            names: names.iter().zip(&shorts).map(|(whole, short)| BuildName::of(whole, short)).collect(),
            kinds: styles.all(),
            changes: rows::changed_checks(history, styles),
            other_failures: rows::other_failures(history, styles),
            data: Value::from_safe_string(data::encode(history, &shorts, styles)),
            errors: errors(outcome),
            groups: GroupsView::new(history, styles),
            spread: if options.charts { box_plots::box_plots(history, &shorts, &mut ids) } else { Vec::new() },
            trends: options.charts.then(|| build_trends(history, &shorts, &mut ids)).flatten(),
            systems: SystemTable::of_sides(&outcome.builds),
            environments,
            programs: outcome.context.programs.iter().map(DifferenceRow::of).collect(),
            notes: options.notes.iter().cloned().chain(unmatched_note(outcome)).collect(),
            words: wording.page_words(),
        }
    }
}

impl BuildName {
    fn of(whole: &str, short: &str) -> Self {
        Self { whole: whole.to_owned(), short: short.to_owned() }
    }
}

/// The totals of the last build in a line.
fn totals_line(outcome: &ComparisonResult) -> String {
    let totals = &outcome.totals;
    let wording = Wording::of(outcome);
    let counted = |count: usize, singular: &'static str, plural: &'static str| {
        (count > 0).then(|| format!("{count} {}", wording.total(if count == 1 { singular } else { plural })))
    };
    let parts = [
        counted(totals.losses, "loss", "losses"),
        counted(totals.groups_regressed, "group regressed", "groups regressed"),
        counted(totals.gains, "gain", "gains"),
        counted(totals.unconfirmed, "unconfirmed", "unconfirmed"),
        counted(totals.differing, "differs", "differ"),
        counted(totals.inconclusive, "inconclusive", "inconclusive"),
        counted(totals.missing, "missing", "missing"),
        counted(totals.invalid, "invalid", "invalid"),
        counted(totals.incomparable, "incomparable", "incomparable"),
        counted(totals.errors, "error", "errors"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let parts = if parts.is_empty() { "no relevant difference".to_owned() } else { parts.join(", ") };
    format!("{parts}; {} compared", pluralize(totals.compared(), "primary check"))
}

/// The method, options and exit status of the comparison.
fn facts(outcome: &ComparisonResult, history: &BuildHistory<'_>) -> Vec<NamedText> {
    let options = history.tolerances.options;
    let tolerance = format!("±{} %, deviations ±{} points", options.tolerance, options.stddev_tolerance);
    let worse = match Wording::of(outcome) {
        Wording::Builds => "a regression",
        Wording::Alternatives => "worse",
    };
    let exit = match outcome.exit_code {
        0 if outcome.within_run.is_some() => "0, nothing is worse".to_owned(),
        0 => "0, no regression".to_owned(),
        2 => format!("2, {worse} by {}", regressing_methods(outcome).unwrap_or_default()),
        3 => "3, something is missing, invalid, incomparable or ended in an error".to_owned(),
        _ => "4, nothing comparable".to_owned(),
    };
    let facts = [
        named_text("method", describe_method(outcome)),
        named_text("tolerance", tolerance),
        named_text("exit status", exit),
    ];
    facts.into_iter().chain(models::model_facts(history)).collect()
}

fn errors(outcome: &ComparisonResult) -> Vec<ErrorView> {
    let views = |build: &wb_compare::comparison::BuildSummary| {
        let name = build.name.clone();
        let view = move |(location, message): &(String, String)| ErrorView {
            build: name.clone(),
            location: location.clone(),
            message: message.clone(),
        };
        build.errors.iter().map(view).collect::<Vec<_>>()
    };
    outcome.builds.iter().flat_map(views).collect()
}
