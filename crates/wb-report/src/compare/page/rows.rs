//! The checks that got worse or better in any build, or cannot be compared there: what the page lists without scripts.

use minijinja::Value;
use wb_compare::outcome::{History, Judged, Method};
use wb_compare::{CheckId, Value as Known};

use super::figures::{percent, rounded, value};
use super::kinds::kind;
use super::markup::Markup;
use super::measure::Measure;
use crate::compare::figures::case_name;

/// How many they are, and their rows: the check, its value in the first build, and a cell for each later one.
pub(super) fn changes(history: &History<'_>, fail_on_gain: bool) -> (usize, Value) {
    let later = 1..history.builds.list().len();
    let changes = |at: &usize| {
        let is_change = |judged: Judged<'_>| kind(judged.decided, fail_on_gain).is_change;
        history.tolerances.checks[*at].primary
            && later.clone().any(|build| history.judged(*at, build).is_some_and(is_change))
    };
    let (mut rows, mut count) = (Markup::default(), 0);
    for at in (0..history.tolerances.checks.len()).filter(changes) {
        let measure = Measure::of(history, at);
        rows.raw("<tr>");
        name(&mut rows, &history.tolerances.id(at), &measure.suffix);
        rows.raw("<td>");
        rows.figure(shown(history.tolerances.value(at, 0), &measure));
        for build in later.clone() {
            cell(&mut rows, history, at, build, &measure, fail_on_gain);
        }
        count += 1;
    }
    (count, rows.done())
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
