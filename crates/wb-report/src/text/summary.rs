//! Renders the summary of a study: one line per cell, and remarks.

use wb_model::{CellOutcome, pluralize};
use wb_results::{CellResult, Conclusion, MetricResult, Study};

use super::Style;
use super::table::{Align, Table, TableCell, Tone, figure_row};
use super::wrap::{sanitize, wrap};
use crate::findings::group_findings;
use crate::groups::{CellGroup, group_cells};
use crate::phrasing;

/// Renders a study at a glance: a table of all cells, shortfalls with reasons, findings, solutions, changes of the
/// environment, duration and machine.
pub fn summary(study: &Study, style: Style) -> String {
    let groups = group_cells(study);
    [
        cells_table(&groups, style),
        undisturbed_table(&groups, style),
        shortfalls(study, style),
        imprecise_cells(study, style),
        failures(study, style),
        findings(study, style),
        solutions_text(&study.conclusions, style),
        changes(study, style),
        footer(study, style),
    ]
    .concat()
}

fn cells_table(groups: &[CellGroup], style: Style) -> String {
    use Align::{Left, Right};
    if groups.is_empty() {
        return String::new();
    }
    let heads = [("", Left), ("median", Right), ("", Right), ("spread", Right), ("n", Right), ("outcome", Left)];
    let mut table = Table::new(&heads);
    for group in groups {
        table.heading(&heading(group));
        for cell in &group.cells {
            table.row(cell_row(group, cell));
            cell.primary_metrics().skip(1).for_each(|metric| table.row(metric_row(cell, metric)));
        }
    }
    table.draw(style)
}

fn heading(group: &CellGroup) -> String {
    let parts = [group.title.clone(), group.shared_text(), group.metric_description()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn cell_row(group: &CellGroup, cell: &CellResult) -> Vec<TableCell> {
    let tone = match cell.outcome {
        CellOutcome::Measured => Tone::Good,
        CellOutcome::NotConverged { .. } | CellOutcome::Partial { .. } => Tone::Doubtful,
        CellOutcome::Failed { .. } => Tone::Bad,
        CellOutcome::Unsupported { .. } => Tone::Quiet,
    };
    let nonzero = |count: usize, word: &str| if count == 0 { String::new() } else { format!(", {count} {word}") };
    let failures = phrasing::describe_failures(&cell.failures).map(|failures| format!(", {failures}"));
    let remarks = failures.unwrap_or_default()
        + &nonzero(phrasing::invalid_count(cell), "invalid")
        + &nonzero(phrasing::disturbed_count(cell), "disturbed")
        + &phrasing::describe_workers(cell);
    let mut row = figure_row(format!("  {}", group.label(cell)), phrasing::overview_values(cell));
    row.push(TableCell::with_tone(phrasing::outcome_label(&cell.outcome) + &remarks, tone));
    row
}

fn metric_row(cell: &CellResult, result: &MetricResult) -> Vec<TableCell> {
    let direction = phrasing::describe_direction(result.metric.direction);
    let mut row =
        figure_row(format!("    {}, {direction}", result.metric.name), phrasing::metric_values(cell, Some(result)));
    row.push(TableCell::default());
    row
}

/// Renders the estimates with and without the disturbed samples, since neither may be silently preferred.
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
    let mut is_empty = true;
    let cells = groups.iter().flat_map(|group| group.cells.iter().map(move |cell| (group, *cell)));
    for (group, cell, primary) in
        cells.flat_map(|(group, cell)| cell.primary_metrics().map(move |primary| (group, cell, primary)))
    {
        let (Some(all), Some(undisturbed)) = (&primary.summary, &primary.undisturbed) else { continue };
        is_empty = false;
        let figures = |summary: &wb_stats::Summary| {
            let median = primary.metric.unit.quantity(summary.median).to_string();
            [
                median.into(),
                phrasing::format_half_width(summary).unwrap_or_default().into(),
                summary.n.to_string().into(),
            ]
        };
        let metric = match cell.primary_metrics().count() {
            1 => String::new(),
            _ => format!(", {}", primary.metric.name),
        };
        let name = format!("  {} {}{metric}", group.title, group.label(cell));
        table.row(std::iter::once(name.into()).chain(figures(all)).chain(figures(undisturbed)).collect());
    }
    if is_empty { String::new() } else { style.heading("with and without the disturbed samples") + &table.draw(style) }
}

/// Renders the cells that were not measured as requested, which determines the exit status.
fn shortfalls(study: &Study, style: Style) -> String {
    let short =
        study.cells.iter().filter(|cell| cell.outcome.is_incomplete()).filter_map(|cell| {
            let reason = phrasing::describe_incompleteness(cell)?;
            Some(style.remark(
                &phrasing::cell_name(&cell.id),
                &format!("{}: {reason}", phrasing::outcome_label(&cell.outcome)),
            ))
        });
    section("not measured as requested", short.collect(), style)
}

/// Renders the cells whose intervals are missing or wider than requested, by reason; the table shows the widths.
fn imprecise_cells(study: &Study, style: Style) -> String {
    let mut reasons: Vec<(String, Vec<&CellResult>)> = Vec::new();
    for cell in &study.cells {
        let Some(reason) = phrasing::describe_imprecision(cell) else { continue };
        match reasons.iter_mut().find(|(existing, _)| *existing == reason) {
            Some((_, cells)) => cells.push(cell),
            None => reasons.push((reason, vec![cell])),
        }
    }
    let remarks = reasons.iter().map(|(reason, cells)| {
        let name = match cells.as_slice() {
            [cell] => phrasing::cell_name(&cell.id),
            several if several.len() == study.cells.len() => "every cell".to_owned(),
            several => pluralize(several.len(), "cell"),
        };
        style.remark(&name, reason)
    });
    section("less precise than requested", remarks.collect(), style)
}

/// Renders the cells with failed attempts, with the most frequent cause; those of failed cells are reported as such.
fn failures(study: &Study, style: Style) -> String {
    let with_values = study.cells.iter().filter(|cell| !matches!(cell.outcome, CellOutcome::Failed { .. }));
    let remarks = with_values.filter_map(|cell| {
        let text = phrasing::describe_failures_with_cause(&cell.failures)?;
        Some(style.remark(&phrasing::cell_name(&cell.id), &text))
    });
    section("failed attempts", remarks.collect(), style)
}

fn findings(study: &Study, style: Style) -> String {
    let remarks = group_findings(&study.cells).into_iter().map(|group| style.remark(&group.cells, &group.text));
    section("findings", remarks.collect(), style)
}

pub fn solutions_text(conclusions: &[Conclusion], style: Style) -> String {
    let remarks = conclusions.iter().map(|conclusion| {
        let figure = phrasing::format_conclusion(conclusion);
        let name = format!("{} {}  {figure}", conclusion.cells, conclusion.name);
        style.remark(&name, &conclusion.explanation)
    });
    section("solutions", remarks.collect(), style)
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
    let time = match &run.unmeasured {
        Some(reason) => format!("nothing is measured: {reason}"),
        None => {
            let cells = format!("{}: {}", pluralize(study.cells.len(), "cell"), phrasing::outcome_counts(study));
            let failures = phrasing::describe_failures(&phrasing::all_failures(study));
            let duration = (!phrasing::is_import(study)).then(|| phrasing::describe_duration(study));
            [Some(cells), failures, duration].into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
    };
    let machine: Vec<String> = run.properties.iter().map(|(name, text)| format!("{name} {text}")).collect();
    // With several machines, each has a line of its own.
    let is_single = run.properties.iter().any(|(name, _)| name == "host");
    let machines = if is_single { vec![machine.join(" · ")] } else { machine };
    let lines = [time]
        .into_iter()
        .chain(phrasing::describe_imports(study))
        .chain(machines)
        .chain(run.checksum_note())
        .filter(|line| !line.is_empty());
    let wrapped = lines.flat_map(|line| wrap(&sanitize(&line), style.width));
    let painted: String = wrapped.map(|line| style.paint(&line, Tone::Quiet) + "\n").collect();
    format!("\n{painted}")
}
