//! What a sample of a definition came to: its figures, whether its time followed its work, and its checks.

use std::collections::BTreeMap;

use wb_model::{Gate, Nanos, Params, Value};

use super::definition::{self, Definition, SameOutput};
use super::left::{CIRCUMSTANCES, Circumstances, Effort, Left, PROBE, Place, RUN};
use super::reading::Reading;
use super::template::{Bindings, Builtin};
use crate::external::{self, Said};
use crate::{Artefacts, BUILT, DEFINITION_FILE, DEFINITION_SHA256, Measured, Rejected};

/// Of the part of the work that a probe left out, at least this part of the time has to be more.
const FOLLOWS: f64 = 1.0 / 16.0;
/// CPU time, in seconds, that starting a process does not differ by.
const TELLING: f64 = 0.01;
/// A command may end this much earlier than it was told to.
const EARLY: f64 = 0.9;

impl Definition {
    /// Reads the values out of a sample's artefacts.
    pub(super) fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measured, Rejected> {
        let circumstances: Circumstances = artefacts.json(CIRCUMSTANCES)?;
        let work = match circumstances.effort {
            Effort::Work { work, .. } => Some(work),
            _ => None,
        };
        let left = Left { artefacts, work };
        let mut measured = Measured::default();
        match &self.measured {
            definition::Measured::Command(_) => {
                self.figures(&mut measured, &left);
                effort(&mut measured, &circumstances.effort, &left)?;
                self.output(&mut measured, &left)?;
            }
            definition::Measured::Runner(_) => {
                let said = external::said(&artefacts.text(&format!("{RUN}.stdout"))?)
                    .map_err(|error| Rejected::output(error.to_string()))?;
                self.said(&mut measured, &said);
            }
        }
        let mut builtins = BTreeMap::new();
        match circumstances.effort {
            Effort::Work { work, .. } => {
                builtins.insert(Builtin::Work, Value::Text(work.to_string()));
            }
            Effort::Time { seconds } => {
                builtins.insert(Builtin::Seconds, Value::Text(Nanos::from_seconds(seconds).to_string()));
            }
            Effort::Fixed | Effort::Runner => {}
        }
        let bindings = Bindings { params, builtins };
        for check in &self.checks {
            check.apply(&mut measured, &left, &bindings);
        }
        measured.explain(DEFINITION_SHA256, circumstances.definition);
        for (path, sha256) in circumstances.files {
            measured.explain(&format!("{DEFINITION_FILE}{path} sha256"), sha256);
        }
        for (program, sha256) in circumstances.built {
            measured.explain(&format!("{BUILT}{program} sha256"), sha256);
        }
        Ok(measured)
    }

    fn figures(&self, measured: &mut Measured, left: &Left<'_>) {
        for reading in &self.readings {
            let Some(source) = &reading.source else { continue };
            set(measured, reading, reading.value(source, left));
        }
    }

    /// Notes the output that has to be the same in every sample of the same work.
    fn output(&self, measured: &mut Measured, left: &Left<'_>) -> Result<(), Rejected> {
        let Some(same) = &self.same_output else { return Ok(()) };
        let output = match same {
            SameOutput::Whole => {
                let ran = left.ran(RUN)?;
                // Not known where it was not recorded.
                let Some(sha256) = ran.stdout_sha256 else { return Ok(()) };
                let bytes = ran.stdout_bytes.map(|bytes| format!("{bytes} B with ")).unwrap_or_default();
                format!("{bytes}SHA-256 {sha256}")
            }
            SameOutput::Matching(pattern) => {
                let text = left.text(&Place::Stdout).map_err(Rejected::output)?;
                let found = pattern.find(&text).ok_or_else(|| {
                    Rejected::output(format!("{} does not match `{pattern}` of same-output", Place::Stdout.word()))
                })?;
                format!("`{}`", found.as_str())
            }
        };
        let of_work = left.work.map(|work| format!(" of work {work}")).unwrap_or_default();
        measured.outputs.insert(format!("{}{of_work}", Place::Stdout.word()), output);
        Ok(())
    }

    /// The figures, checks and findings that a runner said.
    fn said(&self, measured: &mut Measured, said: &Said) {
        for metric in &said.metrics {
            let is_declared =
                |reading: &&Reading| reading.metric.class == metric.class && reading.metric.name == metric.name;
            if !self.readings.iter().any(|reading| is_declared(&reading)) {
                let what = format!("the runner measured {}/{}, which is not declared", metric.class, metric.name);
                measured.reject(Gate::Output, what);
            }
        }
        for reading in &self.readings {
            let same =
                |metric: &&external::Figure| metric.class == reading.metric.class && metric.name == reading.metric.name;
            let found: Result<Vec<f64>, String> =
                said.metrics.iter().filter(same).map(|metric| reading.in_unit(metric.value, &metric.unit)).collect();
            set(measured, reading, found.and_then(|found| reading.one_of(found)));
        }
        for check in &said.checks {
            measured.require(check.passed, check.gate, || format!("{}: {}", check.name, check.figures));
        }
        measured.findings.extend(said.findings.iter().cloned());
        match (said.work, said.probe) {
            (Some((work, Some(seconds))), Some((part, probe))) => follows(measured, (work, seconds), (part, probe)),
            _ => measured.findings.push(
                "whether its time follows its work is not known: the runner gives no probe to compare with".to_owned(),
            ),
        }
    }
}

fn set(measured: &mut Measured, reading: &Reading, value: Result<Option<f64>, String>) {
    match value {
        Ok(Some(value)) => measured.set(reading.metric.class, &reading.metric.name, value),
        Ok(None) => {}
        Err(why) => measured.reject(Gate::Output, format!("{}: {why}", reading.metric.name)),
    }
}

/// Did the run time depend on the work at all?
fn effort(measured: &mut Measured, effort: &Effort, left: &Left<'_>) -> Result<(), Rejected> {
    match effort {
        Effort::Work { work, probe: Some(part) } => {
            let (run, probe) = (left.ran(RUN)?, left.ran(PROBE)?);
            // A probe that was kept waiting by others took long; its CPU time tells.
            let (cpu, part_cpu) = (run.cpu_seconds(), probe.cpu_seconds());
            let computes = cpu >= part_cpu + TELLING && is_longer((*work, cpu), (*part, part_cpu));
            if !computes {
                follows(measured, (*work, run.elapsed), (*part, probe.elapsed));
            }
        }
        Effort::Work { work, probe: None } => measured.findings.push(format!(
            "a work of {work} already takes as long as asked: that more takes longer was seen in the calibration alone"
        )),
        Effort::Time { seconds } => {
            let took = left.ran(RUN)?.elapsed;
            measured.require(took >= EARLY * seconds, Gate::Effort, || {
                format!("it ended after {took:.3} s and was told to take {seconds} s")
            });
        }
        Effort::Fixed | Effort::Runner => measured.findings.push(
            "whether its time follows its work is not known: its command has neither a {work} nor a {seconds}"
                .to_owned(),
        ),
    }
    Ok(())
}

/// Rejects a sample whose time is not that of its work: a probe with a part of it has to be shorter. What a process
/// takes to start belongs to neither, and may be a large part of both.
fn follows(measured: &mut Measured, (work, seconds): (u64, f64), (part, probe): (u64, f64)) {
    if part == 0 || part >= work || probe <= 0.0 {
        measured.findings.push("whether its time follows its work is not known: the probe is no part of it".to_owned());
        return;
    }
    measured.require(is_longer((work, seconds), (part, probe)), Gate::Effort, || {
        format!("a work of {work} took {seconds:.4} s and one of {part} took {probe:.4} s")
    });
}

fn is_longer((work, seconds): (u64, f64), (part, probe): (u64, f64)) -> bool {
    let more = work as f64 / part as f64 - 1.0;
    seconds >= probe * (1.0 + more * FOLLOWS)
}
