//! Box plots of a comparison's samples as files: one per metric of a test, with a box for each case in each build.
//!
//! Start with [`plots`].

mod file_names;
mod samples;

use indexmap::IndexMap;
use wb_compare::{Build, Builds, MetricIndex};
use wb_model::{Class, Unit};
use wb_results::comparison::Statistic;

use super::figures::case_name;
use crate::chart::{self, BoxPlot, BoxRow, PngError, ReferenceLine};
use file_names::FileNames;
use samples::{dots, samples, summary};

/// A chart with a unique file name.
#[derive(Debug)]
pub struct Plot {
    /// File name without extension, of letters, digits, `.`, `_` and `-`, unique among the plots.
    pub name: String,
    chart: BoxPlot,
}

const WIDTH: f64 = 860.0;

impl Plot {
    pub fn svg(&self) -> String {
        chart::svg(&self.chart, WIDTH)
    }

    /// Renders the chart as PNG, with two pixels per point. Fails if it is too large.
    pub fn png(&self) -> Result<Vec<u8>, PngError> {
        chart::png(&self.svg())
    }
}

type PlotKey<'a> = (&'a str, &'a str, &'a str, Class, &'a str);

/// Draws plots of all metrics of all tests. A line across each box shows the median of the first build. Checks of means
/// that `is_baseline` accepts are not drawn as boxes: their medians are lines across all plots of comparable metrics,
/// those of the same class and unit, or without a known unit of the same name.
pub fn plots(builds: &Builds, is_baseline: impl Fn(&str) -> bool) -> Vec<Plot> {
    let mut rows: IndexMap<PlotKey<'_>, Vec<MetricIndex>> = IndexMap::new();
    let mut baselines = Vec::new();
    for row in builds.rows() {
        let id = builds.id(row, Statistic::Mean);
        if is_baseline(&id.to_string()) {
            baselines.push(row);
        } else {
            rows.entry((id.profile, id.test, id.serial, id.class, id.metric)).or_default().push(row);
        }
    }
    let mut names = FileNames::default();
    let first = builds.list().first();
    let about =
        "range, quartiles, median, below it its 95 % interval if there are enough samples; dashed: the median of";
    let note = first.map(|build| format!("{about} {}", build.name));
    let plot = |(key, rows): (PlotKey<'_>, Vec<MetricIndex>)| {
        let boxes: Vec<BoxRow> = rows.iter().flat_map(|row| case_boxes(builds, *row)).collect();
        let first = *rows.first().filter(|_| !boxes.is_empty())?;
        let (profile, test, serial, class, metric) = key;
        let title = format!("{profile}/{test}/{serial} {class}/{metric}");
        let unit = builds.unit(first).unwrap_or_else(|| Unit::new(""));
        let lines = baselines.iter().filter(|line| is_comparable(builds, **line, first));
        let lines = lines.filter_map(|line| reference_line(builds, *line)).collect();
        let name = names.unique_name(&[profile, test, serial, &class.to_string(), metric]);
        Some(Plot {
            name,
            chart: BoxPlot { reference_lines: lines, note: note.clone(), ..BoxPlot::new(title, unit, boxes) },
        })
    };
    rows.into_iter().filter_map(plot).collect()
}

fn case_boxes(builds: &Builds, row: MetricIndex) -> Vec<BoxRow> {
    let samples_of = |build: &Build| Some((build.name.clone(), samples(build, row)?, build.runs.len()));
    let boxes: Vec<_> = builds.list().iter().filter_map(samples_of).collect();
    let first = builds.list().first().and_then(|first| summary(first, row)).map(|summary| summary.median);
    let case = case_name(&builds.id(row, Statistic::Mean));
    let unit = builds.unit(row).unwrap_or_else(|| Unit::new(""));
    let box_row = |(index, (label, samples, runs)): (usize, (String, Vec<f64>, usize))| {
        let mut summary = wb_stats::Summary::new(&wb_stats::Samples::new(&samples).ok()?);
        // Samples of several runs are not independent, so their interval would be too narrow.
        summary.median_interval = summary.median_interval.filter(|_| runs == 1);
        let heading = (index == 0).then(|| if case.is_empty() { "all".to_owned() } else { case.clone() });
        Some(BoxRow { heading, dots: dots(&samples, &unit), reference: first, ..BoxRow::new(label, summary) })
    };
    boxes.into_iter().enumerate().filter_map(box_row).collect()
}

/// Whether a baseline can be shown as a line in a metric's plot.
fn is_comparable(builds: &Builds, line: MetricIndex, row: MetricIndex) -> bool {
    let [line_id, id] = [line, row].map(|row| builds.id(row, Statistic::Mean));
    let units = (builds.unit(line), builds.unit(row));
    line_id.class == id.class && units.0 == units.1 && (units.0.is_some() || line_id.metric == id.metric)
}

/// The line of a baseline's median in the last build that has it.
fn reference_line(builds: &Builds, row: MetricIndex) -> Option<ReferenceLine> {
    let median = builds.list().iter().rev().find_map(|build| summary(build, row))?.median;
    let id = builds.id(row, Statistic::Mean);
    let label = format!("{}/{} {}", id.profile, id.test, case_name(&id));
    Some(ReferenceLine { label, value: median })
}
