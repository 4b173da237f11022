//! Tables of the checks that the page lists without scripts: primary ones that are worse, better or incomparable in any
//! build, and separately the failures among the others.

use minijinja::Value;
use serde::Serialize;
use wb_compare::MeasuredValue as Known;
use wb_compare::comparison::BuildCheck;
use wb_compare::statistical::{AspectComparison, MetricComparison};
use wb_results::comparison::{CheckId, ComparisonMethod, FinalVerdict, Statistic};

use super::check_table::CheckTable;
use super::display_unit::DisplayUnit;
use super::figures::{format_interval, format_percent, format_points, format_value};
use super::markup::HtmlWriter;
use super::models;
use super::verdict_style::VerdictStyles;
use crate::compare::failures::describe_failures_alone;
use crate::compare::figures::{case_name, named_aspect, shown_interval};

const MAX_OTHER_FAILURES: usize = 100;

#[derive(Serialize)]
pub(super) struct CheckRows {
    count: usize,
    /// Checks that have a row.
    listed: usize,
    rows: Value,
}

/// Rows of the primary checks that are not equal: the check, its value in the first column, and a cell for each other
/// one.
pub(super) fn changed_checks(table: &CheckTable<'_>, styles: VerdictStyles) -> CheckRows {
    let rows = select_rows(table, true, |decided| styles.of(decided).is_change);
    CheckRows::new(table, &rows, rows.len(), styles)
}

/// Rows of the failures among the checks that are not primary, those of the last build first.
pub(super) fn other_failures(table: &CheckTable<'_>, styles: VerdictStyles) -> CheckRows {
    let mut rows = select_rows(table, false, FinalVerdict::is_failure);
    let last = table.names.len() - 1;
    rows.sort_by_key(|row| !table.result(*row, last).is_some_and(|judged| judged.final_verdict.is_failure()));
    CheckRows::new(table, &rows, MAX_OTHER_FAILURES, styles)
}

fn select_rows(table: &CheckTable<'_>, is_primary: bool, matches: impl Fn(FinalVerdict) -> bool) -> Vec<usize> {
    let has_match = |row: usize| {
        table.judged().any(|column| table.result(row, column).is_some_and(|judged| matches(judged.final_verdict)))
    };
    (0..table.rows()).filter(|row| table.is_primary(*row) == is_primary && has_match(*row)).collect()
}

impl CheckRows {
    fn new(table: &CheckTable<'_>, selected: &[usize], max_rows: usize, styles: VerdictStyles) -> Self {
        let models = models::model_names(table.history);
        let mut rows = HtmlWriter::default();
        let listed = &selected[..selected.len().min(max_rows)];
        for &row in listed {
            let measure = DisplayUnit::new(table, row);
            rows.raw("<tr>");
            write_name(&mut rows, &table.id(row), &measure.suffix, table.better(row));
            write_first_value(&mut rows, table, row, &measure, &models);
            for column in table.judged() {
                write_cell(&mut rows, table, (row, column), &measure, styles);
            }
            rows.raw("</tr>");
        }
        Self { count: selected.len(), listed: listed.len(), rows: rows.finish() }
    }
}

/// Writes the value in the first build and, if scores decide, the tolerated values and the models.
fn write_first_value(
    rows: &mut HtmlWriter,
    table: &CheckTable<'_>,
    row: usize,
    measure: &DisplayUnit,
    names: &[String],
) {
    rows.raw("<td>").figure(format_outcome(table.value(row, 0), measure));
    if models::is_scored(table, row) {
        let limits = table.history.tolerances.limits(table.any_check(row));
        if let Some(range) = limits.range {
            rows.raw("<small>").figure(models::format_range(range, measure)).raw("</small>");
        }
        for model in limits.models {
            rows.raw("<small class=\"model\">").text(&names[model]).raw("</small>");
        }
    }
    rows.raw("</td>");
}

fn write_name(rows: &mut HtmlWriter, id: &CheckId<'_>, suffix: &str, better: Option<&'static str>) {
    rows.raw("<th scope=\"row\" class=\"id\"><span>").text(id.profile).raw("/").text(id.test).raw("/").text(id.serial);
    rows.raw(id.id_format.before_case()).raw("</span><wbr/><bdi>").text(&case_name(id));
    rows.raw("</bdi><wbr/><span>/").figure(id.class).raw("/</span><bdi>").text(id.metric).raw("</bdi><span>");
    rows.figure(id.id_format.before_statistic()).figure(id.statistic).raw("</span>");
    if !suffix.is_empty() {
        rows.raw(" <span>in ").text(suffix).raw("</span>");
    }
    if let Some(better) = better {
        rows.raw(" <span class=\"better\">").raw(better).raw("</span>");
    }
    rows.raw("</th>");
}

fn write_cell(
    rows: &mut HtmlWriter,
    table: &CheckTable<'_>,
    (row, column): (usize, usize),
    measure: &DisplayUnit,
    styles: VerdictStyles,
) {
    let Some(judged) = table.result(row, column) else {
        rows.raw("<td>–</td>");
        return;
    };
    styles.of(judged.final_verdict).write(rows);
    let decisive = decisive_aspect(&judged);
    let (difference, interval) = difference(&judged, decisive);
    if let Some(failures) = describe_failures_alone(&judged) {
        rows.raw(" ").text(&failures);
    } else if let Some(difference) = difference {
        if let Some(aspect) = named_aspect(decisive.map(|decisive| decisive.aspect)) {
            rows.raw(" <i>").text(aspect).raw("</i>");
        }
        let points = |is_weighted| format_points(difference, is_weighted);
        match in_points(&table.id(row), &judged) {
            Some(is_weighted) => rows.raw(" ").figure(points(is_weighted)),
            None => rows.raw(" ").figure(format_percent(difference).trim_end_matches(" %")),
        };
        if let Some(interval) = interval {
            rows.raw(" <i>").figure(format_interval(difference, interval)).raw("</i>");
        }
    }
    if let Some(of_values) = decisive.and_then(|aspect| aspect.value_difference(aspect.ratio)) {
        rows.raw(" ").figure(format_signed_value(of_values / measure.divisor));
    }
    if !judged.differences.is_empty() {
        rows.raw(" <abbr title=\"parameters differ\">Δ</abbr>");
    }
    rows.raw("<small>").figure(format_outcome(table.value(row, column), measure)).raw("</small></td>");
}

fn format_signed_value(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", format_value(value.abs()))
}

/// Whether a difference in percentage points is a weighted score; `None` if it is in percent.
fn in_points(id: &CheckId<'_>, judged: &BuildCheck<'_>) -> Option<bool> {
    let is_points = id.statistic == Statistic::Stddev && judged.decided_by == ComparisonMethod::Tolerance;
    is_points.then(|| is_weighted_score(judged))
}

/// Whether a score is not the plain difference of both sides.
pub(super) fn is_weighted_score(judged: &BuildCheck<'_>) -> bool {
    match (judged.by_tolerance.score, judged.by_tolerance.raw) {
        (Some(score), Some(raw)) if score.is_finite() => (score - raw).abs() > 1e-9 * raw.abs().max(1.0),
        (score, raw) => score != raw,
    }
}

fn decisive_aspect<'a>(judged: &BuildCheck<'a>) -> Option<&'a AspectComparison> {
    let by_statistics = judged.by_statistics.filter(|_| {
        // Too few samples have the difference of their means, as in every output.
        judged.decided_by == ComparisonMethod::Statistical && !judged.too_few_samples
    });
    by_statistics.and_then(MetricComparison::decisive)
}

fn difference(judged: &BuildCheck<'_>, decisive: Option<&AspectComparison>) -> (Option<f64>, Option<[f64; 2]>) {
    match decisive {
        // A value below zero leaves no ratio.
        Some(aspect) if aspect.base.is_some() => (None, None),
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
