//! One line per cell, and what is to be known beside it.

use wb_model::{CellOutcome, counted};
use wb_study::result::{CellResult, Conclusion, Study};

use super::Style;
use super::table::{Align, Cell, Table, Tone};
use super::wrap::{clean, wrap};
use crate::groups::{Group, groups};
use crate::words;

/// The study at a glance: a table of all cells, what falls short and why, findings, answers, what the environment
/// did, and where and how long it ran.
pub fn summary(study: &Study, style: Style) -> String {
    let groups = groups(study);
    [
        cells(&groups, style),
        undisturbed(&groups, style),
        shortfalls(study, style),
        imprecise(study, style),
        findings(study, style),
        answers(&study.answers, style),
        changes(study, style),
        footer(study, style),
    ]
    .concat()
}

fn cells(groups: &[Group], style: Style) -> String {
    use Align::{Left, Right};
    let heads = [("", Left), ("median", Right), ("", Right), ("spread", Right), ("n", Right), ("outcome", Left)];
    let mut table = Table::new(&heads);
    for group in groups {
        table.heading(&heading(group));
        for cell in &group.cells {
            table.row(line(group, cell));
        }
    }
    table.draw(style)
}

fn heading(group: &Group) -> String {
    let parts = [group.title.clone(), group.shared_text(), group.measure()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn line(group: &Group, cell: &CellResult) -> Vec<Cell> {
    let tone = match cell.outcome {
        CellOutcome::Measured => Tone::Good,
        CellOutcome::NotConverged { .. } | CellOutcome::Partial { .. } => Tone::Doubtful,
        CellOutcome::Failed { .. } => Tone::Bad,
        CellOutcome::Unsupported { .. } => Tone::Quiet,
    };
    let primary = cell.primary();
    let summary = primary.and_then(|primary| primary.summary.as_ref());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| words::NONE.to_owned());
    let median = primary.zip(summary).map(|(primary, summary)| primary.metric.unit.figure(summary.median).to_string());
    let some = |count: usize, what: &str| if count == 0 { String::new() } else { format!(", {count} {what}") };
    let remarks =
        some(words::invalid(cell), "invalid") + &some(words::disturbed(cell), "disturbed") + &words::place(cell);
    vec![
        format!("  {}", group.label(cell)).into(),
        or_none(median).into(),
        summary.and_then(words::plus_minus).unwrap_or_default().into(),
        or_none(summary.and_then(words::spread)).into(),
        summary.map_or(0, |summary| summary.n).to_string().into(),
        Cell::toned(words::outcome(&cell.outcome) + &remarks, tone),
    ]
}

/// The estimates with and without the disturbed samples, since neither may be silently preferred.
fn undisturbed(groups: &[Group], style: Style) -> String {
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
            let median = primary.metric.unit.figure(summary.median).to_string();
            [median.into(), words::plus_minus(summary).unwrap_or_default().into(), summary.n.to_string().into()]
        };
        let name = format!("  {} {}", group.title, group.label(cell));
        table.row(std::iter::once(name.into()).chain(figures(all)).chain(figures(quiet)).collect());
    }
    if any { style.section("with and without the disturbed samples") + &table.draw(style) } else { String::new() }
}

/// What could not be measured as asked, which decides the exit status.
fn shortfalls(study: &Study, style: Style) -> String {
    let short = study.cells.iter().filter(|cell| cell.outcome.falls_short()).filter_map(|cell| {
        let why = words::shortfall(cell)?;
        Some(style.remark(&words::cell_name(&cell.cell), &format!("{}: {why}", words::outcome(&cell.outcome))))
    });
    section("not measured as asked", short.collect(), style)
}

/// What has wider intervals than asked, or none. The table shows how wide; cells with one reason are told together.
fn imprecise(study: &Study, style: Style) -> String {
    let mut reasons: Vec<(String, Vec<&CellResult>)> = Vec::new();
    for cell in &study.cells {
        let Some(reason) = words::imprecision(cell) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cells)) => cells.push(cell),
            None => reasons.push((reason, vec![cell])),
        }
    }
    let told = reasons.iter().map(|(reason, cells)| {
        let which = match cells.as_slice() {
            [one] => words::cell_name(&one.cell),
            several if several.len() == study.cells.len() => "every cell".to_owned(),
            several => counted(several.len(), "cell"),
        };
        style.remark(&which, reason)
    });
    section("less precise than asked", told.collect(), style)
}

fn findings(study: &Study, style: Style) -> String {
    let found = study
        .cells
        .iter()
        .flat_map(|cell| cell.findings.iter().map(move |finding| style.remark(&words::cell_name(&cell.cell), finding)));
    section("findings", found.collect(), style)
}

/// What follows from several cells together.
pub fn answers(answers: &[Conclusion], style: Style) -> String {
    let answers = answers.iter().map(|answer| {
        let name = format!("{} {}  {}", answer.test, answer.name, answer.unit.figure(answer.value));
        style.remark(&name, &answer.because)
    });
    section("answers", answers.collect(), style)
}

fn changes(study: &Study, style: Style) -> String {
    let changes = study.changes.iter().map(|change| {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "(absent)".to_owned());
        style.remark(&change.place(), &format!("{} → {}", side(&change.before), side(&change.after)))
    });
    section("the environment changed during the run", changes.collect(), style)
}

fn section(title: &str, body: String, style: Style) -> String {
    if body.is_empty() { body } else { style.section(title) + &body }
}

fn footer(study: &Study, style: Style) -> String {
    let run = &study.run;
    let share = words::workload_share(study).map(|share| format!(", {share}")).unwrap_or_default();
    let time = format!(
        "{}: {}; {}{share}",
        counted(study.cells.len(), "cell"),
        words::tally(study),
        words::duration(run.seconds)
    );
    let machine: Vec<String> = run.machine.iter().map(|(name, text)| format!("{name} {text}")).collect();
    // Of several machines each has a row, and a line of its own.
    let is_one = run.machine.iter().any(|(name, _)| name == "host");
    let machines = if is_one { vec![machine.join(" · ")] } else { machine };
    let lines = [time].into_iter().chain(machines).filter(|line| !line.is_empty());
    let wrapped = lines.flat_map(|line| wrap(&clean(&line), style.width));
    let painted: String = wrapped.map(|line| style.paint(&line, Tone::Quiet) + "\n").collect();
    format!("\n{painted}")
}
