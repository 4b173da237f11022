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
    let mut noticed: BTreeMap<&str, usize> = BTreeMap::new();
    let of_sample = |studied: &&'_ Studied| -> Vec<String> {
        let measured = studied.measured.iter().flat_map(|measured| measured.findings.clone());
        measured.chain(studied.attempt.ended.findings.clone()).collect()
    };
    let all: Vec<String> = counted.iter().flat_map(of_sample).collect();
    for finding in &all {
        *noticed.entry(finding).or_default() += 1;
    }
    let told = |(finding, times): (&str, usize)| match times {
        times if times == counted.len() => finding.to_owned(),
        times => format!("{finding} (in {times} of {} samples)", counted.len()),
    };
    found.extend(noticed.into_iter().map(told));
    found
}
