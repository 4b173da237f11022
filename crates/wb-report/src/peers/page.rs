//! Renders `results.html`.

use serde::Serialize;

use super::charts::{MatrixPlot, plots};
use super::display::DisplayScenario;
use super::yaml::Totals;
use super::{MatrixCell, MatrixResults, Scenario, tables};
use crate::page::PageError;
use crate::page::components::{FigureTable, IdGenerator, NamedText, PageFigure, named_text};
use crate::page::document::Document;

#[derive(Serialize)]
struct MatrixView {
    title: String,
    conclusion: String,
    facts: Vec<NamedText>,
    sections: Vec<ChartSection>,
    tables: Vec<TableSection>,
    obstacles: Vec<NamedText>,
    baselines: Vec<NamedText>,
}

#[derive(Serialize)]
struct ChartSection {
    id: String,
    title: String,
    charts: Vec<PageFigure>,
}

#[derive(Serialize)]
struct TableSection {
    id: &'static str,
    title: &'static str,
    table: FigureTable,
}

/// Renders the page of a matrix: totals, heat maps, box plots, tables, and what was not measured.
pub fn page(results: &MatrixResults) -> Result<String, PageError> {
    let mut ids = IdGenerator::default();
    let all = plots(results);
    let scenarios = results.scenarios();
    let section = |scenario: &Scenario| {
        let is_of = |plot: &&MatrixPlot| plot.scenario == *scenario;
        let charts = all.iter().filter(is_of);
        let charts: Vec<PageFigure> =
            charts.map(|plot| PageFigure::new(plot.chart.as_ref(), plot.caption.to_owned(), &mut ids)).collect();
        (!charts.is_empty()).then_some(ChartSection { id: scenario.name().to_owned(), title: scenario.title(), charts })
    };
    let sections = scenarios.iter().filter_map(section).collect();
    let tables = [
        ("overhead", "Overhead", tables::overhead(results)),
        ("asymmetry", "Asymmetry", tables::asymmetry(results)),
        ("connecting", "Connecting", tables::connecting(results)),
        ("work", "Work", tables::work(results)),
    ];
    let tables = tables.into_iter().filter_map(|(id, title, table)| Some(TableSection { id, title, table: table? }));
    let metadata = &results.metadata;
    let facts = [
        ("started", metadata.started_at.clone()),
        ("completed", metadata.completed_at.clone()),
        ("duration", format!("{} s", metadata.duration_seconds)),
        ("platform", format!("{} ({})", metadata.platform, metadata.os)),
    ];
    let template = include_str!("../../templates/peers.html");
    let view = MatrixView {
        title: match metadata.test_pass.as_str() {
            "" => "Performance of implementations".to_owned(),
            name => format!("Performance of implementations: {name}"),
        },
        conclusion: conclusion(results),
        facts: facts.into_iter().map(|(name, text)| named_text(name, text)).collect(),
        sections,
        tables: tables.collect(),
        obstacles: results
            .baselines
            .iter()
            .chain(&results.tests)
            .flat_map(|cell| obstacles(cell, &scenarios))
            .collect(),
        baselines: results.baselines.iter().filter_map(baseline).collect(),
    };
    Document { template, styles: &[], scripts: &[] }.render(view)
}

fn conclusion(results: &MatrixResults) -> String {
    let totals = Totals::new(results);
    let (all, passed) = totals.all();
    format!(
        "{passed} of {all} cells passed ({} of {} baselines, {} of {} tests)",
        totals.baselines.1, totals.baselines.0, totals.tests.1, totals.tests.0
    )
}

fn baseline(cell: &MatrixCell) -> Option<NamedText> {
    let median = |scenario: &Scenario| {
        let median = cell.median(scenario)?;
        Some(format!("{} {}", scenario.name(), scenario.format(median)))
    };
    let figures: Vec<String> = cell.scenarios.keys().filter_map(median).collect();
    (!figures.is_empty()).then(|| named_text(cell.name.clone(), figures.join(", ")))
}

/// The scenarios of a cell without figures, and why.
fn obstacles(cell: &MatrixCell, scenarios: &[Scenario]) -> Vec<NamedText> {
    if let Some(cause) = cell.status.cause() {
        return vec![named_text(cell.name.clone(), format!("{}: {cause}", cell.status.word()))];
    }
    let obstacle = |scenario: &Scenario| {
        let obstacle = cell.obstacle(scenario)?;
        Some(named_text(cell.name.clone(), format!("no {}: {obstacle}", scenario.name())))
    };
    scenarios.iter().filter_map(obstacle).collect()
}
