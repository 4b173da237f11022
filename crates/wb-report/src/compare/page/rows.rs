//! The checks that the page lists without scripts: the primary ones that got worse or better in any build, or cannot be
//! compared there, and apart from them the failures among the others.

use minijinja::Value;
use serde::Serialize;
use wb_compare::outcome::{Decided, History, Judged, Method};
use wb_compare::{CheckId, Value as Known};

use super::figures::{percent, rounded, value};
use super::kinds::kind;
use super::markup::Markup;
use super::measure::Measure;
use super::models;
use crate::compare::figures::case_name;

/// So many failures of checks that are not primary are listed.
const OTHERS: usize = 100;

/// Rows of checks, and how many checks there are.
#[derive(Serialize)]
pub(super) struct Rows {
    count: usize,
    /// How many of them have a row.
    listed: usize,
    rows: Value,
}

/// The primary checks that got worse or better: the check, its value in the first build, and a cell for each later one.
pub(super) fn changes(history: &History<'_>, fail_on_gain: bool) -> Rows {
    let checks = selected(history, true, |decided| kind(decided, fail_on_gain).is_change);
    Rows::of(history, &checks, checks.len(), fail_on_gain)
}

/// The failures among the checks that are not primary, those of the last build first.
pub(super) fn other_failures(history: &History<'_>, fail_on_gain: bool) -> Rows {
    let mut checks = selected(history, false, Decided::is_failure);
    let last = history.builds.list().len() - 1;
    checks.sort_by_key(|at| !history.judged(*at, last).is_some_and(|judged| judged.decided.is_failure()));
    Rows::of(history, &checks, OTHERS, fail_on_gain)
}

/// The checks, primary or not, that come to something in any build.
fn selected(history: &History<'_>, is_primary: bool, comes_to: impl Fn(Decided) -> bool) -> Vec<usize> {
    let later = 1..history.builds.list().len();
    let in_any =
        |at: usize| later.clone().any(|build| history.judged(at, build).is_some_and(|judged| comes_to(judged.decided)));
    let checks = history.tolerances.checks.iter().enumerate();
    checks.filter(|(at, check)| check.primary == is_primary && in_any(*at)).map(|(at, _)| at).collect()
}

impl Rows {
    fn of(history: &History<'_>, checks: &[usize], most: usize, fail_on_gain: bool) -> Self {
        let models = models::names(history);
        let mut rows = Markup::default();
        let listed = &checks[..checks.len().min(most)];
        for &at in listed {
            let measure = Measure::of(history, at);
            rows.raw("<tr>");
            name(&mut rows, &history.tolerances.id(at), &measure.suffix);
            first(&mut rows, history, at, &measure, &models);
            for build in 1..history.builds.list().len() {
                cell(&mut rows, history, at, build, &measure, fail_on_gain);
            }
        }
        Self { count: checks.len(), listed: listed.len(), rows: rows.done() }
    }
}

/// The value in the first build, and where scores judge, the values that are tolerated and the models.
fn first(rows: &mut Markup, history: &History<'_>, at: usize, measure: &Measure, names: &[String]) {
    rows.raw("<td>").figure(shown(history.tolerances.value(at, 0), measure));
    if !models::is_scored(history, at) {
        return;
    }
    let limits = history.tolerances.limits(at);
    if let Some(range) = limits.range {
        rows.raw("<small>").figure(models::range(range, measure)).raw("</small>");
    }
    for model in limits.models {
        rows.raw("<small class=model>").text(&names[model]).raw("</small>");
    }
}

/// An identifier, in which what tells a check from its neighbours stands out.
fn name(rows: &mut Markup, id: &CheckId<'_>, suffix: &str) {
    rows.raw("<th scope=row class=id><span>").text(id.profile).raw("/").text(id.test).raw("/").text(id.serial);
    rows.raw(id.naming.before_case()).raw("</span><wbr><bdi>").text(&case_name(id));
    rows.raw("</bdi><wbr><span>/").figure(id.class).raw("/</span><bdi>").text(id.metric).raw("</bdi><span>");
    rows.figure(id.naming.before_statistic()).figure(id.statistic).raw("</span>");
    if !suffix.is_empty() {
        rows.raw(" <span>in ").text(suffix).raw("</span>");
    }
}

fn cell(rows: &mut Markup, history: &History<'_>, at: usize, build: usize, measure: &Measure, fail_on_gain: bool) {
    let Some(judged) = history.judged(at, build) else {
        rows.raw("<td>–");
        return;
    };
    let kind = kind(judged.decided, fail_on_gain);
    rows.raw("<td class=").figure(kind.class).raw("><abbr title=\"").figure(kind.word);
    rows.raw("\">").figure(kind.symbol).raw("</abbr>");
    let (difference, half) = difference(&judged);
    if let Some(difference) = difference {
        rows.raw(" ").figure(percent(difference).trim_end_matches(" %"));
        if let Some(half) = half {
            rows.raw(" <i>±").figure(rounded(half, 2)).raw("</i>");
        }
    }
    if !judged.differences.is_empty() {
        rows.raw(" <abbr title=\"parameters differ\">Δ</abbr>");
    }
    rows.raw("<small>").figure(shown(history.tolerances.value(at, build), measure)).raw("</small>");
}

/// The difference that decides, in percent, and half of its interval's width.
fn difference(judged: &Judged<'_>) -> (Option<f64>, Option<f64>) {
    let effect = judged.by_statistics.filter(|_| judged.decided_by == Method::Statistical).and_then(|it| it.effect);
    match effect {
        Some(effect) => {
            let half = effect.interval.map(|interval| (interval.high - interval.low) * 50.0);
            (Some((effect.estimate - 1.0) * 100.0), half.filter(|half| half.is_finite()))
        }
        None => (judged.by_tolerance.score, None),
    }
}

fn shown(known: Known, measure: &Measure) -> String {
    match known {
        Known::Known(known) => value(known / measure.divisor),
        Known::Missing => "–".to_owned(),
        Known::Invalid => "invalid".to_owned(),
    }
}
