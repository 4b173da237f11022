//! Weighbridge's own layout: `run.json`, and `PROFILE/TEST/SERIAL/result.json` in its own schema.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wb_model::imported::IMPORTED_FROM;
use wb_model::{AttemptPurpose, CellOutcome, MetricKey, Validity, pluralize, strip_worker};
use wb_results::borrowed::{
    BorrowedAttempt, BorrowedCell, BorrowedExclusion, BorrowedFailures, BorrowedMetric, BorrowedMetricResult,
    BorrowedSerial,
};
use wb_results::comparison::{AttemptCounts, IdFormat, SampleCounts};

use super::ReadOptions;
use super::imported_cells::STATUS_PARAM;
use super::pairing::Recorded;
use super::parsed_result::{ImportedCell, ParsedMetric, ParsedResult};
use crate::build::{DEFINITION_KEY, EMULATED, EXIT_STATUS, METRIC_DIRECTION, METRIC_UNIT, MeasuredValue};
use crate::interner::Symbol;
use crate::schedule::{Rounds, SampleTime};

/// The file that distinguishes this layout from run-perf's.
pub(crate) const RUN_FILE: &str = "run.json";

/// The file that identifies this layout if [`RUN_FILE`] is lost.
pub(crate) const JOURNAL: &str = "journal.jsonl";

fn invalid_reason(validity: &Validity) -> Option<String> {
    matches!(validity, Validity::Invalid { .. }).then(|| validity.to_string())
}

/// `definitions(has_imported)` returns the recorded definitions by cell, whose keys replace those of the file.
pub(super) fn parse(
    text: &str,
    options: &ReadOptions,
    definitions: impl FnOnce(bool) -> BTreeMap<String, Recorded>,
    rounds: &Rounds,
) -> Result<ParsedResult, serde_json::Error> {
    let BorrowedSerial { cells } = serde_json::from_str(text)?;
    let mut parsed = ParsedResult { id_format: IdFormat::Weighbridge, ..ParsedResult::default() };
    let mut definitions = definitions(cells.iter().any(is_imported));
    for mut cell in cells {
        let recorded = definitions.remove(cell.id.as_ref());
        let version = recorded.as_ref().map(|recorded| recorded.version);
        if let Some(Recorded { key, exit_status, .. }) = recorded {
            cell.key = Cow::Owned(key);
            if let Some(status) = exit_status {
                cell.params.remove(STATUS_PARAM);
                cell.exit_status = status.parse().ok();
            }
        }
        add_cell(&mut parsed, &cell, version, options, rounds);
    }
    Ok(parsed)
}

/// Whether any worker was emulated in software.
fn is_emulated(cell: &BorrowedCell<'_>) -> bool {
    let mut entries = cell.provenance.iter().filter(|(name, _)| strip_worker(name) == EMULATED);
    entries.any(|(_, value)| value == "true")
}

/// The reason why it has no value, or not the samples that its rule requires; `None` if it has them, or was
/// interrupted.
fn error(cell: &BorrowedCell<'_>) -> Option<String> {
    match cell.outcome.as_ref()? {
        CellOutcome::Failed { reason } => Some(reason.clone()),
        CellOutcome::Unsupported { reason } => Some(format!("unsupported: {reason}")),
        CellOutcome::Partial { valid: 0, required } => Some(format!("0 of {}", pluralize(*required, "sample"))),
        // Without an end its run was interrupted, unless attempts failed.
        CellOutcome::Partial { valid, required } if cell.ended_by.is_some() || cell.failures.failed > 0 => {
            Some(format!("{valid} of {}{}", pluralize(*required, "sample"), shortfall(cell)))
        }
        CellOutcome::Measured | CellOutcome::NotConverged { .. } | CellOutcome::Partial { .. } => None,
    }
}

fn shortfall(cell: &BorrowedCell<'_>) -> String {
    let BorrowedFailures { failed, attempts, cause, cause_count } = &cell.failures;
    if *failed > 0 {
        let of_some = match cause_count {
            1.. if cause_count < failed => format!(" in {cause_count} of them"),
            _ => String::new(),
        };
        let cause = cause.as_deref().map(|cause| format!(": {cause}{of_some}")).unwrap_or_default();
        return format!("; {failed} of {attempts} attempts failed{cause}");
    }
    let tried = cell.attempts.iter().filter(|attempt| attempt.purpose == Some(AttemptPurpose::Sample));
    let invalid_attempt = |attempt: &BorrowedAttempt<'_>| invalid_reason(attempt.validity.as_ref()?);
    let excluded = cell.series.iter().flat_map(|series| &series.excluded);
    let invalid_sample = |excluded: &BorrowedExclusion| invalid_reason(excluded.validity.as_ref()?);
    let reasons: Vec<String> =
        tried.clone().filter_map(invalid_attempt).chain(excluded.filter_map(invalid_sample)).collect();
    let attempts = tried.count() + cell.series.iter().map(|series| series.count as usize).sum::<usize>();
    reasons.last().map_or(String::new(), |last| {
        format!("; {} of {} without valid values: {last}", reasons.len(), pluralize(attempts, "attempt"))
    })
}

/// The number of its counted samples; `None` if imported without any that was disturbed: its program may not record
/// that.
fn sample_counts(cell: &BorrowedCell<'_>) -> Option<SampleCounts> {
    let counted = || cell.attempts.iter().filter(|sample| sample.counted);
    let disturbed = counted().filter(|sample| !sample.disturbances.is_empty()).count();
    (!is_imported(cell) || disturbed > 0).then(|| SampleCounts { counted: counted().count(), disturbed })
}

/// Round and start of each attempt, in time order; `None` if imported. Without `rounds`, in runs without a journal,
/// attempts count as rounds.
fn times(cell: &BorrowedCell<'_>, rounds: Option<&Vec<u32>>) -> Vec<Option<SampleTime>> {
    let mut turns = 0;
    let mut time = |attempt: &BorrowedAttempt<'_>| {
        let turn = rounds.and_then(|rounds| rounds.get(turns).copied()).unwrap_or(turns as u32);
        turns += usize::from(attempt.purpose != Some(AttemptPurpose::WarmUp));
        (!is_imported(cell)).then_some(SampleTime { turn, start: attempt.start_seconds })
    };
    cell.attempts.iter().map(&mut time).collect()
}

fn is_imported(cell: &BorrowedCell<'_>) -> bool {
    cell.provenance.contains_key(IMPORTED_FROM)
}

fn add_cell(
    parsed: &mut ParsedResult,
    cell: &BorrowedCell<'_>,
    version: Option<u32>,
    options: &ReadOptions,
    rounds: &Rounds,
) {
    let case = cell.id.split_once(':').map_or("", |(_, case)| case);
    let case = parsed.names.intern(case);
    parsed.errors.extend(error(cell).map(|text| (case, text)));
    parsed.sample_counts = [parsed.sample_counts, sample_counts(cell)].into_iter().flatten().reduce(std::ops::Add::add);
    let params: Vec<_> = cell
        .params
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_string()))
        .chain([(DEFINITION_KEY, cell.key.to_string())])
        .chain((!options.allow_emulated && is_emulated(cell)).then(|| (EMULATED, true.to_string())))
        .chain(cell.exit_status.map(|status| (EXIT_STATUS, status.to_string())))
        .map(|(name, value)| (parsed.names.intern(name), parsed.names.intern(&value)))
        .collect();
    if let Some(format) = cell.provenance.get(IMPORTED_FROM) {
        let (format, params) = (parsed.names.intern(format), parsed.intern_params(params.clone()));
        parsed.imported.push(ImportedCell { case, format, version, params });
    }
    let findings = (!cell.findings.is_empty()).then(|| parsed.names.intern(&cell.findings.join("\n")));
    let [unit_name, direction_name] = [METRIC_UNIT, METRIC_DIRECTION].map(|name| parsed.names.intern(name));
    let times = times(cell, rounds.get(cell.id.as_ref()));
    add_programs(parsed, case, &cell.provenance);
    for BorrowedMetricResult { metric, worker, threshold, summary } in &cell.metrics {
        let BorrowedMetric { name, class, unit, direction, primary } = metric;
        let key = MetricKey { class: *class, name: name.to_string(), worker: worker.clone() };
        let (full_name, key) = (key.full_name(), key.to_string());
        let (unit, direction_value) = (parsed.names.intern(unit), parsed.names.intern(direction.as_str()));
        let of_metric = [(unit_name, unit), (direction_name, direction_value)];
        let params = parsed.intern_params(params.iter().copied().chain(of_metric).collect());
        let first = parsed.samples.len();
        let counted = || cell.attempts.iter().filter(|sample| sample.counted);
        let counted_value =
            |sample: &BorrowedAttempt<'_>| sample.values.get(key.as_str()).copied().filter(|_| sample.counted);
        parsed.samples.extend(cell.attempts.iter().filter_map(counted_value));
        if options.schedule {
            let timed = cell.attempts.iter().zip(&times);
            parsed.times.extend(timed.filter_map(|(sample, time)| counted_value(sample).and(Some(*time))));
        }
        parsed.samples.extend(cell.series.iter().flat_map(|series| series.counted_values(&key)));
        if options.schedule {
            parsed.times.resize(parsed.samples.len(), None);
        }
        let disturbed =
            counted().filter(|sample| !sample.disturbances.is_empty() && sample.values.contains_key(key.as_str()));
        let valid = |value: Option<f64>| value.map_or(MeasuredValue::Invalid, MeasuredValue::from);
        let metric = ParsedMetric {
            case,
            class: *class,
            metric: parsed.names.intern(&full_name),
            unit: Some(unit),
            mean: valid(summary.as_ref().map(|summary| summary.mean)),
            // Undefined for a single sample, or a mean of zero.
            stddev_percent: summary
                .as_ref()
                .and_then(|summary| summary.stddev_percent)
                .map_or(MeasuredValue::Missing, MeasuredValue::from),
            primary: *primary,
            threshold: *threshold,
            params,
            disturbed: disturbed.count() as u32,
            failures: AttemptCounts { failed: cell.failures.failed, attempts: cell.failures.attempts },
            findings: findings.filter(|_| *primary),
            samples: first..parsed.samples.len(),
        };
        parsed.directions.push((*class, metric.metric, *direction));
        parsed.metrics.push(metric);
    }
}

/// Provenance that differs between all runs, such as the calibrated amount of work, or that is also part of the
/// metadata or the environment.
const IGNORED_PROVENANCE: [&str; 7] = ["boot", "host", "kernel", "iterations", "passes", "requests", "solutions"];

/// Adds with which programs a case was measured: all provenance but [`IGNORED_PROVENANCE`].
fn add_programs(parsed: &mut ParsedResult, case: Symbol, provenance: &BTreeMap<Cow<'_, str>, Cow<'_, str>>) {
    let entries = provenance.iter().filter(|(name, _)| !IGNORED_PROVENANCE.contains(&strip_worker(name)));
    let programs: Vec<_> =
        entries.map(|(name, value)| (parsed.names.intern(name), parsed.names.intern(value))).collect();
    parsed.programs.push((case, programs));
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"cells": [{
        "id": "Localhost/himeno/0000:grid=XS,threads=1", "key": "7a9f", "summary": "s", "params": {"grid": "XS", "threads": 1},
        "outcome": {"outcome": "partial", "valid": 2, "required": 6},
        "metrics": [
            {"metric": {"name": "throughput", "class": "throughput", "unit": "mflops", "direction": "higher", "primary": true},
             "worker": null, "summary": {"mean": 3.5, "stddev_percent": 7.0}},
            {"metric": {"name": "cpu", "class": "resource", "unit": "s", "direction": "lower", "primary": false},
             "worker": "vm1", "summary": null}],
        "attempts": [
            {"counted": false, "values": {"throughput/throughput": 9.0}},
            {"counted": true, "disturbances": ["steal 5 %"], "values": {"throughput/throughput": 3.0, "resource/cpu@vm1": 0.5}},
            {"counted": true, "values": {"throughput/throughput": 4.0}}]
    }]}"#;

    #[test]
    fn counted_samples_are_read_by_metric_and_worker() {
        let parsed = parse(RESULT, &ReadOptions::default(), |_| BTreeMap::new(), &Rounds::new()).unwrap();
        let [first, second] = &parsed.metrics[..] else { panic!("two metrics") };
        assert_eq!(
            (first.mean, first.stddev_percent, first.primary),
            (MeasuredValue::Known(3.5), MeasuredValue::Known(7.0), true)
        );
        assert_eq!((&parsed.samples[first.samples.clone()], first.disturbed), (&[3.0, 4.0][..], 1));
        assert_eq!(first.unit.map(|unit| parsed.names.resolve(unit)), Some("mflops"));
        assert_eq!((parsed.names.resolve(second.metric), second.mean), ("cpu@vm1", MeasuredValue::Invalid));
        assert_eq!(&parsed.samples[second.samples.clone()], [0.5]);
        assert_eq!(parsed.names.resolve(first.case), "grid=XS,threads=1");
        assert_eq!(parsed.params[first.params].len(), 5, "two of the test, the key, the unit and the direction");
        assert_eq!(parsed.sample_counts, Some(SampleCounts { counted: 2, disturbed: 1 }));
        assert!(parsed.errors.is_empty());
    }

    #[test]
    fn times_are_those_of_the_counted_samples() {
        let timed = RESULT.replace(
            r#"{"counted": true, "values""#,
            r#"{"sample": 1, "start_seconds": 2.5, "counted": true, "values""#,
        );
        let options = ReadOptions { schedule: true, ..ReadOptions::default() };
        let parsed = parse(&timed, &options, |_| BTreeMap::new(), &Rounds::new()).unwrap();
        assert_eq!(parsed.times.len(), parsed.samples.len());
        assert_eq!(parsed.times[parsed.metrics[0].samples.clone()][1], Some(SampleTime { turn: 2, start: 2.5 }));
        let rounds = Rounds::from([("Localhost/himeno/0000:grid=XS,threads=1".to_owned(), vec![0, 1, 7])]);
        let resumed = parse(&timed, &options, |_| BTreeMap::new(), &rounds).unwrap();
        assert_eq!(resumed.times[resumed.metrics[0].samples.clone()][1], Some(SampleTime { turn: 7, start: 2.5 }));
        let imported = timed.replace(r#""metrics""#, r#""provenance": {"imported from": "fio"}, "metrics""#);
        assert_eq!(parse(&imported, &options, |_| BTreeMap::new(), &Rounds::new()).unwrap().times, [None; 3]);
    }

    #[test]
    fn a_cell_without_a_value_is_an_error_with_its_reason() {
        let error = |outcome: &str| {
            let text = RESULT.replace(r#"{"outcome": "partial", "valid": 2, "required": 6}"#, outcome);
            let parsed = parse(&text, &ReadOptions::default(), |_| BTreeMap::new(), &Rounds::new()).unwrap();
            parsed.errors.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        let failed = r#"{"outcome": "failed", "reason": "crashed (fio: exit status 7)"}"#;
        assert_eq!(error(failed), ["crashed (fio: exit status 7)"]);
        let unsupported = r#"{"outcome": "unsupported", "reason": "no SCTP"}"#;
        assert_eq!(error(unsupported), ["unsupported: no SCTP"]);
        assert_eq!(error(r#"{"outcome": "partial", "valid": 0, "required": 6}"#), ["0 of 6 samples"]);
        assert_eq!(error(r#"{"outcome": "measured"}"#), [""; 0]);
        let crashed = r#"{"outcome": "partial", "valid": 2, "required": 6},
            "failures": {"failed": 1, "attempts": 3, "cause": "crashed"}"#;
        assert_eq!(error(crashed), ["2 of 6 samples; 1 of 3 attempts failed: crashed"]);
    }

    #[test]
    fn a_cell_with_too_few_samples_is_an_error_unless_it_was_interrupted() {
        let invalid = r#"{"purpose": "sample", "counted": false, "values": {},
            "validity": {"validity": "invalid", "gate": "answer", "figures": "residual 7"}}"#;
        let interrupted = RESULT.replace(r#""attempts": ["#, &format!(r#""attempts": [{invalid},"#));
        let errors =
            |text: &str| parse(text, &ReadOptions::default(), |_| BTreeMap::new(), &Rounds::new()).unwrap().errors;
        assert!(errors(&interrupted).is_empty());
        let given_up =
            interrupted.replace(r#""outcome": {"#, r#""ended_by": "its sample limit is reached", "outcome": {"#);
        let [(_, text)] = &errors(&given_up)[..] else { panic!("one error") };
        assert_eq!(text, "2 of 6 samples; 1 of 1 attempt without valid values: invalid (answer: residual 7)");
        let imported = given_up.replace(r#""metrics""#, r#""provenance": {"imported from": "fio"}, "metrics""#);
        assert_eq!(errors(&imported), errors(&given_up));
        let columns = RESULT
            .replace(r#""metrics": ["#, r#""ended_by": "end of the imported files", "series": [SERIES], "metrics": ["#)
            .replace(
                "SERIES",
                r#"{"count": 9, "counted": true, "values": {}, "excluded": [{"position": 4,
                    "validity": {"validity": "invalid", "gate": "answer", "figures": "residual 7"}}]}"#,
            );
        let [(_, text)] = &errors(&columns)[..] else { panic!("one error") };
        assert_eq!(text, "2 of 6 samples; 1 of 9 attempts without valid values: invalid (answer: residual 7)");
        let [(_, text)] = &errors(&given_up.replace(invalid, r#"{"counted": false, "values": {}}"#))[..] else {
            panic!("one error")
        };
        assert_eq!(text, "2 of 6 samples");
    }

    #[test]
    fn imported_samples_have_no_record_of_disturbances_unless_any_has_one() {
        let counts = |text: &str| {
            parse(text, &ReadOptions::default(), |_| BTreeMap::new(), &Rounds::new()).unwrap().sample_counts
        };
        let imported = RESULT.replace(r#""metrics""#, r#""provenance": {"imported from": "fio"}, "metrics""#);
        assert_eq!(counts(&imported), Some(SampleCounts { counted: 2, disturbed: 1 }));
        assert_eq!(counts(&imported.replace(r#"["steal 5 %"]"#, "[]")), None);
    }
}
