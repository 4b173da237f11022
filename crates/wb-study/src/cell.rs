//! Evaluation of a cell: whether it needs more samples, and its result.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::imported::IMPORTED_FROM;
use wb_model::{Aggregate, AttemptPurpose, CellOutcome, Metric, MetricKey, MetricPrecision, WorkerName};
use wb_record::CellDefinition;
use wb_results::{AttemptResult, CellResult, Failures, MetricResult};
use wb_stats::{Budget, Dispersion, MIN_SAMPLES_FOR_INTERVAL, Samples, SamplingRule, Summary};

use crate::curves::merge_curves;
use crate::evaluated_attempt::EvaluatedAttempt;
use crate::findings::findings;
use crate::judgement::{CellDecision, Judgement, judge, primary_metrics};
use crate::latency::nested_latency;
use crate::primary_values::{PrimaryValues, clearest_dependence};
use crate::provenance;
use crate::value_range::ValueRange;

/// The maximum number of samples of a rule, without retakes.
fn max_samples(rule: SamplingRule) -> usize {
    match rule {
        SamplingRule::Precision { max_samples, .. }
        | SamplingRule::External { max_samples, .. }
        | SamplingRule::Compared { max_samples, .. } => max_samples,
        SamplingRule::MaxStddev { samples, .. } => samples,
    }
}

/// `ended_by` is the reason why the cell ended, if its run has finished it.
pub fn cell_result(
    definition: &CellDefinition,
    evaluated: Vec<EvaluatedAttempt>,
    ended_by: Option<&str>,
    origin: &StartTimes,
) -> CellResult {
    // Judge an unfinished cell like one whose budget is spent.
    let judgement = judge(definition, &evaluated, Budget::Spent);
    let counted: Vec<&EvaluatedAttempt> = judgement.counted.iter().map(|position| &evaluated[*position]).collect();
    let workers: BTreeSet<&WorkerName> =
        counted.iter().flat_map(|evaluated| &evaluated.attempt.ended.workers).collect();
    let metrics_of = |worker: Option<&WorkerName>| {
        definition.metrics.iter().map(|metric| metric_result(definition, metric, worker, &counted)).collect::<Vec<_>>()
    };
    let mut metrics = metrics_of(None);
    // Metrics without an aggregate have no value for all workers together.
    metrics.retain(|result| workers.is_empty() || result.metric.aggregate != Aggregate::None);
    metrics.sort_by_key(|result| !result.metric.primary);
    metrics.extend(workers.into_iter().flat_map(|worker| metrics_of(Some(worker))));
    let values_of = |metric: &Metric| -> Vec<f64> {
        counted.iter().filter_map(|evaluated| evaluated.measurement.as_ref()?.get(metric)).collect()
    };
    let primary: Vec<PrimaryValues<'_>> = primary_metrics(definition)
        .map(|metric| PrimaryValues::new(metric, ValueRange::new(metric, &evaluated), values_of(metric)))
        .collect();
    let mut findings = findings(definition, &evaluated, &primary, &counted);
    findings.extend(provenance::changes(&counted));
    let mut outcome =
        outcome(definition, &AttemptTally::new(&evaluated), &judgement, judgement.counted.len(), ended_by);
    let has_no_value = !metrics.is_empty() && metrics.iter().all(|result| result.summary.is_none());
    if has_no_value && matches!(outcome, CellOutcome::Measured | CellOutcome::NotConverged { .. }) {
        outcome = CellOutcome::Failed { reason: "no sample has a value of any of its metrics".to_owned() };
    }
    let attempts = attempt_results(&evaluated, &judgement, origin);
    CellResult {
        id: definition.cell.clone(),
        key: definition.key.clone(),
        description: definition.summary.clone(),
        params: definition.params.clone(),
        workers: definition.roles.iter().map(|assignment| assignment.worker.clone()).collect(),
        rule: definition.rule,
        outcome,
        ended_by: ended_by.map(str::to_owned),
        findings,
        curves: merge_curves(&counted),
        latency: nested_latency(&counted),
        failures: Failures::count(&attempts, &[]),
        exit_status: None,
        dependence: clearest_dependence(&primary),
        attempts,
        series: Vec::new(),
        metrics,
        provenance: provenance::provenance(definition, &evaluated, &counted),
    }
}

#[derive(Debug, Default)]
pub(crate) struct AttemptTally {
    pub(crate) valid: usize,
    pub(crate) attempts: usize,
    pub(crate) incomplete: usize,
    /// The largest number in succession.
    pub(crate) incomplete_in_succession: usize,
    /// Why the last one that failed has no valid values.
    pub(crate) last_failure: Option<String>,
}

impl AttemptTally {
    pub(crate) fn new(evaluated: &[EvaluatedAttempt]) -> Self {
        let is_failed = |evaluated: &&EvaluatedAttempt| evaluated.valid().is_none() && !evaluated.is_cancelled();
        let is_completed = |evaluated: &EvaluatedAttempt| evaluated.attempt.ended.outcome.is_completed();
        Self {
            valid: evaluated.iter().filter(|evaluated| evaluated.valid_sample().is_some()).count(),
            attempts: evaluated.len(),
            incomplete: evaluated.iter().filter(|evaluated| !is_completed(evaluated)).count(),
            incomplete_in_succession: longest_series(evaluated.iter().map(|evaluated| !is_completed(evaluated))),
            last_failure: evaluated.iter().rfind(is_failed).map(EvaluatedAttempt::reason),
        }
    }
}

/// The number of incomplete attempts in succession that a cell does not survive: nobody repeats those of an import,
/// which are judged as if the next attempt had repeated them.
const TOO_MANY_IN_SUCCESSION: usize = 3;

pub(crate) fn longest_series(all: impl Iterator<Item = bool>) -> usize {
    let mut length = 0;
    let lengths = all.map(|is_true| {
        length = if is_true { length + 1 } else { 0 };
        length
    });
    lengths.max().unwrap_or(0)
}

pub(crate) fn outcome(
    definition: &CellDefinition,
    tally: &AttemptTally,
    judgement: &Judgement,
    counted: usize,
    ended_by: Option<&str>,
) -> CellOutcome {
    if let Some(reason) = judgement.contradiction() {
        return CellOutcome::Failed { reason };
    }
    if let (Some(reason), 0) = (&definition.unsupported, counted) {
        return CellOutcome::Unsupported { reason: reason.clone() };
    }
    let valid = tally.valid;
    let required = definition.rule.min_samples();
    let is_import = definition.provenance.contains_key(IMPORTED_FROM);
    if is_import
        && valid > 0
        && valid + tally.incomplete >= required
        && tally.incomplete_in_succession < TOO_MANY_IN_SUCCESSION
    {
        return CellOutcome::Measured;
    }
    let failed = || match &tally.last_failure {
        Some(reason) => CellOutcome::Failed { reason: reason.clone() },
        // There was no attempt: the worker was lost before.
        None => match ended_by.filter(|_| tally.attempts == 0) {
            Some(reason) => CellOutcome::Failed { reason: reason.to_owned() },
            None => CellOutcome::Partial { valid: 0, required },
        },
    };
    let reached = match &judgement.decision {
        CellDecision::Done => return CellOutcome::Measured,
        CellDecision::Continue => Vec::new(),
        CellDecision::NotConverged(metrics) => reached_precision(metrics),
    };
    match reached.iter().map(|metric| metric.percent).reduce(f64::max) {
        _ if valid == 0 => failed(),
        _ if valid < required => CellOutcome::Partial { valid, required },
        Some(percent) => {
            let is_single = primary_metrics(definition).count() == 1;
            CellOutcome::NotConverged { percent, metrics: if is_single { Vec::new() } else { reached } }
        }
        // As with pbench's sets of three samples: too few were requested for an interval.
        None if valid >= max_samples(definition.rule) => CellOutcome::Measured,
        None => CellOutcome::Partial { valid, required: required.max(MIN_SAMPLES_FOR_INTERVAL) },
    }
}

/// The precision that metrics without convergence have reached, for those with a relative dispersion.
fn reached_precision(metrics: &[(MetricKey, Dispersion)]) -> Vec<MetricPrecision> {
    let reached = metrics.iter().filter_map(|(metric, dispersion)| match *dispersion {
        Dispersion::HalfWidthPercent(percent) | Dispersion::StddevPercent(percent) => {
            Some(MetricPrecision { metric: metric.clone(), percent })
        }
        Dispersion::TooFew | Dispersion::ZeroCentre => None,
    });
    reached.collect()
}

/// The result of a metric over the samples that count, for all workers together or for one of several.
fn metric_result(
    definition: &CellDefinition,
    metric: &Metric,
    worker: Option<&WorkerName>,
    counted: &[&EvaluatedAttempt],
) -> MetricResult {
    let key = MetricKey { worker: worker.cloned(), ..metric.key() };
    let summarize = |selected: &dyn Fn(&EvaluatedAttempt) -> bool| {
        let selected = counted.iter().filter(|evaluated| selected(evaluated));
        let values: Vec<f64> =
            selected.filter_map(|evaluated| evaluated.measurement.as_ref()?.values.get(&key).copied()).collect();
        Samples::new(&values).ok().map(|samples| Summary::new(&samples))
    };
    let disturbed = counted.iter().any(|evaluated| evaluated.is_disturbed());
    MetricResult {
        // Cells converge on the value of all workers together.
        metric: Metric { primary: metric.primary && worker.is_none(), ..metric.clone() },
        worker: worker.cloned(),
        threshold: definition.criteria.thresholds.get(&metric.key()).copied(),
        summary: summarize(&|_| true),
        undisturbed: if disturbed { summarize(&|evaluated| !evaluated.is_disturbed()) } else { None },
    }
}

/// The start times of the run's attempts, for the time axis.
#[derive(Debug, Clone, Default)]
pub struct StartTimes {
    /// Seconds from the run's first start, by the attempt's folder relative to the run folder.
    pub started: BTreeMap<String, f64>,
}

pub(crate) fn attempt_results(
    evaluated: &[EvaluatedAttempt],
    judgement: &Judgement,
    origin: &StartTimes,
) -> Vec<AttemptResult> {
    let row = |(index, evaluated): (usize, &EvaluatedAttempt)| {
        let ended = &evaluated.attempt.ended;
        let folder = evaluated.attempt.folder.to_string_lossy().into_owned();
        AttemptResult {
            sample: ended.sample,
            attempt: ended.attempt,
            purpose: ended.purpose,
            start_seconds: origin.started.get(&folder).copied().unwrap_or_default(),
            seconds: ended.seconds,
            measured_seconds: evaluated.measured_seconds(),
            outcome: ended.outcome.clone(),
            validity: evaluated.measurement.as_ref().map(|measured| measured.validity.clone()),
            disturbances: ended.disturbances.clone(),
            counted: ended.purpose == AttemptPurpose::Sample && judgement.counted.binary_search(&index).is_ok(),
            values: evaluated.measurement.as_ref().map(|measured| measured.values.clone()).unwrap_or_default(),
            folder,
        }
    };
    evaluated.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use wb_model::{AttemptOutcome, Class};
    use wb_test::Measurement;

    use super::*;
    use crate::testing::{attempt, definition, precision, samples};

    fn result(rule: SamplingRule, evaluated: Vec<EvaluatedAttempt>) -> CellResult {
        cell_result(&definition(rule), evaluated, None, &StartTimes::default())
    }

    #[test]
    fn contradictory_values_fail_the_cell_and_no_majority_decides() {
        let printed = [&[1000.0; 4][..], &[1.0; 6]].concat();
        for values in [&printed[..5], &printed[..], &[1000.0, 1.0]] {
            let result = result(precision(), samples(values));
            let CellOutcome::Failed { reason } = &result.outcome else { panic!("{:?}", result.outcome) };
            let second = values.len().min(5) - 1;
            assert_eq!(
                *reason,
                format!(
                    "its values contradict each other: rate is 1 k ops/s in sample 0 and 1 ops/s in sample {second}, \
                     a factor of 1000"
                )
            );
            assert!(result.metrics[0].summary.is_none());
            assert!(
                result
                    .attempts
                    .iter()
                    .all(|sample| !sample.counted && sample.validity == Some(wb_model::Validity::Valid))
            );
        }
    }

    #[test]
    fn a_contradiction_ends_the_sampling_at_once_and_ignores_warm_ups() {
        let rule = definition(precision());
        let judged = judge(&rule, &samples(&[1000.0, 1.0]), Budget::Left);
        assert!(judged.contradiction().is_some() && matches!(judged.decision, CellDecision::NotConverged(_)));
        let mut warmed = vec![attempt(AttemptPurpose::WarmUp, 0, 1.0)];
        warmed.extend(samples(&[1000.0; 6]));
        let judged = judge(&rule, &warmed, Budget::Left);
        assert!(judged.contradiction().is_none() && judged.decision == CellDecision::Done);
        assert_eq!(judged.counted, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_factor_below_the_contradiction_limit_is_only_a_finding() {
        let with = |last: f64| result(precision(), samples(&[100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 100.0, last]));
        let findings = with(250.0).findings;
        assert_eq!(
            findings[0],
            "rate is 99 ops/s in sample 2 and 250 ops/s in sample 7, a factor of 2.53: the system or the work changed \
             between samples"
        );
        assert!(!matches!(with(29_000.0).outcome, CellOutcome::Failed { .. }));
        assert!(matches!(with(29_700.0).outcome, CellOutcome::Failed { .. }));
        assert_eq!(with(190.0).findings, [""; 0]);
    }

    #[test]
    fn samples_of_another_metric_alone_count_too() {
        let rule = SamplingRule::External { min_samples: 4, max_samples: 4 };
        let mut evaluated = samples(&[100.0, 101.0, 0.0, 0.0]);
        for sample in &mut evaluated[2..] {
            sample.measurement = Some(Measurement::default().with_value(Class::Latency, "time", 7.0));
        }
        let judged = judge(&definition(rule), &evaluated, Budget::Spent);
        assert_eq!(judged.counted, [0, 1, 2, 3]);
        assert_eq!(result(rule, evaluated.clone()).outcome, CellOutcome::Measured);
        if let Some(measurement) = &mut evaluated[3].measurement {
            measurement.reject(wb_model::Gate::Plausibility, "too short");
        }
        assert_eq!(result(rule, evaluated).outcome, CellOutcome::Partial { valid: 3, required: 4 });
    }

    #[test]
    fn an_import_survives_as_many_failures_in_succession_as_would_be_repeated() {
        let rule = SamplingRule::External { min_samples: 8, max_samples: 8 };
        let with_failures = |failed: &[usize]| {
            let mut evaluated = samples(&[100.0; 8]);
            for position in failed {
                evaluated[*position].measurement = None;
                evaluated[*position].attempt.ended.outcome =
                    AttemptOutcome::Crashed { status: "exit status 1".to_owned() };
            }
            evaluated
        };
        let imported = |failed: &[usize]| {
            let mut definition = definition(rule);
            definition.provenance.insert(IMPORTED_FROM.to_owned(), "hyperfine".to_owned());
            let evaluated = with_failures(failed);
            let judgement = judge(&definition, &evaluated, Budget::Spent);
            outcome(&definition, &AttemptTally::new(&evaluated), &judgement, judgement.counted.len(), None)
        };
        for survived in [&[0][..], &[7], &[1, 2], &[0, 1, 3, 4, 6, 7]] {
            assert_eq!(imported(survived), CellOutcome::Measured, "{survived:?}");
            let valid = 8 - survived.len();
            assert_eq!(result(rule, with_failures(survived)).outcome, CellOutcome::Partial { valid, required: 8 });
        }
        for ended in [&[0, 1, 2][..], &[2, 5, 6, 7]] {
            assert_eq!(imported(ended), CellOutcome::Partial { valid: 8 - ended.len(), required: 8 }, "{ended:?}");
        }
        assert!(matches!(imported(&[0, 1, 2, 3, 4, 5, 6, 7]), CellOutcome::Failed { .. }));
    }

    // Samples without any value made a cell measured.
    #[test]
    fn samples_without_values_of_the_metrics_measure_nothing() {
        let rules = [
            SamplingRule::External { min_samples: 2, max_samples: 2 },
            SamplingRule::Precision { percent: 2.0, min_samples: 2, max_samples: 2 },
            SamplingRule::MaxStddev { samples: 2, max_stddev_percent: 5.0, max_failures: 6 },
        ];
        for rule in rules {
            let mut evaluated = samples(&[1.0, 1.0]);
            for sample in &mut evaluated {
                sample.measurement = Some(Measurement::default().with_value(Class::Latency, "rate", 1.0));
            }
            assert_ne!(result(rule, evaluated).outcome, CellOutcome::Measured, "{rule:?}");
        }
    }

    #[test]
    fn one_sample_is_enough_for_a_rule_of_one() {
        let one = SamplingRule::MaxStddev { samples: 1, max_stddev_percent: 5.0, max_failures: 6 };
        assert_eq!(judge(&definition(one), &samples(&[7.0]), Budget::Left).decision, CellDecision::Done);
        assert_eq!(result(one, samples(&[7.0])).outcome, CellOutcome::Measured);
    }
}
