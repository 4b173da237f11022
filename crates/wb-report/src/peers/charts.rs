//! Charts of a matrix: a heat map and box plots of each scenario.

use wb_model::Unit;
use wb_stats::Samples;

use super::display::DisplayScenario;
use super::results::in_order_of_occurrence;
use super::{BoxStatistics, MatrixCell, MatrixResults, Scenario};
use crate::chart::{self, BoxPlot, BoxRow, Chart, HeatCell, HeatHue, HeatMap, HeatPanel, PngError, ReferenceLine};
use crate::chart::{SampleDot, SampleMark};

const WIDTH: f64 = 860.0;

pub struct MatrixPlot {
    /// File name without extension: `boxplot-upload`, `heatmap-latency`.
    pub name: String,
    pub(super) scenario: Scenario,
    pub(super) chart: Box<dyn Chart>,
    pub(super) caption: &'static str,
}

impl MatrixPlot {
    pub fn svg(&self) -> String {
        chart::svg(self.chart.as_ref(), WIDTH)
    }

    /// Renders the chart as PNG. Fails if it is too large.
    pub fn png(&self) -> Result<Vec<u8>, PngError> {
        chart::png(&self.svg())
    }
}

/// Draws a heat map and box plots of each scenario; those without figures are left out.
pub fn plots(results: &MatrixResults) -> Vec<MatrixPlot> {
    let of_scenario = |scenario: &Scenario| {
        let heat = heat_map(results, scenario).map(|chart| MatrixPlot {
            name: format!("heatmap-{}", scenario.name()),
            scenario: scenario.clone(),
            chart: Box::new(chart),
            caption: "Medians of each pair.",
        });
        let boxes = box_plot(results, scenario).map(|chart| MatrixPlot {
            name: format!("boxplot-{}", scenario.name()),
            scenario: scenario.clone(),
            chart: Box::new(chart),
            caption: "All iterations of valid samples.",
        });
        [heat, boxes].into_iter().flatten().collect::<Vec<_>>()
    };
    results.scenarios().iter().flat_map(of_scenario).collect()
}

fn title(scenario: &Scenario) -> String {
    match scenario {
        Scenario::Latency => "Round trip".to_owned(),
        one if one.is_rate() => format!("{} throughput", one.title()),
        one => one.title(),
    }
}

fn heat_map(results: &MatrixResults, scenario: &Scenario) -> Option<HeatMap> {
    if results.tests.iter().all(|cell| cell.median(scenario).is_none()) {
        return None;
    }
    let rows = in_order_of_occurrence(results.tests.iter().map(|cell| cell.dialer.clone()));
    let columns = in_order_of_occurrence(results.tests.iter().map(|cell| cell.listener.clone()));
    let panel = |combination: String| {
        let cell_of = |dialer: &String, listener: &String| {
            let is_pair = |cell: &&MatrixCell| {
                cell.dialer == *dialer && cell.listener == *listener && cell.combination() == combination
            };
            results.tests.iter().find(is_pair).map_or(HeatCell::Absent, |cell| heat_cell(cell, scenario))
        };
        let cells = rows.iter().map(|dialer| columns.iter().map(|listener| cell_of(dialer, listener)).collect());
        HeatPanel { cells: cells.collect(), title: combination.clone() }
    };
    let panels = results.combinations().into_iter().map(panel).collect();
    Some(HeatMap {
        title: title(scenario),
        unit: scenario.display_unit(),
        row_axis: "dialer".to_owned(),
        column_axis: "listener".to_owned(),
        panels,
        hue: if scenario.is_rate() { HeatHue::Rate } else { HeatHue::Time },
        rows,
        columns,
    })
}

fn heat_cell(cell: &MatrixCell, scenario: &Scenario) -> HeatCell {
    match cell.median(scenario) {
        Some(median) => HeatCell::Value {
            value: scenario.displayed(median),
            tooltip: format!("{}: {}", cell.name, scenario.format(median)),
        },
        None => {
            let obstacle = cell.obstacle(scenario).unwrap_or_default();
            let word = match cell.status.word() {
                "pass" => "none",
                word => word,
            };
            HeatCell::Missing { word, tooltip: format!("{}: {obstacle}", cell.name) }
        }
    }
}

fn box_plot(results: &MatrixResults, scenario: &Scenario) -> Option<BoxPlot> {
    let unit = scenario.display_unit();
    let mut rows = Vec::new();
    for combination in results.combinations() {
        let cells = results.tests.iter().filter(|cell| cell.combination() == combination);
        let boxes = cells.filter_map(|cell| box_row(cell, scenario, &unit));
        let from = rows.len();
        rows.extend(boxes);
        if let Some(first) = rows.get_mut(from) {
            first.heading = Some(if combination.is_empty() { "all".to_owned() } else { combination });
        }
    }
    if rows.is_empty() {
        return None;
    }
    let line = |cell: &MatrixCell| {
        Some(ReferenceLine { label: cell.name.clone(), value: scenario.displayed(cell.median(scenario)?) })
    };
    let is_shown = |baseline: &&MatrixCell| results.tests.iter().any(|cell| results.is_shown_beside(baseline, cell));
    let reference_lines = results.baselines.iter().filter(is_shown).filter_map(line).collect();
    let note =
        Some("boxes and dots: iterations, whiskers 1.5 IQR; line and bar: median of the samples and its 95 % interval; dashed: baselines".to_owned());
    Some(BoxPlot { reference_lines, note, ..BoxPlot::new(title(scenario), unit, rows) })
}

fn box_row(cell: &MatrixCell, scenario: &Scenario, unit: &Unit) -> Option<BoxRow> {
    let displayed = |figures: Samples| {
        let displayed: Vec<f64> = figures.in_order().iter().map(|figure| scenario.displayed(*figure)).collect();
        Samples::new(&displayed).ok()
    };
    let samples = displayed(cell.samples(scenario)?)?;
    let statistics = BoxStatistics::new(&displayed(cell.iterations(scenario)?)?);
    let dot = |value: &f64| SampleDot {
        at: 0.0,
        value: Some(*value),
        mark: SampleMark::Counted,
        tooltip: format!("outlier: {}", unit.quantity(*value)),
    };
    let dots = statistics.outliers.iter().map(dot).collect();
    let are_medians = cell.scenarios.get(scenario).is_some_and(|measured| measured.are_medians);
    let label = format!("{} → {}{}", cell.dialer, cell.listener, if are_medians { " (medians)" } else { "" });
    Some(BoxRow { dots, ..BoxRow::new(label, statistics.drawn(&samples)) })
}
