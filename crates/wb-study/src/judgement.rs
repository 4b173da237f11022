//! Whether a cell needs more samples, and which of them count. Every primary metric decides.

use std::collections::BTreeSet;

use wb_model::{Metric, MetricKey};
use wb_record::CellDefinition;
use wb_stats::{Budget, Dispersion, SamplingDecision, SamplingRule};

use crate::evaluated_attempt::EvaluatedAttempt;
use crate::value_range::ValueRange;

/// The samples of a cell that count, and whether it needs more.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Positions among the attempts.
    pub counted: Vec<usize>,
    pub decision: CellDecision,
    /// Primary metrics with values that contradict each other. No sample counts then: it is unknown which values are
    /// wrong, and more samples would only outvote some.
    pub contradictions: Vec<ValueRange>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CellDecision {
    Continue,
    /// The rule is satisfied for every primary metric.
    Done,
    /// Sampling stops although the rule is not satisfied for these primary metrics, with the dispersion of each.
    NotConverged(Vec<(MetricKey, Dispersion)>),
}

impl Judgement {
    pub(crate) fn contradictory(contradictions: Vec<ValueRange>) -> Self {
        Self { counted: Vec::new(), decision: CellDecision::NotConverged(Vec::new()), contradictions }
    }

    pub fn contradiction(&self) -> Option<String> {
        let ranges: Vec<String> = self.contradictions.iter().map(ToString::to_string).collect();
        (!ranges.is_empty()).then(|| format!("its values contradict each other: {}", ranges.join("; ")))
    }
}

/// The metrics that decide, in the order of their declaration.
pub(crate) fn primary_metrics(definition: &CellDefinition) -> impl Iterator<Item = &Metric> + Clone {
    definition.metrics.iter().filter(|metric| metric.primary)
}

/// Decides whether a cell needs more samples. For each disturbed sample an additional one is taken, up to the
/// definition's `retakes`; the disturbed ones still count, since dropping samples would bias the result. Samples of
/// other metrics alone, as imports have them, count too, and the rule takes as many fewer.
pub fn judge(definition: &CellDefinition, evaluated: &[EvaluatedAttempt], budget: Budget) -> Judgement {
    let ranges = primary_metrics(definition).filter_map(|metric| ValueRange::new(metric, evaluated));
    let contradictions: Vec<ValueRange> = ranges.filter(ValueRange::is_contradiction).collect();
    if !contradictions.is_empty() {
        return Judgement::contradictory(contradictions);
    }
    let mut valid: Vec<usize> =
        (0..evaluated.len()).filter(|index| evaluated[*index].valid_sample().is_some()).collect();
    // Disturbed samples stay: dropping some would select the result. The summary is shown beside the one without them.
    let disturbed = valid.iter().filter(|index| evaluated[**index].is_disturbed()).count();
    let with_value = |metric: &Metric| -> Vec<(usize, f64)> {
        let value = |index: &usize| evaluated[*index].valid_sample().and_then(|measured| measured.get(metric));
        valid.iter().filter_map(|index| Some((*index, value(index)?))).collect()
    };
    let values_of = |metric: &Metric| with_value(metric).into_iter().map(|(_, value)| value).collect();
    let decisions = decide(definition, values_of, valid.len(), disturbed, budget);
    let decision = combine(&decisions);
    if decision != CellDecision::Continue {
        let excluded = |(metric, decision): (&Metric, &SamplingDecision)| -> Vec<usize> {
            let (SamplingDecision::Done(stop) | SamplingDecision::NotConverged(stop)) = decision else {
                return Vec::new();
            };
            let positions = with_value(metric).into_iter().enumerate();
            positions.filter(|(position, _)| !stop.counted.contains(position)).map(|(_, (index, _))| index).collect()
        };
        let decided = primary_metrics(definition).zip(decisions.iter().map(|(_, decision)| decision));
        let excluded: BTreeSet<usize> = decided.flat_map(excluded).collect();
        valid.retain(|index| !excluded.contains(index));
    }
    Judgement { counted: valid, decision, contradictions }
}

/// Decides for each primary metric from its values, which some of the `valid` samples may not have. Without any primary
/// metric, the number of samples decides.
pub(crate) fn decide(
    definition: &CellDefinition,
    values_of: impl Fn(&Metric) -> Vec<f64>,
    valid: usize,
    disturbed: usize,
    budget: Budget,
) -> Vec<(Option<MetricKey>, SamplingDecision)> {
    let rule = definition.rule.with_retakes(disturbed.min(definition.retakes));
    let decide = |values: &[f64]| {
        // Values are finite: the gates guarantee it for every valid sample.
        // An imported sample may have one of several metrics alone: the rule concerns those that have this one.
        without_samples(rule, valid - values.len()).decide(values, budget).unwrap_or(SamplingDecision::Continue)
    };
    let primary = primary_metrics(definition);
    let decisions: Vec<_> = primary.map(|metric| (Some(metric.key()), decide(&values_of(metric)))).collect();
    if decisions.is_empty() { vec![(None, decide(&[]))] } else { decisions }
}

pub(crate) fn combine(decisions: &[(Option<MetricKey>, SamplingDecision)]) -> CellDecision {
    if decisions.iter().any(|(_, decision)| *decision == SamplingDecision::Continue) {
        return CellDecision::Continue;
    }
    let is_done = |decision: &SamplingDecision| matches!(decision, SamplingDecision::Done(_));
    // The same samples have to satisfy the rule for each metric, so the noisiest determines their number.
    if decisions.iter().all(|(_, decision)| is_done(decision)) {
        return CellDecision::Done;
    }
    let not_converged = decisions.iter().filter_map(|(metric, decision)| match decision {
        SamplingDecision::NotConverged(stop) => Some((metric.clone()?, stop.dispersion)),
        SamplingDecision::Continue | SamplingDecision::Done(_) => None,
    });
    CellDecision::NotConverged(not_converged.collect())
}

/// Reduces a rule for all samples to one for the samples with a metric.
fn without_samples(rule: SamplingRule, others: usize) -> SamplingRule {
    match rule {
        SamplingRule::External { min_samples, max_samples } => SamplingRule::External {
            min_samples: min_samples.saturating_sub(others),
            max_samples: max_samples.saturating_sub(others),
        },
        SamplingRule::Compared { min_samples, max_samples } => {
            SamplingRule::Compared { min_samples: min_samples.saturating_sub(others), max_samples }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wb_model::{CellOutcome, Class};
    use wb_stats::{STOPPING_CONFIDENCE, Samples, widened_median_interval};

    use super::*;
    use crate::cell::{StartTimes, cell_result};
    use crate::testing::{definition, precision, samples};

    /// A cell whose primary metrics are a rate and a latency.
    fn two_primaries(rule: SamplingRule) -> CellDefinition {
        let mut cell = definition(rule);
        cell.metrics.push(Metric::latency("response", "s").primary());
        cell
    }

    fn samples_of(values: &[(f64, f64)]) -> Vec<EvaluatedAttempt> {
        let mut evaluated = samples(&values.iter().map(|(rate, _)| *rate).collect::<Vec<_>>());
        for (one, (_, response)) in evaluated.iter_mut().zip(values) {
            one.measurement.as_mut().unwrap().set(Class::Latency, "response", *response);
        }
        evaluated
    }

    const STEADY: [f64; 8] = [100.0, 101.0, 100.0, 101.0, 100.0, 101.0, 100.0, 101.0];
    const NOISY: [f64; 8] = [1.0, 1.5, 1.1, 1.4, 1.2, 1.3, 1.0, 1.5];

    fn beside(rates: [f64; 8], responses: [f64; 8]) -> Vec<(f64, f64)> {
        rates.into_iter().zip(responses).collect()
    }

    #[test]
    fn a_cell_continues_until_its_noisiest_primary_metric_converges_and_names_it_at_the_limit() {
        let cell = two_primaries(precision());
        for (values, noisy) in [(beside(STEADY, NOISY), "latency/response"), (beside(NOISY, STEADY), "throughput/rate")]
        {
            let at = |count: usize| judge(&cell, &samples_of(&values[..count]), Budget::Left);
            assert_eq!([6, 7].map(|count| at(count).decision), [CellDecision::Continue, CellDecision::Continue]);
            let CellDecision::NotConverged(metrics) = at(8).decision else { panic!("{:?}", at(8)) };
            assert_eq!(metrics.iter().map(|(metric, _)| metric.to_string()).collect::<Vec<_>>(), [noisy]);
            let outcome = cell_result(&cell, samples_of(&values), None, &StartTimes::default()).outcome;
            let CellOutcome::NotConverged { percent, metrics } = &outcome else { panic!("{outcome:?}") };
            assert_eq!(*percent, metrics[0].percent);
            assert_eq!(outcome.to_string(), format!("not converged: {noisy} ±{percent:.1} %"));
        }
        assert_eq!(judge(&cell, &samples_of(&beside(STEADY, STEADY)[..6]), Budget::Left).decision, CellDecision::Done);
    }

    #[test]
    fn one_contradictory_primary_metric_fails_the_cell_and_each_is_named() {
        let cell = two_primaries(precision());
        let reason = |values: &[(f64, f64)]| judge(&cell, &samples_of(values), Budget::Left).contradiction();
        let latency = "response is 1 s in sample 0 and 1000 s in sample 1, a factor of 1000";
        assert_eq!(
            reason(&[(1.0, 1.0), (1.0, 1000.0)]).unwrap(),
            format!("its values contradict each other: {latency}")
        );
        assert!(reason(&[(1.0, 1.0), (1000.0, 1000.0)]).unwrap().ends_with(&format!("; {latency}")));
        assert_eq!(reason(&[(1.0, 1.0), (1.0, 1.0)]), None);
    }

    #[test]
    fn patterns_are_found_in_every_primary_metric() {
        let cell = two_primaries(SamplingRule::Precision { percent: 2.0, min_samples: 6, max_samples: 30 });
        let values: Vec<(f64, f64)> = (0..24)
            .map(|index| (100.0 + f64::from(index * 7 % 24), 10.0 + (f64::from(index) / 24.0 * 12.6).sin()))
            .collect();
        let result = cell_result(&cell, samples_of(&values), None, &StartTimes::default());
        let dependent = |name: &str| format!("dependent samples: each {name} resembles");
        assert!(
            result.findings.iter().any(|finding| finding.starts_with(&dependent("response"))),
            "{:?}",
            result.findings
        );
        assert!(!result.findings.iter().any(|finding| finding.starts_with(&dependent("rate"))));
        assert!(result.dependence.unwrap().p_value < 0.01, "the metric that shows it stands for the cell");
    }

    #[test]
    fn only_a_set_that_is_quiet_in_all_primary_metrics_counts() {
        let cell = two_primaries(SamplingRule::MaxStddev { samples: 3, max_stddev_percent: 5.0, max_failures: 6 });
        let quiet_rates = [100.0, 101.0, 102.0, 100.0, 150.0, 200.0, 100.0, 101.0, 102.0];
        let quiet_responses = [1.0, 2.0, 3.0, 1.0, 1.01, 1.02, 1.0, 1.01, 1.02];
        let values: Vec<(f64, f64)> = quiet_rates.into_iter().zip(quiet_responses).collect();
        let at = |count: usize| judge(&cell, &samples_of(&values[..count]), Budget::Left);
        assert!((1..9).all(|count| at(count).decision == CellDecision::Continue));
        assert_eq!((at(9).decision, at(9).counted), (CellDecision::Done, vec![6, 7, 8]));
    }

    proptest! {
        /// By the definition of convergence, in each metric alone.
        #[test]
        fn no_cell_is_done_before_each_primary_metric_has_converged(
            values in prop::collection::vec((95.0..105.0_f64, 0.9..1.1_f64), 1..20),
        ) {
            let rule = SamplingRule::Precision { percent: 2.0, min_samples: 6, max_samples: 12 };
            let cell = two_primaries(rule);
            let has_converged = |values: &[f64]| {
                let samples = Samples::new(values).unwrap();
                let width = widened_median_interval(&samples, STOPPING_CONFIDENCE)
                    .and_then(|interval| interval.half_width_percent(samples.median()));
                values.len() >= 6 && width.is_some_and(|percent| percent <= 2.0)
            };
            for count in 1..=values.len() {
                let so_far = &values[..count];
                let (rates, responses): (Vec<f64>, Vec<f64>) = so_far.iter().copied().unzip();
                let expected = match (has_converged(&rates), has_converged(&responses)) {
                    (true, true) => "done",
                    _ if count < 12 => "continue",
                    _ => "not converged",
                };
                let judged = judge(&cell, &samples_of(so_far), Budget::Left);
                let decided = match judged.decision {
                    CellDecision::Done => "done",
                    CellDecision::Continue => "continue",
                    CellDecision::NotConverged(_) => "not converged",
                };
                prop_assert_eq!(decided, expected);
                prop_assert_eq!(judged.counted.len(), count);
            }
        }
    }
}
