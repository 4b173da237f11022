//! Findings: notable patterns in the samples of a cell.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::{AttemptPurpose, Class, Metric, WorkerName};
use wb_record::CellDefinition;
use wb_results::finding::{OTHER_RUN, first_figure, without_figures};
use wb_stats::{Dependence, DependenceCheck, Samples, dip, trend};

use crate::evaluated_attempt::EvaluatedAttempt;
use crate::primary_values::PrimaryValues;
use crate::value_range::ValueRange;

/// The p-value below which a trend, or more than one mode, is reported.
const SIGNIFICANCE: f64 = 0.01;

/// The number of equal values from which on they are not a coincidence.
const MIN_CONSTANT_SAMPLES: usize = 3;

/// The fraction of `min-time` at or below which a sample is short. The noise of a rate is inversely proportional to the
/// square root of the time, so it is at least doubled.
const SHORT_SAMPLE_FRACTION: f64 = 0.25;

/// The findings of a cell, each a sentence with its figures. `counted` are the samples that count.
pub(crate) fn findings(
    definition: &CellDefinition,
    evaluated: &[EvaluatedAttempt],
    primary: &[PrimaryValues<'_>],
    counted: &[&EvaluatedAttempt],
) -> Vec<String> {
    let mut findings = invalid_samples(evaluated);
    findings.extend(primary.iter().flat_map(PrimaryValues::findings));
    findings.extend(other_contradictions(definition, |metric| ValueRange::new(metric, evaluated)));
    findings.extend(short_samples(definition, counted));
    findings.extend(changed_outputs(counted));
    findings.extend(sample_findings(counted));
    findings
}

pub(crate) fn changed_values(range: &ValueRange) -> Option<String> {
    range.is_change().then(|| format!("{range}: the system or the work changed between samples"))
}

pub(crate) fn distribution(metric: &Metric, values: &[f64], dependence: Option<&Dependence>) -> Vec<String> {
    let dependent = dependence.and_then(|dependence| dependent_samples(metric, dependence));
    constant_value(metric, values).into_iter().chain(patterns(metric, values)).chain(dependent).collect()
}

/// With four digits, which are never only zeros.
fn format_p(p_value: f64) -> String {
    if p_value < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p_value:.4}") }
}

fn dependent_samples(metric: &Metric, dependence: &Dependence) -> Option<String> {
    let Dependence { correlation, p_value, widening, .. } = *dependence;
    (dependence.check() == DependenceCheck::Found).then(|| {
        format!(
            "dependent samples: each {} resembles the one before (rank correlation r = {correlation:.2}, {}); \
             the interval of the median is {widening:.2} times as wide as of independent samples",
            metric.name,
            format_p(p_value)
        )
    })
}

/// Invalid samples of a cell with valid ones; without valid ones, the reason is in the cell's outcome.
fn invalid_samples(evaluated: &[EvaluatedAttempt]) -> Vec<String> {
    if evaluated.iter().all(|evaluated| evaluated.valid_sample().is_none()) {
        return Vec::new();
    }
    let is_invalid = |evaluated: &&EvaluatedAttempt| {
        evaluated.attempt.ended.purpose == AttemptPurpose::Sample
            && evaluated.measurement.is_some()
            && evaluated.valid().is_none()
    };
    let invalid = evaluated.iter().filter(is_invalid);
    invalid_sample_groups(invalid.map(|evaluated| (evaluated.attempt.ended.sample, evaluated.reason())))
}

/// `invalid` has numbers and reasons; reasons that differ only in their figures are merged.
pub(crate) fn invalid_sample_groups(invalid: impl Iterator<Item = (u32, String)>) -> Vec<String> {
    struct Group {
        sample: u32,
        reason: String,
        count: usize,
    }
    let mut reasons: BTreeMap<String, Group> = BTreeMap::new();
    for (sample, reason) in invalid {
        let group = reasons.entry(without_figures(&reason));
        group.or_insert_with(|| Group { sample, reason, count: 0 }).count += 1;
    }
    let mut groups: Vec<Group> = reasons.into_values().collect();
    groups.sort_by_key(|group| group.sample);
    let others = |count: usize| match count {
        1 => "is 1 other sample".to_owned(),
        count => format!("are {count} other samples"),
    };
    let finding = |Group { sample, reason, count }: Group| {
        let first = format!("sample {sample} is {reason}");
        match count {
            1 => format!("{first}: it is excluded"),
            samples => format!("{first}: it is excluded, and so {} for the same reason", others(samples - 1)),
        }
    };
    groups.into_iter().map(finding).collect()
}

/// Throughputs and latencies other than the primary metrics with values that are orders of magnitude apart.
pub(crate) fn other_contradictions(
    definition: &CellDefinition,
    range_of: impl Fn(&Metric) -> Option<ValueRange>,
) -> Vec<String> {
    let is_timed = |metric: &&Metric| !metric.primary && matches!(metric.class, Class::Throughput | Class::Latency);
    let ranges = definition.metrics.iter().filter(is_timed).filter_map(range_of);
    let finding = |range: ValueRange| {
        format!(
            "{range}: one of the values may be in a different unit; the cell does not fail, since the metric is not a primary one"
        )
    };
    ranges.filter(ValueRange::is_contradiction).map(finding).collect()
}

fn constant_value(metric: &Metric, values: &[f64]) -> Option<String> {
    let [first, ..] = values else { return None };
    let is_timed = matches!(metric.class, Class::Throughput | Class::Latency);
    let is_constant = values.len() >= MIN_CONSTANT_SAMPLES && values.iter().all(|value| value == first);
    (is_timed && is_constant).then(|| {
        format!(
            "{} is exactly {first} {} in all {} samples: measured times vary, so check how the figure is extracted",
            metric.name,
            metric.unit,
            values.len()
        )
    })
}

fn patterns(metric: &Metric, values: &[f64]) -> Vec<String> {
    let Ok(samples) = Samples::new(values) else { return Vec::new() };
    let mut findings = Vec::new();
    if let Some(trend) = trend(&samples).filter(|trend| trend.p_value < SIGNIFICANCE) {
        let direction = if trend.s > 0 { "rises" } else { "falls" };
        findings.push(format!(
            "{} {direction} from sample to sample (Mann–Kendall {})",
            metric.name,
            format_p(trend.p_value)
        ));
    }
    if let Some(dip) = dip(&samples).filter(|dip| dip.p_value < SIGNIFICANCE) {
        findings.push(format!(
            "{} has more than one mode (dip test {}): the median may represent none of them",
            metric.name,
            format_p(dip.p_value)
        ));
    }
    findings
}

fn short_samples(definition: &CellDefinition, counted: &[&EvaluatedAttempt]) -> Option<String> {
    let min_time = definition.min_time?;
    let seconds: Vec<f64> = counted.iter().map(|evaluated| evaluated.measured_seconds()).collect();
    let median = Samples::new(&seconds).ok()?.median();
    (median <= SHORT_SAMPLE_FRACTION * min_time.seconds()).then(|| {
        format!(
            "the measured part of a sample takes {median:.3} s, less than min-time ({min_time}): short samples vary more; \
                increase the work of a sample, or let calibration choose it"
        )
    })
}

/// Outputs that differ between samples although they have to be the same.
fn changed_outputs(counted: &[&EvaluatedAttempt]) -> Vec<String> {
    let mut outputs: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
    for evaluated in counted {
        for (name, output) in evaluated.measurement.iter().flat_map(|measured| &measured.outputs) {
            outputs.entry(name).or_default().push((evaluated.attempt.ended.sample, output));
        }
    }
    let changed = |(name, samples): (&str, Vec<(u32, &str)>)| {
        let (first, output) = *samples.first()?;
        let (other, another) = *samples.iter().find(|(_, another)| *another != output)?;
        let distinct: BTreeSet<&str> = samples.iter().map(|(_, output)| *output).collect();
        Some(format!(
            "the {name} is not the same in every sample, although the test declares that it is: {output} in sample {first}, \
                {another} in sample {other}; {} different outputs in {} samples",
            distinct.len(),
            samples.len()
        ))
    };
    outputs.into_iter().filter_map(changed).collect()
}

pub fn describe_machine_change(worker: &WorkerName, differences: &[String]) -> String {
    format!("`{worker}` changed during the run, after the plan was made for it: {}", differences.join("; "))
}

fn sample_findings(counted: &[&EvaluatedAttempt]) -> Vec<String> {
    let of_sample = |evaluated: &EvaluatedAttempt| -> Vec<String> {
        let measured = evaluated.measurement.iter().flat_map(|measured| measured.findings.clone());
        measured.chain(evaluated.attempt.ended.findings.clone()).collect()
    };
    let of_all = counted.iter().enumerate();
    let of_all =
        of_all.flat_map(|(index, evaluated)| of_sample(evaluated).into_iter().map(move |text| (text, vec![index])));
    merge_findings(of_all, counted.len())
}

/// `findings` has positions among `counted` samples. Those that differ only in figures are merged, with median figures.
pub(crate) fn merge_findings(findings: impl Iterator<Item = (String, Vec<usize>)>, counted: usize) -> Vec<String> {
    let mut similar: BTreeMap<String, SimilarFindings> = BTreeMap::new();
    for (finding, positions) in findings {
        let same = similar.entry(subject(&finding)).or_default();
        same.findings.push((finding, positions.len()));
        same.samples.extend(positions);
    }
    let merged = |SimilarFindings { samples, mut findings }: SimilarFindings| {
        findings.sort_by(|(a, _), (b, _)| first_figure(a).total_cmp(&first_figure(b)));
        let middle = findings.iter().map(|(_, samples)| samples).sum::<usize>() / 2;
        let mut before = 0;
        let median = findings.iter().find(|(_, samples)| {
            before += samples;
            before > middle
        });
        let finding = median.map(|(finding, _)| finding.as_str()).unwrap_or_default();
        match samples.len() {
            all if all == counted => finding.to_owned(),
            some => format!("{finding} (in {some} of {counted} samples)"),
        }
    };
    similar.into_values().map(merged).collect()
}

#[derive(Default)]
struct SimilarFindings {
    samples: BTreeSet<usize>,
    /// Each with the number of samples that have it.
    findings: Vec<(String, usize)>,
}

/// A finding's text without figures. In a finding about another run the numbers identify that run.
fn subject(finding: &str) -> String {
    if finding.contains(OTHER_RUN) { finding.to_owned() } else { without_figures(finding) }
}

#[cfg(test)]
mod tests {
    use wb_model::Nanos;
    use wb_model::outcome::Gate;

    use super::*;

    use crate::testing::{definition, precision, samples};

    fn findings_of(definition: &CellDefinition, evaluated: &[EvaluatedAttempt]) -> Vec<String> {
        let metric = &definition.metrics[0];
        let values = evaluated.iter().filter_map(|attempt| attempt.measurement.as_ref()?.get(metric)).collect();
        let primary = [PrimaryValues::new(metric, None, values)];
        findings(definition, evaluated, &primary, &evaluated.iter().collect::<Vec<_>>())
    }

    // `p = 0.0000` claims what no test can show.
    #[test]
    fn a_small_p_value_is_not_zero() {
        assert_eq!(
            [0.2, 0.0001, 0.000_099, 0.0].map(format_p),
            ["p = 0.2000", "p = 0.0001", "p < 0.0001", "p < 0.0001"]
        );
    }

    #[test]
    fn dependent_samples_are_a_finding_with_the_correlation_and_the_widening() {
        let metric = &definition(precision()).metrics[0];
        let found = |values: &[f64]| {
            let dependence = wb_stats::dependence(&Samples::new(values).unwrap());
            let findings = distribution(metric, values, dependence.as_ref());
            findings.into_iter().filter(|finding| finding.starts_with("dependent")).collect::<Vec<_>>()
        };
        // A slow wave without a trend.
        let wave: Vec<f64> =
            (0..24).map(|index| 100.0 + (f64::from(index) / 24.0 * 4.0 * std::f64::consts::PI).sin()).collect();
        let finding = &found(&wave)[0];
        assert!(finding.contains("each rate resembles the one before (rank correlation r = 0.9"), "{finding}");
        assert!(finding.ends_with("times as wide as of independent samples"), "{finding}");
        let mixed: Vec<f64> = (0..24).map(|index| 100.0 + f64::from(index * 7 % 24)).collect();
        assert_eq!(found(&mixed), [""; 0]);
    }

    #[test]
    fn findings_that_differ_in_figures_samples_or_the_other_run_are_of_one_kind() {
        let kind = wb_results::finding::finding_kind;
        assert_eq!(kind("swapped 5 pages (in 2 of 4 samples)"), kind("swapped 7 pages"));
        assert_eq!(kind(&format!("{OTHER_RUN}anna@desk (in 1 of 4 samples)")), kind(&format!("{OTHER_RUN}ben@lab")));
        assert_ne!(kind("vm1: swapped 5 pages"), kind("vm2: swapped 5 pages"));
    }

    #[test]
    fn findings_are_counted_by_the_samples_that_have_them() {
        let mut evaluated = samples(&[97.0, 98.0, 99.0, 97.5]);
        let other = |run: u32| format!("{OTHER_RUN}anna@desk (process {run} there, its agent {run} here)");
        for attempt in &mut evaluated[..2] {
            attempt.attempt.ended.findings =
                vec![other(11), other(22), "swapped 3 pages".to_owned(), "swapped 5 pages".to_owned()];
        }
        evaluated[2].attempt.ended.findings = vec![other(22)];
        let in_samples = |finding: &str, samples: u32| format!("{finding} (in {samples} of 4 samples)");
        let expected = [in_samples(&other(11), 2), in_samples(&other(22), 3), in_samples("swapped 5 pages", 2)];
        assert_eq!(findings_of(&definition(precision()), &evaluated), expected);
    }

    // Of merged findings the median of their exit statuses was shown, as if it were a figure.
    #[test]
    fn numbers_that_are_names_are_not_merged() {
        let merged = |findings: &[&str]| {
            let all = findings.iter().enumerate().map(|(index, finding)| ((*finding).to_owned(), vec![index]));
            merge_findings(all, findings.len())
        };
        for kind in
            ["exit status `NAME` was ignored", "pNAME is 0", "disk sdaNAME was busy", "`read-NAME.json` is empty"]
        {
            let [one, other] = ["1", "22"].map(|name| kind.replace("NAME", name));
            let of_2 = |finding: &str| format!("{finding} (in 1 of 2 samples)");
            assert_eq!(merged(&[&one, &other]), [of_2(&one), of_2(&other)]);
        }
        assert_eq!(merged(&["p99 of `a` is 5.5 ms.", "p99 of `a` is 7.5 ms."]), ["p99 of `a` is 7.5 ms."]);
        assert_eq!(merged(&["swapped 3 pages (9 KiB)", "swapped 5 pages (20 KiB)"]), ["swapped 5 pages (20 KiB)"]);
    }

    #[test]
    fn invalid_samples_are_findings_with_their_reasons() {
        let mut evaluated = samples(&[97.0, 98.0, 99.0, 97.5, 98.5]);
        evaluated[1].measurement.as_mut().unwrap().reject(Gate::Plausibility, "rate is -7 ops/s");
        evaluated[3].measurement.as_mut().unwrap().reject(Gate::Plausibility, "rate is -8 ops/s");
        evaluated[4].measurement.as_mut().unwrap().reject(Gate::Output, "its artefacts were modified");
        let expected = [
            "sample 1 is invalid (plausibility: rate is -7 ops/s): it is excluded, and so is 1 other sample for the same \
                reason",
            "sample 4 is invalid (output: its artefacts were modified): it is excluded",
        ];
        assert_eq!(invalid_samples(&evaluated), expected);
        assert_eq!(invalid_samples(&evaluated[3..]), [""; 0], "the outcome has the reason");
    }

    #[test]
    fn contradictions_of_other_metrics_are_findings() {
        let mut rule = definition(precision());
        rule.metrics.push(Metric::latency("response", "s"));
        rule.metrics.push(Metric::resource("faults", "1"));
        let with = |last: f64| {
            let mut evaluated = samples(&[97.0, 98.0, 99.0]);
            for (attempt, value) in evaluated.iter_mut().zip([1.0, 1.0, last]) {
                let measured = attempt.measurement.as_mut().unwrap();
                measured.set(Class::Latency, "response", value);
                measured.set(Class::Resource, "faults", value);
            }
            other_contradictions(&rule, |metric| ValueRange::new(metric, &evaluated))
        };
        assert_eq!(
            with(5000.0),
            [
                "response is 1 s in sample 0 and 5000 s in sample 2, a factor of 5000: one of the values may be in a different \
                    unit; the cell does not fail, since the metric is not a primary one"
            ]
        );
        assert_eq!(with(299.0), [""; 0]);
    }

    #[test]
    fn a_rate_that_is_the_same_in_every_sample_is_a_finding() {
        let rule = definition(precision());
        let same = findings_of(&rule, &samples(&[97.5; 6]));
        assert!(same[0].starts_with("rate is exactly 97.5 ops/s in all 6 samples: "), "{same:?}");
        assert_eq!(findings_of(&rule, &samples(&[97.5, 97.5, 97.500_001])), [""; 0]);
        assert_eq!(findings_of(&rule, &samples(&[97.5; 2])), [""; 0], "two may be equal by chance");
        let mut counted = definition(precision());
        counted.metrics[0].class = Class::Check;
        let mut of_checks = samples(&[97.5; 6]);
        for evaluated in &mut of_checks {
            evaluated.measurement.as_mut().unwrap().set(Class::Check, "rate", 97.5);
        }
        assert_eq!(findings_of(&counted, &of_checks), [""; 0], "a check is not a time");
    }

    #[test]
    fn samples_much_shorter_than_min_time_are_a_finding() {
        let with = |min_time: Option<u64>, seconds: f64| {
            let mut evaluated = samples(&[97.0, 98.0, 99.0, 97.5, 98.5, 99.5]);
            for attempt in &mut evaluated {
                attempt.measurement.as_mut().unwrap().intervals = Some(seconds);
            }
            findings_of(&CellDefinition { min_time: min_time.map(Nanos), ..definition(precision()) }, &evaluated)
        };
        let short = with(Some(5_000_000_000), 0.204);
        assert!(
            short[0].starts_with("the measured part of a sample takes 0.204 s, less than min-time (5s): "),
            "{short:?}"
        );
        assert_eq!(with(Some(5_000_000_000), 1.3), [""; 0]);
        assert_eq!(with(None, 0.2), [""; 0], "the test's own parameters determine its duration");
    }

    #[test]
    fn output_that_changes_although_declared_constant_is_a_finding() {
        let with = |outputs: [&str; 3]| {
            let mut evaluated = samples(&[97.0, 98.0, 99.0]);
            for (attempt, output) in evaluated.iter_mut().zip(outputs) {
                let measured = attempt.measurement.as_mut().unwrap();
                measured
                    .outputs
                    .extend((!output.is_empty()).then(|| ("standard output".to_owned(), output.to_owned())));
            }
            findings_of(&definition(precision()), &evaluated)
        };
        assert_eq!(with(["`sum 1`"; 3]), [""; 0]);
        assert_eq!(
            with(["`sum 1`", "`sum 1`", "`sum 2`"]),
            ["the standard output is not the same in every sample, although the test declares that it is: `sum 1` in \
                    sample 0, `sum 2` in sample 2; 2 different outputs in 3 samples"]
        );
        assert_eq!(with(["`sum 1`", "", ""]), [""; 0], "outputs that were not recorded are ignored");
    }
}
