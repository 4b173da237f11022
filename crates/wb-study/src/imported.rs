//! Evaluation of imported samples: as attempts, or as columns if there are many.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wb_model::{AttemptOutcome, AttemptPurpose, Metric, MetricKey, Validity};
use wb_record::journal::{AttemptEnd, ImportedBatch};
use wb_record::{CellDefinition, RecordedAttempt};
use wb_results::{CellResult, ExcludedSample, Failures, MetricResult, SampleSeries};
use wb_stats::{Budget, Samples, Summary};
use wb_test::evaluate::is_plausible;
use wb_test::measure_imported;

use crate::cell::{AttemptTally, StartTimes, attempt_results, longest_series, outcome};
use crate::evaluated_attempt::EvaluatedAttempt;
use crate::findings::{invalid_sample_groups, merge_findings, other_contradictions};
use crate::judgement::{Judgement, combine, decide, primary_metrics};
use crate::primary_values::{PrimaryValues, clearest_dependence};
use crate::provenance;
use crate::value_range::ValueRange;

/// The number of imported samples of a cell from which on they are evaluated as columns: an attempt takes a kilobyte.
pub(crate) const MANY: usize = 1000;

pub(crate) fn attempts(batch: &ImportedBatch) -> impl Iterator<Item = EvaluatedAttempt> {
    let rows = (0..batch.samples.count).filter_map(|position| Some((position, batch.samples.sample(position)?)));
    rows.map(|(position, row)| {
        let ended = AttemptEnd {
            cell: batch.cell.clone(),
            key: batch.key.clone(),
            purpose: AttemptPurpose::Sample,
            sample: batch.first_sample.saturating_add(position),
            attempt: 0,
            outcome: outcome_of(row.failure),
            seconds: row.seconds.unwrap_or(0.0),
            workload_seconds: 0.0,
            work: None,
            workers: Vec::new(),
            work_by_worker: BTreeMap::new(),
            disturbances: row.disturbances.iter().map(|&text| text.to_owned()).collect(),
            findings: Vec::new(),
            artefacts: Vec::new(),
        };
        let measurement = row.failure.is_none().then(|| measure_imported(&row, &batch.provenance));
        let attempt = RecordedAttempt {
            ended,
            time: String::new(),
            invocation: None,
            run: Default::default(),
            folder: batch.folder(),
            intact: true,
        };
        EvaluatedAttempt { attempt, measurement }
    })
}

fn outcome_of(failure: Option<&str>) -> AttemptOutcome {
    match failure {
        None => AttemptOutcome::Completed,
        Some(reason) => AttemptOutcome::Failed { reason: reason.to_owned() },
    }
}

/// The result of a cell with many imported samples. It may also have attempts, of an import by an earlier version.
pub(crate) fn cell_result(
    definition: &CellDefinition,
    attempts: &[EvaluatedAttempt],
    batches: &[Cow<'_, ImportedBatch>],
    ended_by: Option<&str>,
    origin: &StartTimes,
) -> CellResult {
    let mut series: Vec<SampleSeries> = batches.iter().map(|batch| evaluate(batch, origin)).collect();
    let tally = tally(attempts, &series);
    let range_of = |metric: &Metric| ValueRange::of_values(metric, valid_values(attempts, &series, metric));
    let contradictions: Vec<ValueRange> =
        primary_metrics(definition).filter_map(range_of).filter(ValueRange::is_contradiction).collect();
    let values_of = |metric: &Metric| valid_values(attempts, &series, metric).map(|(_, value)| value).collect();
    let decision = combine(&decide(definition, values_of, tally.valid, 0, Budget::Spent));
    let is_counted = contradictions.is_empty();
    let judgement = if is_counted {
        let valid = (0..attempts.len()).filter(|index| attempts[*index].valid_sample().is_some());
        Judgement { counted: valid.collect(), decision, contradictions }
    } else {
        Judgement::contradictory(contradictions)
    };
    let counted = if is_counted { tally.valid } else { 0 };
    let outcome = outcome(definition, &tally, &judgement, counted, ended_by);
    let counted_attempts: Vec<&EvaluatedAttempt> = judgement.counted.iter().map(|index| &attempts[*index]).collect();
    let summarize = |metric: &Metric| {
        let values = valid_values(attempts, &series, metric).filter(|_| is_counted);
        let values: Vec<f64> = values.map(|(_, value)| value).collect();
        Samples::new(&values).ok().map(|samples| Summary::new(&samples))
    };
    let result = |metric: &Metric| MetricResult {
        metric: metric.clone(),
        worker: None,
        threshold: None,
        summary: summarize(metric),
        undisturbed: None,
    };
    let mut metrics: Vec<MetricResult> = definition.metrics.iter().map(result).collect();
    metrics.sort_by_key(|result| !result.metric.primary);

    let mut findings = match tally.valid {
        0 => Vec::new(),
        _ => invalid_sample_groups(invalid(attempts).chain(series.iter().flat_map(invalid_of_series))),
    };
    let counted_values = |metric: &Metric| if is_counted { values_of(metric) } else { Vec::new() };
    let primary: Vec<PrimaryValues<'_>> = primary_metrics(definition)
        .map(|metric| PrimaryValues::new(metric, range_of(metric), counted_values(metric)))
        .collect();
    findings.extend(primary.iter().flat_map(PrimaryValues::findings));
    findings.extend(other_contradictions(definition, range_of));
    if is_counted {
        findings.extend(sample_findings(&counted_attempts, batches, &series, counted));
    }
    let mut provenance = provenance::provenance(definition, attempts, &counted_attempts);
    let completed = batches.iter().filter(|batch| batch.samples.failures.len() < batch.samples.count as usize);
    provenance.extend(completed.flat_map(|batch| batch.provenance.clone()));
    series.iter_mut().for_each(|series| series.counted = is_counted);
    let attempts = attempt_results(attempts, &judgement, origin);
    CellResult {
        id: definition.cell.clone(),
        key: definition.key.clone(),
        description: definition.summary.clone(),
        params: definition.params.clone(),
        workers: Vec::new(),
        rule: definition.rule,
        outcome,
        ended_by: ended_by.map(str::to_owned),
        findings,
        curves: Vec::new(),
        latency: Vec::new(),
        failures: Failures::count(&attempts, &series),
        exit_status: None,
        dependence: clearest_dependence(&primary),
        attempts,
        series,
        metrics,
        provenance,
    }
}

/// Evaluates the samples of a file. Samples that pass the gates need no more than their columns.
fn evaluate(batch: &ImportedBatch, origin: &StartTimes) -> SampleSeries {
    let samples = &batch.samples;
    let is_primary = |metric: &Metric| metric.primary;
    let mut suspects: Vec<u32> = samples.failures.iter().map(|(position, _)| *position).collect();
    suspects.extend(samples.rejections.iter().map(|(position, _)| *position));
    for column in &samples.columns {
        let values = (0..).zip(&column.values);
        let fails = |value: &Option<f64>| value.is_some_and(|value| !is_plausible(&column.metric, value));
        suspects.extend(values.filter(|(_, value)| fails(value)).map(|(position, _)| position));
    }
    suspects.sort_unstable();
    suspects.dedup();
    let exclusion = |position: u32| {
        let row = samples.sample(position)?;
        let validity = row.failure.is_none().then(|| measure_imported(&row, &BTreeMap::new()).validity);
        let excluded = ExcludedSample { position, outcome: outcome_of(row.failure), validity };
        (excluded.validity != Some(Validity::Valid)).then_some(excluded)
    };
    let folder = batch.folder().to_string_lossy().into_owned();
    let mut values: BTreeMap<MetricKey, Vec<Option<f64>>> = BTreeMap::new();
    // Columns that differ in what else is known of a metric are those of different samples.
    for column in samples
        .columns
        .iter()
        .filter(|column| !is_primary(&column.metric))
        .chain(samples.columns.iter().filter(|column| is_primary(&column.metric)))
    {
        let merged = values.entry(column.metric.key()).or_default();
        merged.resize(merged.len().max(column.values.len()), None);
        merged.iter_mut().zip(&column.values).for_each(|(merged, value)| *merged = value.or(*merged));
    }
    SampleSeries {
        first_sample: batch.first_sample,
        count: samples.count,
        start_seconds: origin.started.get(&folder).copied().unwrap_or_default(),
        measured_seconds: samples.seconds.clone(),
        counted: true,
        excluded: suspects.into_iter().filter_map(exclusion).collect(),
        values,
        folder,
    }
}

/// The valid values of a metric in time order, with the numbers of their samples.
fn valid_values(
    attempts: &[EvaluatedAttempt],
    series: &[SampleSeries],
    metric: &Metric,
) -> impl Iterator<Item = (u32, f64)> {
    let key = metric.key();
    let of_attempt = |evaluated: &EvaluatedAttempt| {
        Some((evaluated.attempt.ended.sample, evaluated.valid_sample()?.values.get(&metric.key()).copied()?))
    };
    let of_attempts: Vec<(u32, f64)> = attempts.iter().filter_map(of_attempt).collect();
    let of_series = series.iter().flat_map(move |series| series.counted_values(&key).collect::<Vec<_>>());
    of_attempts.into_iter().chain(of_series)
}

fn tally(attempts: &[EvaluatedAttempt], series: &[SampleSeries]) -> AttemptTally {
    let mut tally = AttemptTally::new(attempts);
    for series in series {
        let failed: BTreeSet<u32> = series
            .excluded
            .iter()
            .filter(|excluded| excluded.validity.is_none())
            .map(|excluded| excluded.position)
            .collect();
        tally.incomplete += failed.len();
        let in_succession = longest_series((0..series.count).map(|position| failed.contains(&position)));
        tally.incomplete_in_succession = tally.incomplete_in_succession.max(in_succession);
        tally.attempts += series.count as usize;
        tally.valid += series.count as usize - series.excluded.len();
        tally.last_failure = series.excluded.last().map(describe_exclusion).or(tally.last_failure);
    }
    tally
}

fn describe_exclusion(excluded: &ExcludedSample) -> String {
    excluded.validity.as_ref().map_or_else(|| excluded.outcome.to_string(), ToString::to_string)
}

fn invalid(attempts: &[EvaluatedAttempt]) -> impl Iterator<Item = (u32, String)> {
    let invalid = attempts.iter().filter(|one| {
        one.attempt.ended.purpose == AttemptPurpose::Sample && one.measurement.is_some() && one.valid().is_none()
    });
    invalid.map(|one| (one.attempt.ended.sample, one.reason()))
}

fn invalid_of_series(series: &SampleSeries) -> impl Iterator<Item = (u32, String)> {
    let invalid = series.excluded.iter().filter(|excluded| excluded.validity.is_some());
    invalid.map(|excluded| (series.first_sample.saturating_add(excluded.position), describe_exclusion(excluded)))
}

fn sample_findings(
    attempts: &[&EvaluatedAttempt],
    batches: &[Cow<'_, ImportedBatch>],
    series: &[SampleSeries],
    counted: usize,
) -> Vec<String> {
    let of_attempts = attempts.iter().enumerate().flat_map(|(index, evaluated)| {
        let findings = evaluated.measurement.iter().flat_map(|measured| measured.findings.clone());
        findings.map(move |finding| (finding, vec![index])).collect::<Vec<_>>()
    });
    let mut before = attempts.len();
    let of_batches = batches.iter().zip(series).flat_map(|(batch, series)| {
        let start = before;
        before += series.count as usize;
        let findings = batch.samples.findings.iter().map(|(finding, positions)| (finding.clone(), positions));
        let disturbances = batch.samples.disturbances.iter();
        let disturbed = disturbances.map(|(text, positions)| (format!("disturbed: {text}"), positions));
        findings.chain(disturbed).filter_map(move |(finding, positions)| {
            let counted = positions.iter().filter(|position| series.is_counted(**position));
            let positions: Vec<usize> = counted.map(|position| start + *position as usize).collect();
            (!positions.is_empty()).then_some((finding, positions))
        })
    });
    merge_findings(of_attempts.chain(of_batches), counted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wb_model::Gate;
    use wb_model::imported::{IMPORTED_FROM, ImportRejection, ImportedSamples, ImportedValue};
    use wb_stats::SamplingRule;

    use super::*;
    use crate::testing::definition;

    #[derive(Debug, Clone)]
    enum Kind {
        Valid(f64),
        WithoutPrimary,
        Failed,
        Rejected,
        Impossible,
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![
            6 => (1_i32..2000).prop_map(|value| Kind::Valid(f64::from(value))),
            1 => Just(Kind::WithoutPrimary),
            1 => Just(Kind::Failed),
            1 => Just(Kind::Rejected),
            1 => Just(Kind::Impossible),
        ]
    }

    fn batch(kinds: &[Kind], first_sample: u32) -> (CellDefinition, ImportedBatch) {
        let rule = SamplingRule::External { min_samples: kinds.len(), max_samples: kinds.len() };
        let mut definition = definition(rule);
        definition.provenance.insert(IMPORTED_FROM.to_owned(), "hyperfine".to_owned());
        let primary = definition.metrics[0].clone();
        // Rows may have one of two primary metrics alone.
        let other = Metric::latency("time", "s").primary();
        definition.metrics.push(other.clone());
        let mut samples = ImportedSamples::default();
        for (index, kind) in kinds.iter().enumerate() {
            let reading = |metric: &Metric, value| ImportedValue { metric: metric.clone(), value };
            let readings = match kind {
                Kind::Valid(value) => vec![reading(&primary, *value), reading(&other, value / 10.0)],
                Kind::WithoutPrimary => vec![reading(&other, 7.0)],
                Kind::Failed => Vec::new(),
                Kind::Rejected => vec![reading(&primary, 5.0)],
                Kind::Impossible => vec![reading(&primary, -5.0)],
            };
            let rejection = ImportRejection { gate: Gate::Plausibility, figures: format!("{index} times too much") };
            let findings = if index % 3 == 0 { vec![format!("swapped {} pages", index % 5)] } else { Vec::new() };
            samples.push(
                &format!("x/{index}"),
                &readings,
                (index % 2 == 0).then_some(0.5),
                findings,
                matches!(kind, Kind::Rejected).then_some(rejection),
                matches!(kind, Kind::Failed).then(|| "no disk".to_owned()),
            );
        }
        let batch = ImportedBatch {
            cell: definition.cell.clone(),
            key: definition.key.clone(),
            file: wb_model::Sha256::digest(b"x"),
            first_sample,
            provenance: BTreeMap::from([("kernel".to_owned(), "6.1".to_owned())]),
            samples,
        };
        (definition, batch)
    }

    proptest! {
        #[test]
        fn columns_and_attempts_have_the_same_result(kinds in prop::collection::vec(kind(), 1..60)) {
            let (definition, batch) = batch(&kinds, 3);
            let origin = StartTimes::default();
            let listed = crate::cell::cell_result(&definition, attempts(&batch).collect(), Some("end"), &origin);
            let columns = cell_result(&definition, &[], &[Cow::Borrowed(&batch)], Some("end"), &origin);
            prop_assert_eq!(columns.measured_seconds(), listed.measured_seconds());
            let samples: Vec<_> = columns.samples().map(|sample| sample.into_owned()).collect();
            prop_assert_eq!(&samples, &listed.attempts);
            let key = definition.metrics[0].key();
            let values = |result: &CellResult| result.counted_values(&key).collect::<Vec<f64>>();
            prop_assert_eq!(values(&columns), values(&listed));
            prop_assert_eq!(CellResult { series: Vec::new(), attempts: listed.attempts.clone(), ..columns }, listed);
        }
    }
}
