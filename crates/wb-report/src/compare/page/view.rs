//! The data for the template of a comparison's page.

use minijinja::Value;
use serde::Serialize;
use wb_compare::comparison::BuildHistory;
use wb_results::comparison::{BuildSummary, CheckResult, ComparisonResult, FinalVerdict, Statistic};

use super::box_plots;
use super::build_names::shorten_names;
use super::builds::BuildTable;
use super::check_table::CheckTable;
use super::counts::{CountsView, counts_chart};
use super::environment::{EnvironmentView, environments, test_environment};
use super::groups::GroupsView;
use super::rows::{self, CheckRows};
use super::trends::{TestTrends, build_trends};
use super::verdict_style::{VerdictStyle, VerdictStyles};
use super::{PageOptions, models};
use super::{data, differences};
use crate::compare::context::DifferenceRow;
use crate::compare::failures::has_undecisive_failures;
use crate::compare::figures::{describe_method, regressing_methods, unmatched_note};
use crate::compare::findings::{BuildFindings, group_findings};
use crate::compare::headline::headline_with;
use crate::compare::threshold_range::ThresholdRange;
use crate::compare::totals::{
    count_verdicts, describe_compared, describe_no_difference, disturbed_samples, has_disturbed_samples,
};
use crate::compare::wording::{PageWords, Wording};
use crate::page::components::{IdGenerator, NamedText, PageFigure, named_text};
use crate::systems::SystemTable;

#[derive(Serialize)]
pub(super) struct ComparisonPage {
    title: String,
    headline: String,
    tally: String,
    mark: Mark,
    facts: Vec<NamedText>,
    builds: BuildTable,
    overview: Vec<PageFigure>,
    counts: CountsView,
    findings: Vec<BuildFindings>,
    names: Vec<BuildName>,
    kinds: [VerdictStyle; FinalVerdict::ALL.len()],
    changes: CheckRows,
    other_failures: CheckRows,
    data: Value,
    errors: Vec<ErrorView>,
    groups: GroupsView,
    /// The number of disturbed samples of the first build and the last.
    disturbed: Option<String>,
    /// Whether any sample is, which the head of the page says.
    is_disturbed: bool,
    spread: Vec<PageFigure>,
    trends: Option<TestTrends>,
    systems: Option<SystemTable>,
    environments: Vec<EnvironmentView>,
    programs: Vec<DifferenceRow>,
    notes: Vec<String>,
    words: PageWords,
}

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

#[derive(Serialize)]
struct Mark {
    class: &'static str,
    symbol: &'static str,
}

impl Mark {
    /// A tick only if every primary check is equal, and fails as often on both sides.
    fn new(outcome: &ComparisonResult) -> Self {
        let is_equal = |check: &CheckResult| {
            !check.primary || !check.final_verdict.is_notable() && !has_undecisive_failures(check)
        };
        match outcome.exit_code {
            0 if outcome.checks.iter().all(is_equal) => Self { class: "good", symbol: "✔" },
            0 => Self { class: "doubtful", symbol: "•" },
            _ => Self { class: "bad", symbol: "✕" },
        }
    }
}

impl ComparisonPage {
    pub(super) fn new(outcome: &ComparisonResult, history: &BuildHistory<'_>, options: &PageOptions<'_>) -> Self {
        let table = CheckTable::new(history);
        let names = &table.names;
        let shorts = shorten_names(names.iter().copied());
        let ends: Vec<&str> = [names.first(), names.last()].into_iter().flatten().copied().collect();
        let environments = if options.environments {
            environments(&outcome.builds).into_iter().chain(test_environment(history.builds)).collect()
        } else {
            Vec::new()
        };
        let mut ids = IdGenerator::default();
        let wording = Wording::new(outcome);
        let styles = VerdictStyles { fail_on: options.fail_on, wording };
        let primary = outcome.checks.iter().filter(|check| check.primary && check.statistic == Statistic::Mean).count();
        // The first chart has all of a few checks, so that their distribution says nothing more.
        let has_distribution = options.charts && (names.len() > 2 || primary > differences::MAX_ROWS);
        let first = options.charts.then(|| differences::differences(outcome, styles, &mut ids)).flatten();
        let counts = has_distribution.then(|| counts_chart(&table, &shorts, &mut ids));
        Self {
            title: title(outcome, &ends),
            headline: headline_with(outcome, str::to_owned, str::to_owned),
            tally: totals_line(outcome),
            mark: Mark::new(outcome),
            facts: facts(outcome, history, options.criteria),
            builds: BuildTable::new(outcome, &table, &environments),
            overview: first.into_iter().chain(counts).collect(),
            counts: CountsView::new(&table, &shorts),
            disturbed: disturbed_samples(outcome),
            is_disturbed: has_disturbed_samples(outcome),
            findings: group_findings(outcome, str::to_owned),
            names: names.iter().zip(&shorts).map(|(whole, short)| BuildName::new(whole, short)).collect(),
            kinds: styles.all(),
            changes: rows::changed_checks(&table, styles),
            other_failures: rows::other_failures(&table, styles),
            data: Value::from_safe_string(data::encode(&table, &shorts, styles)),
            errors: errors(outcome),
            groups: GroupsView::new(history, styles),
            spread: if has_distribution { box_plots::box_plots(&table, &shorts, &mut ids) } else { Vec::new() },
            trends: (options.charts && !table.has_parts()).then(|| build_trends(history, &shorts, &mut ids)).flatten(),
            systems: SystemTable::of_sides(&outcome.builds),
            environments,
            programs: outcome.context.programs.iter().map(DifferenceRow::new).collect(),
            notes: options.notes.iter().cloned().chain(unmatched_note(outcome)).collect(),
            words: wording.page_words(),
        }
    }
}

impl BuildName {
    fn new(whole: &str, short: &str) -> Self {
        Self { whole: whole.to_owned(), short: short.to_owned() }
    }
}

/// The names of both ends; for several parts of one run, their number.
fn title(outcome: &ComparisonResult, ends: &[&str]) -> String {
    let Some(within_run) = outcome.within_run.as_ref().filter(|within_run| within_run.judged.len() > 1) else {
        return ends.join(" → ");
    };
    let parts = match within_run.by.as_str() {
        "worker" => "workers",
        "id" => "tests",
        _ => "values",
    };
    format!("{} → {} other {parts}", within_run.reference, within_run.judged.len())
}

fn totals_line(outcome: &ComparisonResult) -> String {
    let counted = count_verdicts(&outcome.totals, Wording::new(outcome));
    let parts: Vec<String> = counted.into_iter().map(|(count, name)| format!("{count} {name}")).collect();
    let parts = if parts.is_empty() { describe_no_difference(outcome) } else { parts.join(", ") };
    format!("{parts}; {}", describe_compared(outcome))
}

fn facts(outcome: &ComparisonResult, history: &BuildHistory<'_>, criteria: &[String]) -> Vec<NamedText> {
    let failed_by = match Wording::new(outcome).failed_by(outcome) {
        "regression by" => "a regression by",
        other => other,
    };
    let exit = match (outcome.exit_code, regressing_methods(outcome)) {
        (0, _) if outcome.within_run.is_some() => "0, nothing is worse".to_owned(),
        (0, _) => "0, no regression".to_owned(),
        (2, Some(methods)) => format!("2, {failed_by} {methods}"),
        (code @ (2 | 3), _) => format!("{code}, something is missing, invalid, incomparable or ended in an error"),
        _ => "4, nothing comparable and no error".to_owned(),
    };
    let facts = [
        named_text("method", describe_method(outcome)),
        named_text("thresholds", ThresholdRange::of_primary(outcome).map_or_else(String::new, |it| it.to_string())),
        named_text("criteria", criteria.join("; ")),
        named_text("exit status", exit),
    ];
    let facts = facts.into_iter().filter(|fact| !fact.text.is_empty());
    facts.chain(models::model_facts(history)).collect()
}

/// The errors of all builds; of parts of one run, those of each part.
fn errors(outcome: &ComparisonResult) -> Vec<ErrorView> {
    let view = |build: String, location: &str, message: &str| ErrorView {
        build,
        location: location.to_owned(),
        message: message.to_owned(),
    };
    if outcome.within_run.is_some() {
        return outcome.errors().map(|(part, location, message)| view(part, location, message)).collect();
    }
    let of_build = |build: &BuildSummary| {
        let name = build.name.clone();
        let errors = build.errors.iter().map(move |(location, message)| view(name.clone(), location, message));
        errors.collect::<Vec<_>>()
    };
    outcome.builds.iter().flat_map(of_build).collect()
}
