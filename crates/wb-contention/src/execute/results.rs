//! The results of a run: read, studied again from raw reports, and solved again from themselves.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use wb_record::{RecordError, RunFolder};
use wb_results::contention::{Answer, BenchResult, Instance, TuneAnswer};

use super::SequenceError;
use super::executor::write_result;
use crate::record::{SequenceHistory, read_history, result_path};
use crate::solve;
use crate::spec::{BenchSpec, IocostTuneProperties, Properties, SelectedBench};
use crate::study::{StudySource, qos_result, study};

#[derive(Debug, Clone, Copy, Default)]
pub struct StudyRequest<'a> {
    /// `None`: all.
    pub benches: Option<&'a [SelectedBench]>,
    /// The folder of the raw reports; `None`: that of the run.
    pub reports: Option<&'a Path>,
}

impl StudyRequest<'_> {
    fn includes(&self, instance: &Instance) -> bool {
        self.benches.is_none_or(|benches| benches.iter().any(|bench| bench.includes(instance)))
    }
}

/// The result files of a run, in the order in which their benches ended.
pub fn result_files(run: &RunFolder) -> Result<Vec<(Instance, PathBuf)>, RecordError> {
    let history = read_history(run)?;
    Ok(history.instances().into_iter().map(|instance| (instance.clone(), result_path(run, instance))).collect())
}

/// Reads the results of a run, in the order in which their benches ended. Fails if one is missing or damaged.
pub fn read_results(run: &RunFolder, history: &SequenceHistory) -> Result<Vec<BenchResult>, SequenceError> {
    let read = |instance: &Instance| {
        let path = result_path(run, instance);
        read_result(run, &path)?.ok_or(SequenceError::MissingResult { path })
    };
    history.instances().into_iter().map(read).collect()
}

/// The specifications of a result, which has them as text. They are parsed where they are read: one that is damaged is an
/// error of its line.
#[derive(Deserialize)]
struct ResultSpecs {
    spec: BenchSpec,
    answer: AnswerSpecs,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct AnswerSpecs {
    qos_spec: Option<BenchSpec>,
}

/// Reads a result; `None` if there is none. Its specifications are as this version writes them, so that equal ones have
/// equal texts.
pub(super) fn read_result(run: &RunFolder, path: &Path) -> Result<Option<BenchResult>, RecordError> {
    let Some(mut result) = run.read_json::<BenchResult>(path)? else { return Ok(None) };
    let Some(ResultSpecs { spec, answer: AnswerSpecs { qos_spec } }) = run.read_json(path)? else { return Ok(None) };
    result.spec = spec.to_text();
    if let (Answer::IocostTune(answer), Some(qos_spec)) = (&mut result.answer, qos_spec) {
        answer.qos_spec = qos_spec.to_text();
    }
    Ok(Some(result))
}

/// Derives results again from measurements and raw reports, and writes them. Others stay.
pub fn study_results(run: &RunFolder, request: &StudyRequest<'_>) -> Result<Vec<BenchResult>, SequenceError> {
    let history = read_history(run)?;
    let mut source = StudySource::of_run(run, &history);
    if let Some(reports) = request.reports {
        source = source.with_reports(reports);
    }
    let mut results: Vec<BenchResult> = Vec::new();
    for instance in history.instances() {
        let Some(end) = history.ended(instance) else { continue };
        if request.includes(instance) && !end.is_merged {
            let result = study(&source, end, &results)?;
            write_result(run, &result)?;
            results.push(result);
        } else {
            results.extend(read_result(run, &result_path(run, instance))?);
        }
    }
    Ok(results.into_iter().filter(|result| request.includes(&result.instance)).collect())
}

/// Solves results again from themselves, with the properties given for their benches, and writes them. Fails if one has
/// no values of what a solution requires.
pub fn solve_results(run: &RunFolder, specs: &[SelectedBench]) -> Result<Vec<BenchResult>, SequenceError> {
    let history = read_history(run)?;
    let results = read_results(run, &history)?;
    let mut solved = Vec::new();
    for mut result in results.iter().cloned() {
        let selected = specs.iter().find(|selected| selected.includes(&result.instance));
        if !specs.is_empty() && selected.is_none() {
            continue;
        }
        let Answer::IocostTune(answer) = result.answer else { continue };
        let Ok(mut spec) = BenchSpec::parse(result.spec.as_str()) else { continue };
        let Properties::IocostTune(own) = &spec.properties else { continue };
        let given = selected.and_then(|selected| match &selected.spec.properties {
            Properties::IocostTune(properties) if *properties != Default::default() => Some(properties.clone()),
            _ => None,
        });
        let properties = given.unwrap_or_else(|| own.clone());
        let answer = complete(answer, &properties, &result.instance, &results)?;
        result.answer = Answer::IocostTune(solve::solve(answer, &properties));
        spec.properties = Properties::IocostTune(properties);
        result.spec = spec.to_text();
        write_result(run, &result)?;
        solved.push(result);
    }
    Ok(solved)
}

/// Adds the series that properties require and the answer lacks, from the result on which the answer is based, if the
/// run has it.
fn complete(
    mut answer: TuneAnswer,
    properties: &IocostTuneProperties,
    instance: &Instance,
    results: &[BenchResult],
) -> Result<TuneAnswer, SequenceError> {
    let mut missing = solve::required_series(properties);
    missing.retain(|series| !answer.series.contains_key(series));
    if missing.is_empty() {
        return Ok(answer);
    }
    match qos_result(results, instance).filter(|qos| qos.spec == answer.qos_spec) {
        Some(BenchResult { answer: Answer::IocostQos(qos), .. }) if qos.base == answer.base => {
            answer.series.extend(missing.into_iter().map(|series| (series, solve::values(qos, series))));
            Ok(answer)
        }
        _ => Err(SequenceError::MissingSeries { instance: instance.clone(), series: missing }),
    }
}
