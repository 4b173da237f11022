//! The first chart of the page: the differences of the last build from the first, check by check.

use std::collections::BTreeSet;

use wb_results::comparison::{CheckId, CheckResult, ComparisonMethod, ComparisonResult, Statistic, negligible_percent};

use super::check_table::name_better;
use super::verdict_style::VerdictStyles;
use crate::chart::{ForestPlot, ForestRow};
use crate::compare::change_size::is_worse_by_failures_alone;
use crate::compare::failures::describe_failed;
use crate::compare::figures::{describe_difference, difference, inconclusive_reason, magnitude, shown_interval};
use crate::compare::short_names::short_name;
use crate::compare::wording::Wording;
use crate::page::components::{IdGenerator, PageFigure};

pub(super) const MAX_ROWS: usize = 12;

/// Draws the primary means; if they are too many, those that are not equal, the largest differences first. `None` if
/// there is nothing to draw.
pub(super) fn differences(
    outcome: &ComparisonResult,
    styles: VerdictStyles,
    ids: &mut IdGenerator,
) -> Option<PageFigure> {
    let all = || outcome.checks.iter().filter(|check| check.primary && check.statistic == Statistic::Mean);
    let count = all().count();
    let mut checks: Vec<&CheckResult> = all().filter(|check| check.final_verdict.is_compared()).collect();
    let mut notable = 0;
    if count > MAX_ROWS {
        checks.retain(|check| check.final_verdict.is_notable());
        notable = checks.len();
        checks.sort_by(|one, other| magnitude(other).total_cmp(&magnitude(one)));
        checks.truncate(MAX_ROWS);
    }
    if checks.is_empty() {
        return None;
    }
    let profile = |check: &CheckResult| CheckId::parse(&check.id).map(|id| id.profile.to_owned()).unwrap_or_default();
    let profiles: BTreeSet<String> = all().map(profile).collect();
    let label = |check: &CheckResult| match profiles.len() {
        0 | 1 => short_name(&check.id),
        _ => format!("{}/{}", profile(check), short_name(&check.id)),
    };
    let chart = ForestPlot {
        title: match styles.wording {
            Wording::Builds => "differences between the first build and the last",
            Wording::Alternatives => "differences between parts of one run",
        }
        .to_owned(),
        rows: checks.iter().map(|check| row(check, label(check), styles)).collect(),
    };
    let shown = match (count > MAX_ROWS, checks.len()) {
        (true, shown) if shown < notable => format!(" The {shown} of {count} checks that differ most."),
        (true, shown) => format!(" The {shown} of {count} checks that were compared and are not equivalent."),
        (false, _) => String::new(),
    };
    let kinds: BTreeSet<bool> =
        chart.rows.iter().filter(|row| row.interval.is_some()).map(|row| row.by_samples).collect();
    let kinds = match kinds.len() {
        2 => " Thick intervals include the noise between runs, thin ones are by the samples alone.",
        _ => "",
    };
    let caption = format!(
        "Difference in percent, with its interval where statistics decide.{kinds} Shaded: does not matter.{shown}"
    );
    Some(PageFigure::new(&chart, caption, ids))
}

fn row(check: &CheckResult, label: String, styles: VerdictStyles) -> ForestRow {
    let style = styles.of(check.final_verdict);
    let statistics = check.statistics.as_ref().filter(|_| check.decided_by == ComparisonMethod::Statistical);
    // The score of a check with too few samples has no interval.
    let statistics = statistics.filter(|_| inconclusive_reason(check).is_none());
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    // What is worse by its failures alone does not matter by its values.
    let failures = statistics.filter(|_| is_worse_by_failures_alone(check)).map(|it| describe_failed(it.failures));
    let shown = statistics.filter(|_| failures.is_none());
    let interval = shown.and_then(|it| shown_interval(check.final_verdict, it.interval, it.runs_interval));
    let has_run_noise = shown.is_some_and(|it| it.runs_interval.is_some());
    let estimate = difference(check).filter(|_| failures.is_none());
    let text = failures.unwrap_or_else(|| describe_difference(check).replace('-', "−"));
    ForestRow {
        label,
        better: name_better(check.statistic, check.direction).unwrap_or_default(),
        verdict: (style.class, style.word),
        estimate,
        interval: interval.map(|interval| (percent(interval.low), percent(interval.high))),
        by_samples: styles.wording == Wording::Builds && !(check.final_verdict.is_change() && has_run_noise),
        negligible: statistics.map_or((-check.tolerance, check.tolerance), |it| negligible_percent(it.threshold)),
        text: format!("{} {text}", style.symbol),
    }
}
