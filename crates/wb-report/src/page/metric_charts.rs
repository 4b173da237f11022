//! Charts of the metrics of a group of cells: boxes by case, and samples in time order.

use std::collections::BTreeSet;

use wb_model::{MetricKey, Unit};
use wb_results::{CellResult, MetricResult};

use super::components::{IdGenerator, PageFigure};
use crate::chart::{BoxPlot, BoxRow, SampleDot, SampleMark, SampleTimeline, TimelineRow};
use crate::groups::CellGroup;

/// Number of samples of one cell that charts show of imported series, evenly spread.
const PLOTTED_SAMPLES: usize = 1000;

/// The charts of the metric of the overview, which may have another name in each cell.
pub(super) fn first(group: &CellGroup, ids: &mut IdGenerator) -> Vec<PageFigure> {
    let Some((unit, _)) = group.scale else { return Vec::new() };
    let name = group.metric().map_or("primary metric", |metric| metric.name.as_str());
    let first = MetricCharts::new(group, name, unit, CellResult::primary);
    let mut figures: Vec<PageFigure> = first.boxes(ids).into_iter().collect();
    figures.extend(first.timeline(format!("{}: samples in time order", group.title), ids));
    figures
}

pub(super) fn further_primary(group: &CellGroup, ids: &mut IdGenerator) -> Vec<PageFigure> {
    let mut figures = Vec::new();
    for charts in by_key(group, |cell| cell.primary_metrics().skip(1)) {
        figures.extend(charts.boxes(ids));
        figures.extend(charts.timeline(charts.title(), ids));
    }
    figures
}

/// The charts of the other metrics. Metrics with the same value in all samples have none.
pub(super) fn others(group: &CellGroup, ids: &mut IdGenerator) -> Vec<PageFigure> {
    let varies = |result: &&MetricResult| result.summary.as_ref().is_some_and(|summary| summary.min < summary.max);
    let charts = by_key(group, |cell| cell.metrics.iter().filter(|result| !result.metric.primary).filter(varies));
    charts.iter().filter_map(|charts| charts.timeline(charts.title(), ids)).collect()
}

/// The charts of each of these metrics of the cells, in the order in which they first occur.
fn by_key<'a, I: Iterator<Item = &'a MetricResult>>(
    group: &CellGroup<'a>,
    results_of: impl Fn(&'a CellResult) -> I,
) -> Vec<MetricCharts> {
    let mut seen: BTreeSet<MetricKey> = BTreeSet::new();
    let results = group.cells.iter().flat_map(|cell| results_of(cell));
    let distinct: Vec<&MetricResult> = results.filter(|result| seen.insert(result.key())).collect();
    let charts = |result: &&MetricResult| {
        let (key, unit) = (result.key(), &result.metric.unit);
        MetricCharts::new(group, &key.full_name(), unit, |cell| {
            // Imported cells may have a metric of one name in other units.
            cell.metrics.iter().find(|other| other.key() == key && other.metric.unit == *unit)
        })
    };
    distinct.iter().map(charts).collect()
}

struct MetricCharts {
    group: String,
    name: String,
    unit: Unit,
    boxes: Vec<BoxRow>,
    rows: Vec<TimelineRow>,
    /// Largest step between the samples that are shown of long series; 1 shows all.
    step: usize,
}

impl MetricCharts {
    fn new<'a>(
        group: &CellGroup<'a>,
        name: &str,
        unit: &Unit,
        result_of: impl Fn(&'a CellResult) -> Option<&'a MetricResult>,
    ) -> Self {
        let mut boxes = Vec::new();
        let mut rows = Vec::new();
        let mut largest_step = 1;
        for cell in &group.cells {
            let Some(result) = result_of(cell) else { continue };
            let key = result.key();
            let step = cell.series_count().div_ceil(PLOTTED_SAMPLES).max(1);
            largest_step = largest_step.max(step);
            let mut dots: Vec<SampleDot> =
                cell.attempts.iter().map(|sample| SampleDot::new(sample, &key, unit)).collect();
            dots.extend(cell.series_samples(step).map(|sample| SampleDot::new(&sample, &key, unit)));
            let label = group.label(cell);
            if let Some(summary) = result.summary.clone() {
                let counts = |dot: &&SampleDot| matches!(dot.mark, SampleMark::Counted | SampleMark::Disturbed);
                let dots = dots.iter().filter(counts).cloned().collect();
                boxes.push(BoxRow { dots, ..BoxRow::new(label.clone(), summary) });
            }
            if !dots.is_empty() {
                rows.push(TimelineRow { label, summary: result.summary.clone(), dots });
            }
        }
        let (group, name, unit) = (group.title.clone(), name.to_owned(), unit.clone());
        Self { group, name, unit, boxes, rows, step: largest_step }
    }

    fn title(&self) -> String {
        format!("{}: {} of the samples in time order", self.group, self.name)
    }

    fn plotted_samples(&self) -> String {
        match self.step {
            1 => "every sample".to_owned(),
            step => format!("every sample, or of long series one of up to {step}"),
        }
    }

    fn boxes(&self, ids: &mut IdGenerator) -> Option<PageFigure> {
        let title = format!("{}: {} by case", self.group, self.name);
        let caption = format!(
            "{}: range, quartiles, median and {}; below each box the 95 % interval of the median.",
            self.name,
            self.plotted_samples()
        );
        let plot = BoxPlot::new(title, self.unit.clone(), self.boxes.clone());
        (!self.boxes.is_empty()).then(|| PageFigure::new(&plot, caption, ids))
    }

    fn timeline(&self, title: String, ids: &mut IdGenerator) -> Option<PageFigure> {
        if self.rows.is_empty() {
            return None;
        }
        let which = match self.step {
            1 => "samples".to_owned(),
            _ => format!("samples ({})", self.plotted_samples()),
        };
        let caption = format!(
            "{}: the {which} in time order, each row on its own scale, with their median and its interval. Outliers beyond \
             the scale are drawn at its edge, with an arrow.",
            self.name
        );
        let occurs = |mark: &SampleMark| self.rows.iter().flat_map(|row| &row.dots).any(|dot| dot.mark == *mark);
        let marks: Vec<SampleMark> = SampleMark::ALL.into_iter().filter(occurs).collect();
        let legend = marks.into_iter().map(|mark| (mark.legend_symbol(), mark.name()));
        let timeline = SampleTimeline { title, unit: self.unit.clone(), rows: self.rows.clone() };
        Some(PageFigure::new(&timeline, caption, ids).with_legend(legend))
    }
}
