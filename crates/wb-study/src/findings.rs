//! What a cell's samples show beside their figures.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{Class, Metric};
use wb_record::CellDefinition;
use wb_stats::{Samples, dip, trend};

use crate::range::Range;
use crate::sample::Studied;

/// Chance, below which a pattern in the samples is reported.
const TELLING: f64 = 0.01;

/// So many equal values are no coincidence of a clock.
const CONSTANT: usize = 3;

/// A sample that measures for this part of `min-time` or less is short. Noise of a rate goes with the square root of
/// the time, so it is twice as large there, or more.
const SHORT: f64 = 0.25;

/// What was noticed in the counted samples, each in a sentence with its figures. `range` is that of the primary metric
/// over all valid samples.
pub fn findings(definition: &CellDefinition, range: Option<&Range>, counted: &[&Studied]) -> Vec<String> {
    let mut found = Vec::new();
    let change = range.filter(|range| range.is_change() && !counted.is_empty());
    found.extend(change.map(|range| format!("{range}: the system or the work changed between samples")));
    if let Some(metric) = definition.metrics.iter().find(|metric| metric.primary) {
        let values: Vec<f64> = counted.iter().filter_map(|studied| studied.measured.as_ref()?.get(metric)).collect();
        found.extend(constant(metric, &values));
        found.extend(patterns(metric, &values));
    }
    found.extend(short(definition, counted));
    found.extend(changed_outputs(counted));
    found.extend(of_samples(counted));
    found
}

/// A rate or a time that is the same in every sample.
fn constant(metric: &Metric, values: &[f64]) -> Option<String> {
    let [first, ..] = values else { return None };
    let is_clocked = matches!(metric.class, Class::Throughput | Class::Latency);
    let is_constant = values.len() >= CONSTANT && values.iter().all(|value| value == first);
    (is_clocked && is_constant).then(|| {
        format!(
            "{} is exactly {first} {} in all {} samples: what a clock measures varies, so check where the figure is read",
            metric.name,
            metric.unit,
            values.len()
        )
    })
}

/// A trend over the samples, and more than one level of them.
fn patterns(metric: &Metric, values: &[f64]) -> Vec<String> {
    let Ok(samples) = Samples::new(values) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(trend) = trend(&samples).filter(|trend| trend.p_value < TELLING) {
        let way = if trend.s > 0 { "rises" } else { "falls" };
        found.push(format!("{} {way} from sample to sample (Mann–Kendall p = {:.4})", metric.name, trend.p_value));
    }
    if let Some(dip) = dip(&samples).filter(|dip| dip.p_value < TELLING) {
        found.push(format!(
            "{} has two levels (dip test p = {:.4}): the median is of neither",
            metric.name, dip.p_value
        ));
    }
    found
}

/// Samples that measure for a small part of `min-time`, where that applies.
fn short(definition: &CellDefinition, counted: &[&Studied]) -> Option<String> {
    let min_time = definition.min_time?;
    let seconds: Vec<f64> = counted.iter().map(|studied| studied.measured_seconds()).collect();
    let median = Samples::new(&seconds).ok()?.median();
    (median <= SHORT * min_time.seconds()).then(|| {
        format!(
            "a sample measures for {median:.3} s, and min-time is {min_time}: figures of short samples vary more; \
             give a sample more work, or leave its work to the calibration"
        )
    })
}

/// Outputs that have to be the same in every sample, and are not.
fn changed_outputs(counted: &[&Studied]) -> Vec<String> {
    let mut outputs: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
    for studied in counted {
        for (name, output) in studied.measured.iter().flat_map(|measured| &measured.outputs) {
            outputs.entry(name).or_default().push((studied.attempt.ended.sample, output));
        }
    }
    let changed = |(name, samples): (&str, Vec<(u32, &str)>)| {
        let (first, output) = *samples.first()?;
        let (other, another) = *samples.iter().find(|(_, another)| *another != output)?;
        let distinct: BTreeSet<&str> = samples.iter().map(|(_, output)| *output).collect();
        Some(format!(
            "the {name} is not the same in every sample, as its test says it is: {output} in sample {first}, {another} \
             in sample {other}; {} different ones in {} samples",
            distinct.len(),
            samples.len()
        ))
    };
    outputs.into_iter().filter_map(changed).collect()
}

/// What the samples themselves noticed. The same thing with other figures is one finding, with the figures of the
/// sample in the middle.
fn of_samples(counted: &[&Studied]) -> Vec<String> {
    let of_sample = |studied: &&'_ Studied| -> Vec<String> {
        let measured = studied.measured.iter().flat_map(|measured| measured.findings.clone());
        measured.chain(studied.attempt.ended.findings.clone()).collect()
    };
    let mut noticed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in counted.iter().flat_map(of_sample) {
        noticed.entry(without_figures(&finding)).or_default().push(finding);
    }
    let one_of = |mut same: Vec<String>| {
        same.sort_by(|a, b| first_figure(a).total_cmp(&first_figure(b)));
        let finding = &same[same.len() / 2];
        match same.len() {
            times if times == counted.len() => finding.clone(),
            times => format!("{finding} (in {times} of {} samples)", counted.len()),
        }
    };
    noticed.into_values().map(one_of).collect()
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

#[cfg(test)]
mod tests {
    use wb_model::Nanos;

    use super::*;
    use crate::testing::{definition, precision, samples};

    fn found(definition: &CellDefinition, studied: &[Studied]) -> Vec<String> {
        findings(definition, None, &studied.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_rate_that_is_the_same_in_every_sample_is_a_finding() {
        let rule = definition(precision());
        let same = found(&rule, &samples(&[97.5; 6]));
        assert!(same[0].starts_with("rate is exactly 97.5 ops/s in all 6 samples: "), "{same:?}");
        assert_eq!(found(&rule, &samples(&[97.5, 97.5, 97.500_001])), [""; 0]);
        assert_eq!(found(&rule, &samples(&[97.5; 2])), [""; 0], "two may be equal by chance");
        let mut counted = definition(precision());
        counted.metrics[0].class = Class::Check;
        let mut of_checks = samples(&[97.5; 6]);
        for studied in &mut of_checks {
            studied.measured.as_mut().unwrap().set(Class::Check, "rate", 97.5);
        }
        assert_eq!(found(&counted, &of_checks), [""; 0], "no clock has a part in it");
    }

    #[test]
    fn samples_much_shorter_than_min_time_are_a_finding() {
        let with = |min_time: Option<u64>, seconds: f64| {
            let mut studied = samples(&[97.0, 98.0, 99.0, 97.5, 98.5, 99.5]);
            for one in &mut studied {
                one.measured.as_mut().unwrap().seconds = Some(seconds);
            }
            found(&CellDefinition { min_time: min_time.map(Nanos), ..definition(precision()) }, &studied)
        };
        let short = with(Some(5_000_000_000), 0.204);
        assert!(short[0].starts_with("a sample measures for 0.204 s, and min-time is 5s: "), "{short:?}");
        assert_eq!(with(Some(5_000_000_000), 1.3), [""; 0]);
        assert_eq!(with(None, 0.2), [""; 0], "the test's own parameters say how long it takes");
    }

    #[test]
    fn output_that_changes_although_the_test_says_it_does_not_is_a_finding() {
        let with = |outputs: [&str; 3]| {
            let mut studied = samples(&[97.0, 98.0, 99.0]);
            for (one, output) in studied.iter_mut().zip(outputs) {
                let measured = one.measured.as_mut().unwrap();
                measured
                    .outputs
                    .extend((!output.is_empty()).then(|| ("standard output".to_owned(), output.to_owned())));
            }
            found(&definition(precision()), &studied)
        };
        assert_eq!(with(["`sum 1`"; 3]), [""; 0]);
        assert_eq!(
            with(["`sum 1`", "`sum 1`", "`sum 2`"]),
            [
                "the standard output is not the same in every sample, as its test says it is: `sum 1` in sample 0, `sum 2` in \
              sample 2; 2 different ones in 3 samples"
            ]
        );
        assert_eq!(with(["`sum 1`", "", ""]), [""; 0], "what was not recorded is not known");
    }
}
