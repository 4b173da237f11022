//! Merging: results of several runs as one, with all their values, solved again.
//!
//! `iocost-tune` is the bench whose results can be merged: its solutions follow from values at many vrates, of which one
//! run has few. Results are merged whose bench, versions, memory profile, device model and `iocost-qos` are the same; of
//! the latter, the number of steps may differ.

mod model;
mod report;

use std::collections::BTreeMap;

use wb_record::{RecordError, RunFolder};

use crate::Bench;
use crate::answer::{Answer, BenchResult, TuneAnswer};
use crate::execute::write_result;
use crate::record::{EndedBench, SequenceEvent, SequenceJournal};
use crate::solve;
use crate::spec::{BenchSpec, IocostTuneProperties, Properties};
use crate::stage::{Instance, InstanceLabel};
use crate::system::Versions;

pub use report::{DroppedGroup, MergeReport, SourceReport};

/// A result to merge.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeSource {
    /// Its run, as the user names it.
    pub name: String,
    /// The result.
    pub result: BenchResult,
    /// When its bench started and ended.
    pub times: Option<(String, String)>,
}

/// Results that cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// None of a bench that can be merged.
    #[error("no result to merge: expected results of iocost-tune")]
    NoSource,
    /// All are rejected.
    #[error("no result to merge: {}", reasons.join("; "))]
    AllRejected {
        /// Why, each with its run.
        reasons: Vec<String>,
    },
    /// The same result twice: its values would count twice.
    #[error("{second} is a copy of {first}: name each run once")]
    Copy {
        /// The run that is named first.
        first: String,
        /// Its copy.
        second: String,
    },
    /// The target has such a result already.
    #[error("{instance} exists in this run: merge into a new folder")]
    Exists {
        /// The instance.
        instance: Instance,
    },
    /// Records cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A merged result, and what it was merged from.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The result.
    pub result: BenchResult,
    /// What happened to each source.
    pub report: MergeReport,
}

/// A source of a bench that can be merged.
#[derive(Debug)]
struct Candidate {
    source: MergeSource,
    answer: TuneAnswer,
}

/// Sources that can be merged with each other.
#[derive(Debug)]
struct SourceGroup {
    key: GroupKey,
    sources: Vec<Candidate>,
}

/// What has to be equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    id: Option<String>,
    /// `None`: they may differ.
    versions: Option<Versions>,
    mem_profile: Option<u32>,
    /// The scale of time of a trial, as text.
    time_scale: Option<String>,
    device: String,
    qos: String,
}

/// What may differ between results that are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeOptions {
    /// Merge results of different ids separately.
    pub by_id: bool,
    /// Merge results of different versions.
    pub ignore_versions: bool,
    /// Merge results with missed requirements.
    pub ignore_requirements: bool,
    /// Merge every group of results, not only the largest.
    pub multiple: bool,
}

/// Merges results. Of each bench, and with `by_id` of each id, the group with the most sources is merged; the others are
/// reported as dropped, or, with `multiple`, merged as well.
///
/// # Errors
/// If there is nothing to merge, or a result is there twice.
pub fn merge(sources: Vec<MergeSource>, options: MergeOptions) -> Result<Vec<Merged>, MergeError> {
    refuse_copies(&sources)?;
    let mut groups: BTreeMap<GroupKey, Vec<Candidate>> = BTreeMap::new();
    for source in sources {
        let Answer::IocostTune(answer) = &source.result.answer else { continue };
        let answer = answer.clone();
        groups.entry(group_key(&source.result, &answer, options)).or_default().push(Candidate { source, answer });
    }
    let mut by_target: BTreeMap<Option<String>, Vec<SourceGroup>> = BTreeMap::new();
    for (key, sources) in groups {
        by_target.entry(key.id.clone()).or_default().push(SourceGroup { key, sources });
    }
    if by_target.is_empty() {
        return Err(MergeError::NoSource);
    }
    let mut merged = Vec::new();
    for (id, mut groups) in by_target {
        // The largest first; of several equally large ones, the first.
        groups.sort_by_key(|group| std::cmp::Reverse(group.sources.len()));
        let (merging, others) = groups.split_at(if options.multiple { groups.len() } else { 1 });
        for (group, number) in merging.iter().zip(1..) {
            merged.push(merge_group(label(id.as_deref(), number), group, others, options)?);
        }
    }
    Ok(merged)
}

/// Measured values and the second in which a bench ended are never the same in two runs.
fn refuse_copies(sources: &[MergeSource]) -> Result<(), MergeError> {
    for (at, second) in sources.iter().enumerate() {
        let is_copy = |first: &&MergeSource| first.result == second.result && first.times == second.times;
        if let Some(first) = sources[..at].iter().find(is_copy) {
            return Err(MergeError::Copy { first: first.name.clone(), second: second.name.clone() });
        }
    }
    Ok(())
}

fn group_key(result: &BenchResult, answer: &TuneAnswer, options: MergeOptions) -> GroupKey {
    let mut qos = BenchSpec { id: None, ..answer.qos_spec.clone() };
    if let Properties::IocostQos(properties) = &mut qos.properties {
        properties.vrate_intvs = 0;
    }
    GroupKey {
        id: result.instance.id().filter(|_| options.by_id).map(str::to_owned),
        versions: (!options.ignore_versions).then(|| result.versions.clone()),
        mem_profile: answer.mem_profile,
        time_scale: result.system.time_scale.map(|scale| scale.factor().to_string()),
        device: result.system.device.model.clone(),
        qos: qos.to_string(),
    }
}

/// The label of the merged result of a group.
fn label(id: Option<&str>, number: u32) -> InstanceLabel {
    match (id, number) {
        (None, number) => InstanceLabel::Position(number),
        (Some(id), 1) => InstanceLabel::Id(id.to_owned()),
        (Some(id), number) => InstanceLabel::Id(format!("{id}-{number}")),
    }
}

fn merge_group(
    label: InstanceLabel,
    group: &SourceGroup,
    others: &[SourceGroup],
    options: MergeOptions,
) -> Result<Merged, MergeError> {
    let SourceGroup { key, sources } = group;
    let dropped = others.iter().map(|other| DroppedGroup {
        group: other.key.describe(),
        sources: other.sources.iter().map(|candidate| candidate.source.name.clone()).collect(),
    });
    let dropped = dropped.collect();
    let mut rejections =
        model::outliers(&sources.iter().map(|candidate| candidate.answer.base.model).collect::<Vec<_>>());
    for (Candidate { source, .. }, rejection) in sources.iter().zip(&mut rejections) {
        let missed = &source.result.system.missed_requirements;
        if !missed.is_empty() && !options.ignore_requirements {
            *rejection = Some(format!("missed requirements: {}", missed.join(", ")));
        }
    }
    let reports: Vec<SourceReport> = sources
        .iter()
        .zip(&rejections)
        .map(|(Candidate { source, .. }, rejection)| SourceReport {
            name: source.name.clone(),
            rejection: rejection.clone(),
        })
        .collect();
    let accepted: Vec<&Candidate> = sources
        .iter()
        .zip(&rejections)
        .filter(|(_, rejection)| rejection.is_none())
        .map(|(source, _)| source)
        .collect();
    let Some(result) = pooled(label, &accepted) else {
        let reason = |report: &SourceReport| Some(format!("{}: {}", report.name, report.rejection.as_ref()?));
        return Err(MergeError::AllRejected { reasons: reports.iter().filter_map(reason).collect() });
    };
    let times = accepted.iter().filter_map(|candidate| candidate.source.times.as_ref());
    let start = times.clone().map(|(start, _)| start).min().cloned().unwrap_or_default();
    let end = times.map(|(_, end)| end).max().cloned().unwrap_or_default();
    let report =
        MergeReport { instance: result.instance.clone(), group: key.describe(), sources: reports, dropped, start, end };
    Ok(Merged { result, report })
}

/// One result with the values of all; `None` without any.
fn pooled(label: InstanceLabel, accepted: &[&Candidate]) -> Option<BenchResult> {
    let (Candidate { source: first, answer }, others) = accepted.split_first()?;
    let mut pooled = answer.clone();
    for other in others {
        for (series, fitted) in &other.answer.series {
            match pooled.series.get_mut(series) {
                Some(own) => *own = own.pooled(fitted),
                None => drop(pooled.series.insert(*series, fitted.clone())),
            }
        }
    }
    let models: Vec<_> = accepted.iter().map(|candidate| candidate.answer.base.model).collect();
    pooled.base.model = model::median(&models);
    let properties = IocostTuneProperties::default();
    let id = match &label {
        InstanceLabel::Id(id) => Some(id.clone()),
        InstanceLabel::Position(_) => None,
    };
    let mut system = first.result.system.clone();
    system.iocost = Some(pooled.base);
    Some(BenchResult {
        instance: Instance { bench: Bench::IocostTune, label },
        spec: BenchSpec { id, ..BenchSpec::new(Bench::IocostTune) },
        system,
        versions: first.result.versions.clone(),
        answer: Answer::IocostTune(solve::solve(pooled, &properties)),
    })
}

impl GroupKey {
    /// What the results of the group have in common: a line each.
    fn describe(&self) -> Vec<String> {
        let profile = self.mem_profile.map_or("off".to_owned(), |profile| profile.to_string());
        let mut lines = vec![
            format!("version: {}", self.versions.as_ref().map_or("any".to_owned(), Versions::to_string)),
            format!("memory profile: {profile}"),
            format!("device: {}", self.device),
            format!("settings: {}", self.qos),
        ];
        lines.extend(self.time_scale.as_ref().map(|scale| format!("trial: durations times {scale}")));
        lines
    }
}

/// Writes merged results into a run folder that is open for writing.
///
/// # Errors
/// If the run has such a result already, or cannot be written.
pub fn write_merged(run: &RunFolder, merged: &[Merged]) -> Result<(), MergeError> {
    let mut journal = SequenceJournal::open(run)?;
    for Merged { result, .. } in merged {
        if journal.history().ended(&result.instance).is_some() {
            return Err(MergeError::Exists { instance: result.instance.clone() });
        }
    }
    for Merged { result, report } in merged {
        write_result(run, result)?;
        journal.write(SequenceEvent::Merged(Box::new(report.clone())))?;
        journal.write(SequenceEvent::BenchEnded(Box::new(EndedBench {
            instance: result.instance.clone(),
            spec: result.spec.clone(),
            system: result.system.clone(),
            stages: Vec::new(),
            shift: 0.0,
            is_merged: true,
        })))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
