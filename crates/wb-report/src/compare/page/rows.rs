//! Tables of the checks that the page lists without scripts: primary ones that are worse, better or incomparable in any
//! build, and separately the failures among the others.

use minijinja::Value;
use serde::Serialize;
use wb_compare::comparison::{BuildCheck, BuildHistory, ComparisonMethod, FinalVerdict};
use wb_compare::statistical::MetricComparison;
use wb_compare::{CheckId, MeasuredValue as Known};

use super::display_unit::DisplayUnit;
use super::figures::{format_interval, format_percent, format_value};
use super::markup::HtmlWriter;
use super::models;
use super::verdict_style::VerdictStyles;
use crate::compare::figures::{case_name, shown_interval};

/// Maximum number of listed failures of checks that are not primary.
const MAX_OTHER_FAILURES: usize = 100;

/// Rows of checks, and the number of checks.
#[derive(Serialize)]
pub(super) struct CheckRows {
    count: usize,
    /// The number of checks that have a row.
    listed: usize,
    rows: Value,
}

/// Rows of the primary checks that are not equal: the check, its value in the first build, and a cell for each
/// later build.
pub(super) fn changed_checks(history: &BuildHistory<'_>, styles: VerdictStyles) -> CheckRows {
    let checks = select_checks(history, true, |decided| styles.of(decided).is_change);
    CheckRows::of(history, &checks, checks.len(), styles)
}

/// Rows of the failures among the checks that are not primary, those of the last build first.
pub(super) fn other_failures(history: &BuildHistory<'_>, styles: VerdictStyles) -> CheckRows {
    let mut checks = select_checks(history, false, FinalVerdict::is_failure);
    let last = history.builds.list().len() - 1;
    checks.sort_by_key(|check| {
        !history.build_check(*check, last).is_some_and(|judged| judged.final_verdict.is_failure())
    });
    CheckRows::of(history, &checks, MAX_OTHER_FAILURES, styles)
}

/// The checks, primary or not, whose verdict matches in any build.
fn select_checks(history: &BuildHistory<'_>, is_primary: bool, matches: impl Fn(FinalVerdict) -> bool) -> Vec<usize> {
    let later = 1..history.builds.list().len();
    let in_any = |index: usize| {
        later.clone().any(|build| history.build_check(index, build).is_some_and(|judged| matches(judged.final_verdict)))
    };
    let checks = history.tolerances.checks.iter().enumerate();
    checks.filter(|(index, check)| check.primary == is_primary && in_any(*index)).map(|(index, _)| index).collect()
}

impl CheckRows {
    fn of(history: &BuildHistory<'_>, checks: &[usize], max_rows: usize, styles: VerdictStyles) -> Self {
        let models = models::model_names(history);
        let mut rows = HtmlWriter::default();
        let listed = &checks[..checks.len().min(max_rows)];
        for &check in listed {
            let measure = DisplayUnit::of(history, check);
            rows.raw("<tr>");
            write_name(&mut rows, &history.tolerances.id(check), &measure.suffix);
            write_first_value(&mut rows, history, check, &measure, &models);
            for build in 1..history.builds.list().len() {
                write_cell(&mut rows, history, check, build, &measure, styles);
            }
        }
        Self { count: checks.len(), listed: listed.len(), rows: rows.finish() }
    }
}

/// Writes the value in the first build and, if scores decide, the tolerated values and the models.
fn write_first_value(
    rows: &mut HtmlWriter,
    history: &BuildHistory<'_>,
    check: usize,
    measure: &DisplayUnit,
    names: &[String],
) {
    rows.raw("<td>").figure(format_outcome(history.tolerances.value(check, 0), measure));
    if !models::is_scored(history, check) {
        return;
    }
    let limits = history.tolerances.limits(check);
    if let Some(range) = limits.range {
        rows.raw("<small>").figure(models::format_range(range, measure)).raw("</small>");
    }
    for model in limits.models {
        rows.raw("<small class=model>").text(&names[model]).raw("</small>");
    }
}

/// Writes an identifier with its distinguishing parts emphasised.
fn write_name(rows: &mut HtmlWriter, id: &CheckId<'_>, suffix: &str) {
    rows.raw("<th scope=row class=id><span>").text(id.profile).raw("/").text(id.test).raw("/").text(id.serial);
    rows.raw(id.id_format.before_case()).raw("</span><wbr><bdi>").text(&case_name(id));
    rows.raw("</bdi><wbr><span>/").figure(id.class).raw("/</span><bdi>").text(id.metric).raw("</bdi><span>");
    rows.figure(id.id_format.before_statistic()).figure(id.statistic).raw("</span>");
    if !suffix.is_empty() {
        rows.raw(" <span>in ").text(suffix).raw("</span>");
    }
}

fn write_cell(
    rows: &mut HtmlWriter,
    history: &BuildHistory<'_>,
    check: usize,
    build: usize,
    measure: &DisplayUnit,
    styles: VerdictStyles,
) {
    let Some(judged) = history.build_check(check, build) else {
        rows.raw("<td>–");
        return;
    };
    styles.of(judged.final_verdict).write(rows);
    let (difference, interval) = difference(&judged);
    if let Some(difference) = difference {
        rows.raw(" ").figure(format_percent(difference).trim_end_matches(" %"));
        if let Some(interval) = interval {
            rows.raw(" <i>").figure(format_interval(difference, interval)).raw("</i>");
        }
    }
    if !judged.differences.is_empty() {
        rows.raw(" <abbr title=\"parameters differ\">Δ</abbr>");
    }
    rows.raw("<small>").figure(format_outcome(history.tolerances.value(check, build), measure)).raw("</small>");
}

/// The deciding difference in percent, and the ends of its interval.
fn difference(judged: &BuildCheck<'_>) -> (Option<f64>, Option<[f64; 2]>) {
    let decisive = judged
        .by_statistics
        .filter(|_| judged.decided_by == ComparisonMethod::Statistical)
        .and_then(MetricComparison::decisive);
    match decisive {
        Some(aspect) => {
            let interval = shown_interval(judged.final_verdict, aspect.interval, aspect.runs_interval);
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let ends = interval.map(|interval| [interval.low, interval.high].map(percent));
            (Some(percent(aspect.ratio)), ends.filter(|ends| ends.iter().all(|end| end.is_finite())))
        }
        None => (judged.by_tolerance.score, None),
    }
}

fn format_outcome(outcome: Known, measure: &DisplayUnit) -> String {
    match outcome {
        Known::Known(number) => format_value(number / measure.divisor),
        Known::Missing => "–".to_owned(),
        Known::Invalid => "invalid".to_owned(),
    }
}
