//! What a cell's samples show beside their figures.

use std::collections::BTreeMap;

use wb_record::CellDefinition;
use wb_stats::{Samples, dip, trend};

use crate::sample::Studied;

/// Chance, below which a pattern in the samples is told.
const TELLING: f64 = 0.01;

/// What was noticed in the counted samples, each in a sentence with its figures.
pub fn findings(definition: &CellDefinition, counted: &[&Studied]) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(metric) = definition.metrics.iter().find(|metric| metric.primary) {
        let values: Vec<f64> = counted.iter().filter_map(|studied| studied.measured.as_ref()?.get(metric)).collect();
        if let Ok(samples) = Samples::new(&values) {
            if let Some(trend) = trend(&samples).filter(|trend| trend.p_value < TELLING) {
                let way = if trend.s > 0 { "rises" } else { "falls" };
                found.push(format!(
                    "{} {way} from sample to sample (Mann–Kendall p = {:.4})",
                    metric.name, trend.p_value
                ));
            }
            if let Some(dip) = dip(&samples).filter(|dip| dip.p_value < TELLING) {
                found.push(format!(
                    "{} has two levels (dip test p = {:.4}): the median is of neither",
                    metric.name, dip.p_value
                ));
            }
        }
    }
    let of_sample = |studied: &&'_ Studied| -> Vec<String> {
        let measured = studied.measured.iter().flat_map(|measured| measured.findings.clone());
        measured.chain(studied.attempt.ended.findings.clone()).collect()
    };
    // The same thing with other figures is one finding, told with the figures of the sample in the middle.
    let mut noticed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in counted.iter().flat_map(of_sample) {
        noticed.entry(without_figures(&finding)).or_default().push(finding);
    }
    let told = |mut same: Vec<String>| {
        same.sort_by(|a, b| first_figure(a).total_cmp(&first_figure(b)));
        let finding = &same[same.len() / 2];
        match same.len() {
            times if times == counted.len() => finding.clone(),
            times => format!("{finding} (in {times} of {} samples)", counted.len()),
        }
    };
    found.extend(noticed.into_values().map(told));
    found
}

/// What is the same in findings that differ in their figures.
fn without_figures(finding: &str) -> String {
    finding.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

fn first_figure(finding: &str) -> f64 {
    let digits: String =
        finding.chars().skip_while(|c| !c.is_ascii_digit()).take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().unwrap_or(0.0)
}
