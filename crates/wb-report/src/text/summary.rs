//! One line per cell, and what is to be known beside it.

use wb_model::{CellOutcome, pluralize};
use wb_study::result::{CellResult, Conclusion, Study};

use super::Style;
use super::table::{Align, Table, TableCell, Tone};
use super::wrap::{sanitize, wrap};
use crate::groups::{CellGroup, group_cells};
use crate::phrasing;

/// The study at a glance: a table of all cells, what falls short and why, findings, answers, what the environment
/// did, and where and how long it ran.
pub fn summary(study: &Study, style: Style) -> String {
    let groups = group_cells(study);
    [
        cells_table(&groups, style),
        undisturbed_table(&groups, style),
        shortfalls(study, style),
        imprecise_cells(study, style),
        findings(study, style),
        solutions_text(&study.conclusions, style),
        changes(study, style),
        footer(study, style),
    ]
    .concat()
}

fn cells_table(groups: &[CellGroup], style: Style) -> String {
    use Align::{Left, Right};
    let heads = [("", Left), ("median", Right), ("", Right), ("spread", Right), ("n", Right), ("outcome", Left)];
    let mut table = Table::new(&heads);
    for group in groups {
        table.heading(&heading(group));
        for cell in &group.cells {
            table.row(cell_row(group, cell));
        }
    }
    table.draw(style)
}

fn heading(group: &CellGroup) -> String {
    let parts = [group.title.clone(), group.shared_text(), group.measure()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn cell_row(group: &CellGroup, cell: &CellResult) -> Vec<TableCell> {
    let tone = match cell.outcome {
        CellOutcome::Measured => Tone::Good,
        CellOutcome::NotConverged { .. } | CellOutcome::Partial { .. } => Tone::Doubtful,
        CellOutcome::Failed { .. } => Tone::Bad,
        CellOutcome::Unsupported { .. } => Tone::Quiet,
    };
    let primary = cell.primary();
    let summary = primary.and_then(|primary| primary.summary.as_ref());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| phrasing::NO_VALUE.to_owned());
    let median =
        primary.zip(summary).map(|(primary, summary)| primary.metric.unit.quantity(summary.median).to_string());
    let some = |count: usize, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
    let remarks = some(phrasing::invalid_count(cell), "invalid")
        + &some(phrasing::disturbed_count(cell), "disturbed")
        + &phrasing::describe_workers(cell);
    vec![
        format!("  {}", group.label(cell)).into(),
        or_none(median).into(),
        summary.and_then(phrasing::format_half_width).unwrap_or_default().into(),
        or_none(summary.and_then(phrasing::format_spread)).into(),
        summary.map_or(0, |summary| summary.n).to_string().into(),
        TableCell::toned(phrasing::outcome_label(&cell.outcome) + &remarks, tone),
    ]
}

/// The estimates with and without the disturbed samples, since neither may be silently preferred.
fn undisturbed_table(groups: &[CellGroup], style: Style) -> String {
    use Align::{Left, Right};
    let heads = [
        ("", Left),
        ("all samples", Right),
        ("", Right),
        ("n", Right),
        ("undisturbed", Right),
        ("", Right),
        ("n", Right),
    ];
    let mut table = Table::new(&heads);
    let mut any = false;
    for (group, cell) in groups.iter().flat_map(|group| group.cells.iter().map(move |cell| (group, *cell))) {
        let Some(primary) = cell.primary() else { continue };
        let (Some(all), Some(quiet)) = (&primary.summary, &primary.undisturbed) else { continue };
        any = true;
        let figures = |summary: &wb_stats::Summary| {
            let median = primary.metric.unit.quantity(summary.median).to_string();
            [
                median.into(),
                phrasing::format_half_width(summary).unwrap_or_default().into(),
                summary.n.to_string().into(),
            ]
        };
        let name = format!("  {} {}", group.title, group.label(cell));
        table.row(std::iter::once(name.into()).chain(figures(all)).chain(figures(quiet)).collect());
    }
    if any { style.heading("with and without the disturbed samples") + &table.draw(style) } else { String::new() }
}

/// What could not be measured as asked, which decides the exit status.
fn shortfalls(study: &Study, style: Style) -> String {
    let short =
        study.cells.iter().filter(|cell| cell.outcome.is_incomplete()).filter_map(|cell| {
            let why = phrasing::describe_shortfall(cell)?;
            Some(style.remark(
                &phrasing::cell_name(&cell.cell),
                &format!("{}: {why}", phrasing::outcome_label(&cell.outcome)),
            ))
        });
    section("not measured as asked", short.collect(), style)
}

/// What has wider intervals than asked, or none. The table shows how wide; cells with one reason are told together.
fn imprecise_cells(study: &Study, style: Style) -> String {
    let mut reasons: Vec<(String, Vec<&CellResult>)> = Vec::new();
    for cell in &study.cells {
        let Some(reason) = phrasing::describe_imprecision(cell) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cells)) => cells.push(cell),
            None => reasons.push((reason, vec![cell])),
        }
    }
    let told = reasons.iter().map(|(reason, cells)| {
        let which = match cells.as_slice() {
            [one] => phrasing::cell_name(&one.cell),
            several if several.len() == study.cells.len() => "every cell".to_owned(),
            several => pluralize(several.len(), "cell"),
        };
        style.remark(&which, reason)
    });
    section("less precise than asked", told.collect(), style)
}

fn findings(study: &Study, style: Style) -> String {
    let found = study.cells.iter().flat_map(|cell| {
        cell.findings.iter().map(move |finding| style.remark(&phrasing::cell_name(&cell.cell), finding))
    });
    section("findings", found.collect(), style)
}

/// What follows from several cells together.
pub fn solutions_text(answers: &[Conclusion], style: Style) -> String {
    let answers = answers.iter().map(|answer| {
        let name = format!("{} {}  {}", answer.cells, answer.name, answer.unit.quantity(answer.value));
        style.remark(&name, &answer.explanation)
    });
    section("answers", answers.collect(), style)
}

fn changes(study: &Study, style: Style) -> String {
    let changes = study.environment_changes.iter().map(|change| {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "(absent)".to_owned());
        style.remark(&change.path_with_worker(), &format!("{} → {}", side(&change.before), side(&change.after)))
    });
    section("the environment changed during the run", changes.collect(), style)
}

fn section(title: &str, body: String, style: Style) -> String {
    if body.is_empty() { body } else { style.heading(title) + &body }
}

fn footer(study: &Study, style: Style) -> String {
    let run = &study.run;
    let share = phrasing::describe_workload_share(study).map(|share| format!(", {share}")).unwrap_or_default();
    let time = format!(
        "{}: {}; {}{share}",
        pluralize(study.cells.len(), "cell"),
        phrasing::outcome_counts(study),
        phrasing::format_duration(run.seconds)
    );
    let machine: Vec<String> = run.properties.iter().map(|(name, text)| format!("{name} {text}")).collect();
    // Of several machines each has a row, and a line of its own.
    let is_one = run.properties.iter().any(|(name, _)| name == "host");
    let machines = if is_one { vec![machine.join(" · ")] } else { machine };
    let lines = [time].into_iter().chain(machines).filter(|line| !line.is_empty());
    let wrapped = lines.flat_map(|line| wrap(&sanitize(&line), style.width));
    let painted: String = wrapped.map(|line| style.paint(&line, Tone::Quiet) + "\n").collect();
    format!("\n{painted}")
}
