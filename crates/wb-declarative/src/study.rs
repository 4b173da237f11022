//! Evaluation of a sample of a definition: metrics, checks, and whether the time depends on the work.

use std::collections::BTreeMap;

use wb_model::{Gate, Nanos, ParamValue, Params};
use wb_test::{Artefacts, BUILT_PREFIX, DEFINITION_FILE_PREFIX, DEFINITION_SHA256, Measurement, Rejection};

use super::definition::{self, Definition, SameOutput};
use super::effort::{follows_work, time_follows_work};
use super::metric::MetricDefinition;
use super::sample_output::{
    DurationSource, OutputSource, PROBE_NAME, PROVENANCE_FILE, RUN_NAME, SampleOutput, SampleProvenance,
};
use super::template::{Bindings, Builtin};
use crate::external::{self, RunnerMetric, RunnerReport};

/// Run time of a command relative to the requested time.
const MIN_TIMED_SHARE: f64 = 0.9;

impl Definition {
    pub(super) fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let provenance: SampleProvenance = artefacts.json(PROVENANCE_FILE)?;
        let work = match provenance.duration_source {
            DurationSource::Work { work, .. } => Some(work),
            _ => None,
        };
        let output = SampleOutput { artefacts, work };
        let mut measurement = Measurement::default();
        match &self.measured_program {
            definition::MeasuredProgram::Command(_) => {
                self.set_metrics(&mut measurement, &output);
                check_effort(&mut measurement, &provenance.duration_source, &output)?;
                self.record_output(&mut measurement, &output)?;
            }
            definition::MeasuredProgram::Runner(_) => {
                let report = external::parse_output(&artefacts.text(&format!("{RUN_NAME}.stdout"))?)
                    .map_err(|error| Rejection::output(error.to_string()))?;
                self.apply_runner_report(&mut measurement, &report);
            }
        }
        let mut builtins = BTreeMap::new();
        match provenance.duration_source {
            DurationSource::Work { work, .. } => {
                builtins.insert(Builtin::Work, ParamValue::Text(work.to_string()));
            }
            DurationSource::Time { seconds } => {
                builtins.insert(Builtin::Seconds, ParamValue::Text(Nanos::from_seconds(seconds).to_string()));
            }
            DurationSource::Fixed | DurationSource::Runner => {}
        }
        let bindings = Bindings { params, builtins };
        for check in &self.checks {
            check.apply(&mut measurement, &output, &bindings);
        }
        measurement.add_provenance(DEFINITION_SHA256, provenance.definition);
        for (path, sha256) in provenance.files {
            measurement.add_provenance(&format!("{DEFINITION_FILE_PREFIX}{path} sha256"), sha256);
        }
        for (program, sha256) in provenance.built {
            measurement.add_provenance(&format!("{BUILT_PREFIX}{program} sha256"), sha256);
        }
        Ok(measurement)
    }

    fn set_metrics(&self, measurement: &mut Measurement, output: &SampleOutput<'_>) {
        for definition in &self.metrics {
            let Some(source) = &definition.source else { continue };
            set_metric(measurement, definition, definition.value(source, output));
        }
    }

    /// Records the output that has to be the same in every sample with the same work.
    fn record_output(&self, measurement: &mut Measurement, output: &SampleOutput<'_>) -> Result<(), Rejection> {
        let Some(same) = &self.same_output else { return Ok(()) };
        let value = match same {
            SameOutput::Whole => {
                let process = output.recorded_process(RUN_NAME)?;
                // Not recorded in older samples.
                let Some(sha256) = process.stdout_sha256 else { return Ok(()) };
                let bytes = process.stdout_bytes.map(|bytes| format!("{bytes} B with ")).unwrap_or_default();
                format!("{bytes}SHA-256 {sha256}")
            }
            SameOutput::Matching(pattern) => {
                let text = output.text(&OutputSource::Stdout).map_err(Rejection::output)?;
                let matched = pattern.find(&text).ok_or_else(|| {
                    Rejection::output(format!(
                        "{} does not match `{pattern}` of same-output",
                        OutputSource::Stdout.description()
                    ))
                })?;
                format!("`{}`", matched.as_str())
            }
        };
        let work_suffix = output.work.map(|work| format!(" of work {work}")).unwrap_or_default();
        measurement.outputs.insert(format!("{}{work_suffix}", OutputSource::Stdout.description()), value);
        Ok(())
    }

    fn apply_runner_report(&self, measurement: &mut Measurement, report: &RunnerReport) {
        for RunnerMetric { metric, .. } in &report.metrics {
            if self.metrics.iter().all(|definition| definition.metric.key() != *metric) {
                measurement.reject(Gate::Output, format!("the runner reported an undeclared metric {metric}"));
            }
        }
        for definition in &self.metrics {
            let key = definition.metric.key();
            let values: Result<Vec<f64>, String> = report
                .metrics
                .iter()
                .filter(|reported| reported.metric == key)
                .map(|reported| definition.convert(reported.value, &reported.unit))
                .collect();
            set_metric(measurement, definition, values.and_then(|values| definition.reduce(values)));
        }
        for check in &report.checks {
            measurement.require(check.passed, check.gate, || check.to_string());
        }
        measurement.findings.extend(report.findings.iter().cloned());
        if let Some((work, seconds)) = report.work {
            measurement.require(work > 0 && seconds.is_none_or(|seconds| seconds > 0.0), Gate::Effort, || {
                let seconds = seconds.map(|seconds| format!(" in {seconds} s")).unwrap_or_default();
                format!("the runner did no work: it reported an amount of {work}{seconds}")
            });
        }
        match (report.work, report.probe) {
            (Some((work, Some(seconds))), Some((part, probe))) => {
                check_time_follows_work(measurement, (work, seconds), (part, probe))
            }
            _ => measurement
                .findings
                .push("cannot verify that the run time depends on the work: the runner reported no probe".to_owned()),
        }
    }
}

fn set_metric(measurement: &mut Measurement, definition: &MetricDefinition, value: Result<Option<f64>, String>) {
    match value {
        Ok(Some(value)) => measurement.set(definition.metric.class, &definition.metric.name, value),
        Ok(None) => {}
        Err(reason) => measurement.reject(Gate::Output, format!("{}: {reason}", definition.metric.name)),
    }
}

fn check_effort(
    measurement: &mut Measurement,
    source: &DurationSource,
    output: &SampleOutput<'_>,
) -> Result<(), Rejection> {
    match source {
        DurationSource::Work { work, probe: Some(part) } => {
            let (run, probe) = (output.recorded_process(RUN_NAME)?, output.recorded_process(PROBE_NAME)?);
            if !follows_work((*work, run.time()), (*part, probe.time())) {
                check_time_follows_work(measurement, (*work, run.elapsed), (*part, probe.elapsed));
            }
        }
        DurationSource::Work { work, probe: None } => measurement.findings.push(format!(
            "the smallest work, {work}, already takes the minimum time: only the calibration verified that more work takes longer"
        )),
        DurationSource::Time { seconds } => {
            let elapsed = output.recorded_process(RUN_NAME)?.elapsed;
            measurement.require(elapsed >= MIN_TIMED_SHARE * seconds, Gate::Effort, || {
                format!("ended after {elapsed:.3} s, requested {seconds} s")
            });
        }
        DurationSource::Fixed | DurationSource::Runner => measurement.findings.push(
            "cannot verify that the run time depends on the work: the command has neither {work} nor {seconds}"
                .to_owned(),
        ),
    }
    Ok(())
}

/// Rejects a sample whose run time does not depend on its work: a probe with a part of the work has to be shorter.
fn check_time_follows_work(measurement: &mut Measurement, (work, seconds): (u64, f64), (part, probe): (u64, f64)) {
    if part == 0 || part >= work || probe <= 0.0 {
        measurement.findings.push(
            "cannot verify that the run time depends on the work: the probe did no smaller part of it".to_owned(),
        );
        return;
    }
    measurement.require(time_follows_work((work, seconds), (part, probe)), Gate::Effort, || {
        format!("run time does not grow with the work: {work} took {seconds:.4} s, {part} took {probe:.4} s")
    });
}
