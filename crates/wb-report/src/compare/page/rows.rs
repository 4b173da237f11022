//! The checks that the page lists without scripts: the primary ones that got worse or better in any build, or cannot be
//! compared there, and apart from them the failures among the others.

use minijinja::Value;
use serde::Serialize;
use wb_compare::comparison::{BuildCheck, BuildHistory, ComparisonMethod, FinalVerdict};
use wb_compare::{CheckId, MeasuredValue as Known};

use super::display_unit::DisplayUnit;
use super::figures::{format_percent, format_value, round_significant};
use super::markup::HtmlWriter;
use super::models;
use super::verdict_style::verdict_style;
use crate::compare::figures::case_name;

/// So many failures of checks that are not primary are listed.
const MAX_OTHER_FAILURES: usize = 100;

/// Rows of checks, and how many checks there are.
#[derive(Serialize)]
pub(super) struct CheckRows {
    count: usize,
    /// How many of them have a row.
    listed: usize,
    rows: Value,
}

/// The primary checks that got worse or better: the check, its value in the first build, and a cell for each later one.
pub(super) fn changed_checks(history: &BuildHistory<'_>, fail_on_gain: bool) -> CheckRows {
    let checks = select_checks(history, true, |decided| verdict_style(decided, fail_on_gain).is_change);
    CheckRows::of(history, &checks, checks.len(), fail_on_gain)
}

/// The failures among the checks that are not primary, those of the last build first.
pub(super) fn other_failures(history: &BuildHistory<'_>, fail_on_gain: bool) -> CheckRows {
    let mut checks = select_checks(history, false, FinalVerdict::is_failure);
    let last = history.builds.list().len() - 1;
    checks.sort_by_key(|at| !history.build_check(*at, last).is_some_and(|judged| judged.final_verdict.is_failure()));
    CheckRows::of(history, &checks, MAX_OTHER_FAILURES, fail_on_gain)
}

/// The checks, primary or not, that come to something in any build.
fn select_checks(history: &BuildHistory<'_>, is_primary: bool, comes_to: impl Fn(FinalVerdict) -> bool) -> Vec<usize> {
    let later = 1..history.builds.list().len();
    let in_any = |at: usize| {
        later.clone().any(|build| history.build_check(at, build).is_some_and(|judged| comes_to(judged.final_verdict)))
    };
    let checks = history.tolerances.checks.iter().enumerate();
    checks.filter(|(at, check)| check.primary == is_primary && in_any(*at)).map(|(at, _)| at).collect()
}

impl CheckRows {
    fn of(history: &BuildHistory<'_>, checks: &[usize], most: usize, fail_on_gain: bool) -> Self {
        let models = models::model_names(history);
        let mut rows = HtmlWriter::default();
        let listed = &checks[..checks.len().min(most)];
        for &at in listed {
            let measure = DisplayUnit::of(history, at);
            rows.raw("<tr>");
            write_name(&mut rows, &history.tolerances.id(at), &measure.suffix);
            write_first_value(&mut rows, history, at, &measure, &models);
            for build in 1..history.builds.list().len() {
                write_cell(&mut rows, history, at, build, &measure, fail_on_gain);
            }
        }
        Self { count: checks.len(), listed: listed.len(), rows: rows.finish() }
    }
}

/// The value in the first build, and where scores judge, the values that are tolerated and the models.
fn write_first_value(
    rows: &mut HtmlWriter,
    history: &BuildHistory<'_>,
    at: usize,
    measure: &DisplayUnit,
    names: &[String],
) {
    rows.raw("<td>").figure(format_outcome(history.tolerances.value(at, 0), measure));
    if !models::is_scored(history, at) {
        return;
    }
    let limits = history.tolerances.limits(at);
    if let Some(range) = limits.range {
        rows.raw("<small>").figure(models::format_range(range, measure)).raw("</small>");
    }
    for model in limits.models {
        rows.raw("<small class=model>").text(&names[model]).raw("</small>");
    }
}

/// An identifier, in which what tells a check from its neighbours stands out.
fn write_name(rows: &mut HtmlWriter, id: &CheckId<'_>, suffix: &str) {
    rows.raw("<th scope=row class=id><span>").text(id.profile).raw("/").text(id.test).raw("/").text(id.serial);
    rows.raw(id.naming.before_case()).raw("</span><wbr><bdi>").text(&case_name(id));
    rows.raw("</bdi><wbr><span>/").figure(id.class).raw("/</span><bdi>").text(id.metric).raw("</bdi><span>");
    rows.figure(id.naming.before_statistic()).figure(id.statistic).raw("</span>");
    if !suffix.is_empty() {
        rows.raw(" <span>in ").text(suffix).raw("</span>");
    }
}

fn write_cell(
    rows: &mut HtmlWriter,
    history: &BuildHistory<'_>,
    at: usize,
    build: usize,
    measure: &DisplayUnit,
    fail_on_gain: bool,
) {
    let Some(judged) = history.build_check(at, build) else {
        rows.raw("<td>–");
        return;
    };
    let kind = verdict_style(judged.final_verdict, fail_on_gain);
    rows.raw("<td class=").figure(kind.class).raw("><abbr title=\"").figure(kind.word);
    rows.raw("\">").figure(kind.symbol).raw("</abbr>");
    let (difference, half) = difference(&judged);
    if let Some(difference) = difference {
        rows.raw(" ").figure(format_percent(difference).trim_end_matches(" %"));
        if let Some(half) = half {
            rows.raw(" <i>±").figure(round_significant(half, 2)).raw("</i>");
        }
    }
    if !judged.differences.is_empty() {
        rows.raw(" <abbr title=\"parameters differ\">Δ</abbr>");
    }
    rows.raw("<small>").figure(format_outcome(history.tolerances.value(at, build), measure)).raw("</small>");
}

/// The difference that decides, in percent, and half of its interval's width.
fn difference(judged: &BuildCheck<'_>) -> (Option<f64>, Option<f64>) {
    let effect =
        judged.by_statistics.filter(|_| judged.decided_by == ComparisonMethod::Statistical).and_then(|it| it.effect);
    match effect {
        Some(effect) => {
            let half = effect.interval.map(|interval| (interval.high - interval.low) * 50.0);
            (Some((effect.estimate - 1.0) * 100.0), half.filter(|half| half.is_finite()))
        }
        None => (judged.by_tolerance.score, None),
    }
}

fn format_outcome(known: Known, measure: &DisplayUnit) -> String {
    match known {
        Known::Known(known) => format_value(known / measure.divisor),
        Known::Missing => "–".to_owned(),
        Known::Invalid => "invalid".to_owned(),
    }
}
