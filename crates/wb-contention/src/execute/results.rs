//! The results of a run: read, studied again from raw reports, and solved again from themselves.

use std::path::{Path, PathBuf};

use wb_record::{RecordError, RunFolder};

use super::SequenceError;
use super::executor::write_result;
use crate::Bench;
use crate::answer::{Answer, BenchResult};
use crate::record::{SequenceHistory, read_history, result_path};
use crate::solve;
use crate::spec::{BenchSpec, Properties};
use crate::stage::Instance;
use crate::study::{StudySource, study};

/// What to study again.
#[derive(Debug, Clone, Copy, Default)]
pub struct StudyRequest<'a> {
    /// The benches; `None`: all.
    pub benches: Option<&'a [(Bench, Option<String>)]>,
    /// The folder of the raw reports; `None`: that of the run.
    pub reports: Option<&'a Path>,
}

impl StudyRequest<'_> {
    fn includes(&self, instance: &Instance) -> bool {
        self.benches.is_none_or(|benches| benches.iter().any(|(bench, id)| instance.is_selected(*bench, id.as_deref())))
    }
}

impl Instance {
    /// Whether a selection of a bench, or of one instance of it, includes this one.
    pub fn is_selected(&self, bench: Bench, id: Option<&str>) -> bool {
        self.bench == bench && id.is_none_or(|id| self.id() == Some(id))
    }
}

/// The result files of a run, in the order in which their benches ended.
///
/// # Errors
/// If the journal cannot be read.
pub fn result_files(run: &RunFolder) -> Result<Vec<(Instance, PathBuf)>, RecordError> {
    let history = read_history(run)?;
    Ok(history.instances().into_iter().map(|instance| (instance.clone(), result_path(run, instance))).collect())
}

/// Reads the results of a run, in the order in which their benches ended.
///
/// # Errors
/// If a file is missing, damaged or cannot be read.
pub fn read_results(run: &RunFolder, history: &SequenceHistory) -> Result<Vec<BenchResult>, SequenceError> {
    let read = |instance: &Instance| {
        let path = result_path(run, instance);
        run.read_json(&path)?.ok_or(SequenceError::MissingResult { path })
    };
    history.instances().into_iter().map(read).collect()
}

/// Derives results again from measurements and raw reports, and writes them. Others stay.
///
/// # Errors
/// If records or reports cannot be read, or are not there.
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
            results.extend(run.read_json::<BenchResult>(&result_path(run, instance))?);
        }
    }
    Ok(results.into_iter().filter(|result| request.includes(&result.instance)).collect())
}

/// Solves results again from themselves, with the properties given for their benches, and writes them.
///
/// # Errors
/// If a result cannot be read or written.
pub fn solve_results(run: &RunFolder, specs: &[BenchSpec]) -> Result<Vec<BenchResult>, SequenceError> {
    let history = read_history(run)?;
    let mut solved = Vec::new();
    for mut result in read_results(run, &history)? {
        let selected = specs.iter().find(|spec| result.instance.is_selected(spec.bench(), spec.id.as_deref()));
        if !specs.is_empty() && selected.is_none() {
            continue;
        }
        let Answer::IocostTune(answer) = result.answer else { continue };
        let Properties::IocostTune(own) = &result.spec.properties else { continue };
        let given = selected.and_then(|spec| match &spec.properties {
            Properties::IocostTune(properties) if *properties != Default::default() => Some(properties.clone()),
            _ => None,
        });
        let properties = given.unwrap_or_else(|| own.clone());
        result.answer = Answer::IocostTune(solve::solve(answer, &properties));
        result.spec.properties = Properties::IocostTune(properties);
        write_result(run, &result)?;
        solved.push(result);
    }
    Ok(solved)
}
