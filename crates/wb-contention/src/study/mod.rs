//! From measurements and raw reports to results. Needs no live system.

mod error;
pub(crate) mod figures;

use std::path::{Path, PathBuf};

use wb_record::{RecordError, RunFolder};
use wb_results::contention::{Answer, BenchResult, Instance, ProtectionAnswer, ScenarioAnswer};

use crate::benches::{iocost_qos, protection, storage};
use crate::conditions::current_versions;
use crate::measurement::{Measurement, Period};
use crate::record::{self, EndedBench, SequenceHistory};
use crate::report::Reports;
use crate::solve;
use crate::spec::Properties;
use crate::stage::{StageKey, Work};

pub use error::StudyError;

#[derive(Debug, Clone)]
pub struct StudySource<'a> {
    pub(crate) history: &'a SequenceHistory,
    reports: PathBuf,
}

impl<'a> StudySource<'a> {
    pub fn of_run(run: &RunFolder, history: &'a SequenceHistory) -> Self {
        Self { history, reports: run.path().join(record::FOLDER) }
    }

    /// The same records, with reports from another folder of the same layout.
    pub fn with_reports(self, folder: &Path) -> Self {
        Self { reports: folder.to_owned(), ..self }
    }

    pub(crate) fn read(&self, stage: &StageKey, period: Period) -> Result<Reports, RecordError> {
        let Some(recorded) = self.history.stage(stage) else {
            return Ok(Reports { missing: period.seconds(), ..Reports::default() });
        };
        let start = &recorded.start;
        record::report_folder(&self.reports, &start.instance, stage, start.reports).read(period)
    }

    pub(crate) fn measurement(&self, stage: &StageKey) -> Option<&'a Measurement> {
        self.history.measurement(stage)
    }

    pub(crate) fn work(&self, stage: &StageKey) -> Option<&'a Work> {
        Some(&self.history.stage(stage)?.start.definition.work)
    }
}

/// Studies a bench that has ended. `results` are those of the benches before it. Fails if its records are incomplete,
/// or no report of a stage is there.
pub fn study(source: &StudySource<'_>, end: &EndedBench, results: &[BenchResult]) -> Result<BenchResult, StudyError> {
    // What follows from another result describes the machine that was measured for it.
    let mut system = &end.system;
    let answer = match &end.spec.properties {
        Properties::IocostParams(_) | Properties::HashdParams(_) | Properties::Storage(_) => {
            single(source, &end.instance, end.stages.first())?
        }
        Properties::Protection(_) => Answer::Protection(scenarios(source, end)?),
        Properties::IocostQos(properties) => Answer::IocostQos(iocost_qos::study::study(source, end, properties)?),
        Properties::IocostTune(properties) => {
            let qos =
                qos_result(results, &end.instance).ok_or_else(|| StudyError::no_result(&end.instance, "iocost-qos"))?;
            system = &qos.system;
            Answer::IocostTune(solve::tune(qos, properties)?)
        }
    };
    Ok(BenchResult {
        instance: end.instance.clone(),
        spec: end.spec.to_text(),
        system: system.clone(),
        versions: current_versions(end.instance.bench),
        answer,
    })
}

/// The `iocost-qos` that a tuning follows from: that of the same id, or else the last.
pub(crate) fn qos_result<'a>(results: &'a [BenchResult], tune: &Instance) -> Option<&'a BenchResult> {
    let all = || results.iter().filter(|result| matches!(result.answer, Answer::IocostQos(_)));
    let same_id = all().find(|result| tune.id().is_some() && result.instance.id() == tune.id());
    same_id.or_else(|| all().next_back())
}

/// The answer of a bench that is a single stage.
fn single(source: &StudySource<'_>, instance: &Instance, stage: Option<&StageKey>) -> Result<Answer, StudyError> {
    let stage = stage.ok_or_else(|| StudyError::no_result(instance, "a stage"))?;
    match source.measurement(stage) {
        Some(Measurement::IocostParams(parameters)) => Ok(Answer::IocostParams(*parameters)),
        Some(Measurement::HashdParams(parameters)) => Ok(Answer::HashdParams(*parameters)),
        Some(Measurement::Storage(measurement)) => {
            Ok(Answer::Storage(storage::study::study(source, stage, measurement)?))
        }
        _ => Err(StudyError::no_result(instance, "its stage")),
    }
}

fn scenarios(source: &StudySource<'_>, end: &EndedBench) -> Result<ProtectionAnswer, StudyError> {
    let mut scenarios = Vec::new();
    let mut hogs = Vec::new();
    for stage in &end.stages {
        match (source.work(stage), source.measurement(stage)) {
            (Some(Work::MemHog(properties)), Some(Measurement::MemHog(measurement))) => {
                scenarios.push(protection::study::mem_hog(source, stage, *properties, measurement)?);
                hogs.push((stage, measurement));
            }
            (Some(Work::MemHogTune(properties)), Some(Measurement::MemHogTune(measurement))) => {
                let answer = protection::study::mem_hog_tune(source, stage, properties, measurement)?;
                scenarios.push(ScenarioAnswer::MemHogTune(answer));
            }
            _ => return Err(StudyError::no_result(&end.instance, "a scenario")),
        }
    }
    let combined = if hogs.len() > 1 { Some(protection::study::combined(source, &hogs)?) } else { None };
    Ok(ProtectionAnswer { scenarios, combined })
}
