//! Evaluation of a sample of a definition: metrics, checks, and whether the time depends on the work.

use std::collections::BTreeMap;

use wb_model::{Gate, Nanos, ParamValue, Params};

use super::definition::{self, Definition, SameOutput};
use super::metric::MetricDefinition;
use super::sample_output::{
    DurationSource, OutputSource, PROBE_NAME, PROVENANCE_FILE, RUN_NAME, SampleOutput, SampleProvenance,
};
use super::template::{Bindings, Builtin};
use crate::external::{self, RunnerReport};
use crate::{Artefacts, BUILT_PREFIX, DEFINITION_FILE_PREFIX, DEFINITION_SHA256, Measurement, Rejection};

/// Of the part of the work that a probe left out, at least this part of the time has to be more.
const MIN_TIME_SHARE: f64 = 1.0 / 16.0;
/// CPU time, in seconds, that starting a process does not differ by.
const MIN_CPU_DIFFERENCE: f64 = 0.01;
/// A command may end this much earlier than it was told to.
const MIN_TIMED_SHARE: f64 = 0.9;

impl Definition {
    /// Reads the values out of a sample's artefacts.
    pub(super) fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        let circumstances: SampleProvenance = artefacts.json(PROVENANCE_FILE)?;
        let work = match circumstances.duration_source {
            DurationSource::Work { work, .. } => Some(work),
            _ => None,
        };
        let left = SampleOutput { artefacts, work };
        let mut measured = Measurement::default();
        match &self.measured_program {
            definition::MeasuredProgram::Command(_) => {
                self.set_metrics(&mut measured, &left);
                check_effort(&mut measured, &circumstances.duration_source, &left)?;
                self.record_output(&mut measured, &left)?;
            }
            definition::MeasuredProgram::Runner(_) => {
                let said = external::parse_output(&artefacts.text(&format!("{RUN_NAME}.stdout"))?)
                    .map_err(|error| Rejection::output(error.to_string()))?;
                self.apply_runner_report(&mut measured, &said);
            }
        }
        let mut builtins = BTreeMap::new();
        match circumstances.duration_source {
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
            check.apply(&mut measured, &left, &bindings);
        }
        measured.add_provenance(DEFINITION_SHA256, circumstances.definition);
        for (path, sha256) in circumstances.files {
            measured.add_provenance(&format!("{DEFINITION_FILE_PREFIX}{path} sha256"), sha256);
        }
        for (program, sha256) in circumstances.built {
            measured.add_provenance(&format!("{BUILT_PREFIX}{program} sha256"), sha256);
        }
        Ok(measured)
    }

    fn set_metrics(&self, measured: &mut Measurement, left: &SampleOutput<'_>) {
        for reading in &self.metrics {
            let Some(source) = &reading.source else { continue };
            set_metric(measured, reading, reading.value(source, left));
        }
    }

    /// Notes the output that has to be the same in every sample of the same work.
    fn record_output(&self, measured: &mut Measurement, left: &SampleOutput<'_>) -> Result<(), Rejection> {
        let Some(same) = &self.same_output else { return Ok(()) };
        let output = match same {
            SameOutput::Whole => {
                let ran = left.recorded_process(RUN_NAME)?;
                // Not known where it was not recorded.
                let Some(sha256) = ran.stdout_sha256 else { return Ok(()) };
                let bytes = ran.stdout_bytes.map(|bytes| format!("{bytes} B with ")).unwrap_or_default();
                format!("{bytes}SHA-256 {sha256}")
            }
            SameOutput::Matching(pattern) => {
                let text = left.text(&OutputSource::Stdout).map_err(Rejection::output)?;
                let found = pattern.find(&text).ok_or_else(|| {
                    Rejection::output(format!(
                        "{} does not match `{pattern}` of same-output",
                        OutputSource::Stdout.description()
                    ))
                })?;
                format!("`{}`", found.as_str())
            }
        };
        let of_work = left.work.map(|work| format!(" of work {work}")).unwrap_or_default();
        measured.outputs.insert(format!("{}{of_work}", OutputSource::Stdout.description()), output);
        Ok(())
    }

    /// The figures, checks and findings that a runner said.
    fn apply_runner_report(&self, measured: &mut Measurement, said: &RunnerReport) {
        for metric in &said.metrics {
            let is_declared = |reading: &&MetricDefinition| {
                reading.metric.class == metric.class && reading.metric.name == metric.name
            };
            if !self.metrics.iter().any(|reading| is_declared(&reading)) {
                let what = format!("the runner measured {}/{}, which is not declared", metric.class, metric.name);
                measured.reject(Gate::Output, what);
            }
        }
        for reading in &self.metrics {
            let same = |metric: &&external::RunnerMetric| {
                metric.class == reading.metric.class && metric.name == reading.metric.name
            };
            let found: Result<Vec<f64>, String> =
                said.metrics.iter().filter(same).map(|metric| reading.convert(metric.value, &metric.unit)).collect();
            set_metric(measured, reading, found.and_then(|found| reading.reduce(found)));
        }
        for check in &said.checks {
            measured.require(check.passed, check.gate, || format!("{}: {}", check.name, check.figures));
        }
        measured.findings.extend(said.findings.iter().cloned());
        match (said.work, said.probe) {
            (Some((work, Some(seconds))), Some((part, probe))) => {
                check_time_follows_work(measured, (work, seconds), (part, probe))
            }
            _ => measured.findings.push(
                "whether its time follows its work is not known: the runner gives no probe to compare with".to_owned(),
            ),
        }
    }
}

fn set_metric(measured: &mut Measurement, reading: &MetricDefinition, value: Result<Option<f64>, String>) {
    match value {
        Ok(Some(value)) => measured.set(reading.metric.class, &reading.metric.name, value),
        Ok(None) => {}
        Err(why) => measured.reject(Gate::Output, format!("{}: {why}", reading.metric.name)),
    }
}

/// Did the run time depend on the work at all?
fn check_effort(measured: &mut Measurement, effort: &DurationSource, left: &SampleOutput<'_>) -> Result<(), Rejection> {
    match effort {
        DurationSource::Work { work, probe: Some(part) } => {
            let (run, probe) = (left.recorded_process(RUN_NAME)?, left.recorded_process(PROBE_NAME)?);
            // A probe that was kept waiting by others took long; its CPU time tells.
            let (cpu, part_cpu) = (run.cpu_seconds(), probe.cpu_seconds());
            let computes = cpu >= part_cpu + MIN_CPU_DIFFERENCE && time_follows_work((*work, cpu), (*part, part_cpu));
            if !computes {
                check_time_follows_work(measured, (*work, run.elapsed), (*part, probe.elapsed));
            }
        }
        DurationSource::Work { work, probe: None } => measured.findings.push(format!(
            "a work of {work} already takes as long as asked: that more takes longer was seen in the calibration alone"
        )),
        DurationSource::Time { seconds } => {
            let took = left.recorded_process(RUN_NAME)?.elapsed;
            measured.require(took >= MIN_TIMED_SHARE * seconds, Gate::Effort, || {
                format!("it ended after {took:.3} s and was told to take {seconds} s")
            });
        }
        DurationSource::Fixed | DurationSource::Runner => measured.findings.push(
            "whether its time follows its work is not known: its command has neither a {work} nor a {seconds}"
                .to_owned(),
        ),
    }
    Ok(())
}

/// Rejects a sample whose time is not that of its work: a probe with a part of it has to be shorter. What a process
/// takes to start belongs to neither, and may be a large part of both.
fn check_time_follows_work(measured: &mut Measurement, (work, seconds): (u64, f64), (part, probe): (u64, f64)) {
    if part == 0 || part >= work || probe <= 0.0 {
        measured.findings.push("whether its time follows its work is not known: the probe is no part of it".to_owned());
        return;
    }
    measured.require(time_follows_work((work, seconds), (part, probe)), Gate::Effort, || {
        format!("a work of {work} took {seconds:.4} s and one of {part} took {probe:.4} s")
    });
}

fn time_follows_work((work, seconds): (u64, f64), (part, probe): (u64, f64)) -> bool {
    let more = work as f64 / part as f64 - 1.0;
    seconds >= probe * (1.0 + more * MIN_TIME_SHARE)
}
