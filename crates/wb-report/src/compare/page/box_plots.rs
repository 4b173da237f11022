//! Box plots of the differences of primary means: by build, and for the last build by profile, test and metric.

use std::collections::BTreeMap;

use wb_compare::comparison::BuildHistory;
use wb_model::Unit;
use wb_results::comparison::CheckId;
use wb_stats::{Samples, Summary};

use super::check_table::CheckTable;

use crate::chart::{BoxPlot, BoxRow, ReferenceLine};
use crate::page::components::{IdGenerator, PageFigure};

/// Maximum number of boxes in a chart; those with the most checks are drawn.
const MAX_BOXES: usize = 40;

type BoxKeyFn = fn(&CheckId<'_>) -> String;

/// The charts that are not empty and differ from those before.
pub(super) fn box_plots(table: &CheckTable<'_>, names: &[String], ids: &mut IdGenerator) -> Vec<PageFigure> {
    let last = names.len().saturating_sub(1);
    let of_speed = !table.history.has_run_perf_score();
    let by_column = table.judged().map(|column| (names[column].clone(), table.improvements(column)));
    let by_column: Vec<(String, Vec<f64>)> = by_column.collect();
    if table.has_parts() {
        return box_plot("by part", by_column, of_speed, ids).into_iter().collect();
    }
    let history = table.history;
    let mut charts = vec![("by build".to_owned(), by_column)];
    let mut parts: Vec<(&str, BoxKeyFn)> = vec![
        ("profile", |id| id.profile.to_owned()),
        ("test", |id| id.test.to_owned()),
        ("metric", |id| format!("{}/{}/{}", id.test, id.class, id.metric)),
    ];
    if last == 1 {
        // With more builds each test of each profile has a chart of its own.
        parts.insert(2, ("profile and test", |id| format!("{}/{}", id.profile, id.test)));
    }
    for (name, key) in parts {
        let build = &history.builds.list()[last].name;
        charts.push((format!("by {name}, {build}"), scores_by(history, last, key)));
    }
    // Of one profile the boxes by profile and by build are the same, and so on.
    let mut drawn: Vec<Vec<Vec<f64>>> = Vec::new();
    charts.retain(|(_, boxes)| {
        let scores: Vec<Vec<f64>> = boxes.iter().map(|(_, scores)| scores.clone()).collect();
        let is_new = !drawn.contains(&scores);
        drawn.push(scores);
        is_new
    });
    charts.into_iter().filter_map(|(title, boxes)| box_plot(&title, boxes, of_speed, ids)).collect()
}

fn scores_by(history: &BuildHistory<'_>, build: usize, key: BoxKeyFn) -> Vec<(String, Vec<f64>)> {
    let mut boxes: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (check, score) in history.primary_improvements(build) {
        boxes.entry(key(&history.tolerances.id(check))).or_default().push(score);
    }
    boxes.into_iter().collect()
}

fn box_plot(by: &str, mut boxes: Vec<(String, Vec<f64>)>, of_speed: bool, ids: &mut IdGenerator) -> Option<PageFigure> {
    let total = boxes.len();
    if total > MAX_BOXES {
        boxes.sort_by_key(|(_, scores)| std::cmp::Reverse(scores.len()));
        boxes.truncate(MAX_BOXES);
    }
    let boxes = boxes.iter().filter_map(|(name, scores)| {
        let summary = Summary::of_unordered(&Samples::new(scores).ok()?);
        Some((name, scores, summary))
    });
    let boxes: Vec<_> = boxes.collect();
    if boxes.is_empty() {
        return None;
    }
    let (low, high) = axis_range(boxes.iter().map(|(.., summary)| summary));
    let rows = boxes.into_iter().map(|(name, scores, summary)| {
        let count = |is_beyond: &dyn Fn(f64) -> bool| scores.iter().filter(|score| is_beyond(**score)).count();
        let beyond = [count(&|score| score < low), count(&|score| score > high)];
        BoxRow { beyond, ..BoxRow::new(format!("{name} ({})", summary.n), summary) }
    });
    let rows: Vec<BoxRow> = rows.collect();
    let arrows = if rows.iter().any(|row| row.beyond != [0; 2]) {
        " Arrows: checks beyond the scale, with their number and the farthest of them."
    } else {
        ""
    };
    let cut =
        if total > MAX_BOXES { format!(" The {MAX_BOXES} of {total} with the most checks.") } else { String::new() };
    let lines = vec![ReferenceLine { label: "no difference".to_owned(), value: 0.0 }];
    let title = format!("differences {by}");
    let chart =
        BoxPlot { reference_lines: lines, span: Some((low, high)), ..BoxPlot::new(title, Unit::new("%"), rows) };
    let speed = if of_speed { ", as speed (times inverted: −66.7 % is three times as long)" } else { "" };
    let caption = format!(
        "Differences of primary means {by}{speed}: better to the right, worse to the left; range, quartiles and median, below \
         the median's 95 % interval, if there are enough.{arrows}{cut}"
    );
    Some(PageFigure::new(&chart, caption, ids))
}

/// The axis range: all boxes, and whiskers up to 1.5 times a box, so that a single outlier does not flatten the rest.
pub(super) fn axis_range<'a>(summaries: impl Iterator<Item = &'a Summary>) -> (f64, f64) {
    let bounds = |summary: &Summary| {
        let whisker = 1.5 * (summary.q3 - summary.q1);
        ((summary.q1 - whisker).max(summary.min), (summary.q3 + whisker).min(summary.max))
    };
    let (low, high) =
        summaries.map(bounds).fold((0.0, 0.0), |(low, high): (f64, f64), (l, h)| (low.min(l), high.max(h)));
    let pad = ((high - low) * 0.04).max(0.5);
    (low - pad, high + pad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_flatten_the_rest() {
        let scores = [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 5000.0];
        let summary = Summary::new(&Samples::new(&scores).unwrap());
        let (low, high) = axis_range(std::iter::once(&summary));
        assert!(low < -1.0 && high > 2.0 && high < 10.0, "{low} {high}");
    }

    #[test]
    fn checks_beyond_the_scale_are_counted_and_the_farthest_is_named() {
        let scores: Vec<f64> = [-66.7, -66.2].into_iter().chain((0..12).map(|index| f64::from(index) / 10.0)).collect();
        let scores = [&scores[..], &[202.0]].concat();
        let figure =
            box_plot("by build", vec![("new".to_owned(), scores)], false, &mut IdGenerator::default()).unwrap();
        let drawn = serde_json::to_string(&figure).unwrap();
        for text in ["← 2 beyond, −66.7 %", ">202 % →", "Arrows: checks beyond the scale", "0.500 %"] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
        assert!(!drawn.contains("-66.7"), "one sign for minus: {drawn}");
        let plain =
            box_plot("by build", vec![("new".to_owned(), vec![1.0, 2.0])], true, &mut IdGenerator::default()).unwrap();
        assert!(!serde_json::to_string(&plain).unwrap().contains("Arrows"));
    }
}
