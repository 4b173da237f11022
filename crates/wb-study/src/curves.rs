//! Merges the curves of several samples: medians, with intervals if there are enough samples.

use wb_results::{CurveSet, SummaryCurve, SummaryPoint};
use wb_stats::{CONFIDENCE, Samples, median_interval};
use wb_test::SampleCurve;

use crate::evaluated_attempt::EvaluatedAttempt;

/// Merges the samples' curves into one per title, of the medians over the samples.
pub fn merge_curves(counted: &[&EvaluatedAttempt]) -> Vec<CurveSet> {
    let measured = counted.iter().filter_map(|evaluated| evaluated.measurement.as_ref());
    merge(&measured.flat_map(|measured| &measured.curves).collect::<Vec<_>>())
}

pub(crate) fn merge(all: &[&SampleCurve]) -> Vec<CurveSet> {
    let curves = || all.iter().copied();
    let mut merged: Vec<CurveSet> = Vec::new();
    for curve in curves() {
        if merged.iter().any(|existing| existing.title == curve.title) {
            continue;
        }
        let of_title = || curves().filter(|other| other.title == curve.title);
        let lines = curve.lines.iter().map(|(name, points)| SummaryCurve {
            name: name.clone(),
            points: points
                .iter()
                .map(|(x, y)| {
                    let values = of_title()
                        .flat_map(|other| other.lines.iter().filter(|(other, _)| other == name))
                        .flat_map(|(_, points)| points.iter().filter(|(other, _)| other == x).map(|(_, y)| *y));
                    merge_point(*x, *y, &values.collect::<Vec<f64>>())
                })
                .collect(),
        });
        merged.push(CurveSet {
            title: curve.title.clone(),
            x: curve.x.clone(),
            y: curve.y.clone(),
            lines: lines.collect(),
        });
    }
    merged
}

fn merge_point(x: f64, only: f64, values: &[f64]) -> SummaryPoint {
    match Samples::new(values) {
        Ok(samples) => {
            let interval = median_interval(&samples, CONFIDENCE);
            let spread = (samples.count() > 1).then(|| (samples.quantile(0.1), samples.quantile(0.9)));
            SummaryPoint {
                x,
                y: samples.median(),
                interval: interval.map(|interval| (interval.low, interval.high)),
                spread,
            }
        }
        Err(_) => SummaryPoint { x, y: only, interval: None, spread: None },
    }
}
