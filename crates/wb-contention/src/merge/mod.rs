//! Merging: results of several runs as one, with all their values, solved again.
//!
//! Only results of `iocost-tune` can be merged: its solutions follow from values at many vrates, and one run has values
//! at few of them. Results are merged if they have the same bench, versions, memory profile, device model with its
//! firmware, and `iocost-qos`, which may differ in its number of steps.

mod copies;
mod machines;
mod model;
mod report;

use std::collections::BTreeMap;

use wb_record::{RecordError, RunFolder};
use wb_results::contention::{
    Answer, Bench, BenchResult, Instance, InstanceLabel, SpecText, SystemInfo, TuneAnswer, Versions,
};

use crate::execute::write_result;
use crate::record::{EndedBench, SequenceEvent, SequenceJournal};
use crate::solve;
use crate::spec::{BenchSpec, IocostTuneProperties, Properties};

pub use report::{DroppedGroup, MergeReport, SourceReport};

#[derive(Debug, Clone, PartialEq)]
pub struct MergeSource {
    /// The run, as the user names it.
    pub name: String,
    pub result: BenchResult,
    /// Start and end of the bench.
    pub times: Option<(String, String)>,
}

impl MergeSource {
    pub fn is_mergeable(&self) -> bool {
        matches!(self.result.answer, Answer::IocostTune(_))
    }
}

/// What to merge: the results of all runs that the user names, and the runs that have none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MergeSources {
    pub results: Vec<MergeSource>,
    /// Runs without a result that can be merged, each with the reason.
    pub without_result: Vec<SourceReport>,
}

#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("no result to merge: expected results of iocost-tune{}", in_parentheses(reasons))]
    NoSource {
        /// Why each run has none.
        reasons: Vec<String>,
    },
    #[error("no result to merge: {}", reasons.join("; "))]
    AllRejected {
        /// Why, each with its run.
        reasons: Vec<String>,
    },
    /// The values of a copy would count twice.
    #[error("{second} is a copy of {first}: name each run once")]
    Copy { first: String, second: String },
    /// The values of the part would count twice.
    #[error("{part} is part of {whole}, which has all its values: name one of them")]
    Part {
        /// The run with all values.
        whole: String,
        /// The run with some of them.
        part: String,
    },
    #[error("{instance} exists in this run: merge into a new folder")]
    Exists { instance: Instance },
    #[error(transparent)]
    Record(#[from] RecordError),
}

fn in_parentheses(reasons: &[String]) -> String {
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

/// A merged result, and what it was merged from.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    pub result: BenchResult,
    pub report: MergeReport,
}

#[derive(Debug)]
struct Candidate {
    source: MergeSource,
    answer: TuneAnswer,
}

#[derive(Debug)]
struct SourceGroup {
    key: GroupKey,
    accepted: Vec<Candidate>,
    /// In the order in which the user names them.
    reports: Vec<SourceReport>,
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
    firmware: String,
    qos: String,
}

/// What may differ between results that are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeOptions {
    pub by_id: bool,
    pub ignore_versions: bool,
    pub ignore_requirements: bool,
    /// Merge every group of results, not only the largest.
    pub multiple: bool,
}

/// For each bench, and with `by_id` for each id, merges the group with the most sources; other groups are reported as
/// dropped or, with `multiple`, merged as well. Rejected sources do not count, and a group of them alone is always
/// dropped. Fails if there is nothing to merge, or a value is there twice.
pub fn merge(sources: MergeSources, options: MergeOptions) -> Result<Vec<Merged>, MergeError> {
    let mut groups: BTreeMap<GroupKey, Vec<Candidate>> = BTreeMap::new();
    for source in sources.results {
        let Answer::IocostTune(answer) = &source.result.answer else { continue };
        let answer = answer.clone();
        groups.entry(group_key(&source.result, &answer, options)).or_default().push(Candidate { source, answer });
    }
    if groups.is_empty() {
        return Err(MergeError::NoSource { reasons: reasons(&sources.without_result) });
    }
    copies::refuse(&groups.values().flatten().collect::<Vec<_>>())?;
    let mut by_target: BTreeMap<Option<String>, Vec<SourceGroup>> = BTreeMap::new();
    for (key, candidates) in groups {
        by_target.entry(key.id.clone()).or_default().push(judge(key, candidates, options));
    }
    let mut merged = Vec::new();
    for (id, mut groups) in by_target {
        // The largest first; of several equally large ones, the first.
        groups.sort_by_key(|group| std::cmp::Reverse(group.accepted.len()));
        let usable = groups.iter().take_while(|group| !group.accepted.is_empty()).count();
        let (merging, others) = groups.split_at(if options.multiple { usable } else { usable.min(1) });
        if merging.is_empty() {
            let rejected: Vec<_> = groups.iter().flat_map(|group| &group.reports).cloned().collect();
            return Err(MergeError::AllRejected { reasons: reasons(&rejected) });
        }
        for (group, number) in merging.iter().zip(1..) {
            merged.extend(merge_group(label(id.as_deref(), number), group, others));
        }
    }
    if let Some(first) = merged.first_mut() {
        first.report.sources.extend(sources.without_result);
    }
    Ok(merged)
}

fn reasons(reports: &[SourceReport]) -> Vec<String> {
    let reason = |report: &SourceReport| Some(format!("{}: {}", report.name, report.rejection.as_ref()?));
    reports.iter().filter_map(reason).collect()
}

/// Rejects sources with missed requirements, and those whose model is an outlier of all.
fn judge(key: GroupKey, candidates: Vec<Candidate>, options: MergeOptions) -> SourceGroup {
    let models: Vec<_> = candidates.iter().map(|candidate| candidate.answer.base.model).collect();
    let missed = |candidate: &Candidate| {
        let missed = &candidate.source.result.system.missed_requirements;
        let is_rejected = !missed.is_empty() && !options.ignore_requirements;
        is_rejected.then(|| format!("missed requirements: {}", missed.join(", ")))
    };
    let outliers = model::outliers(&models);
    let rejections: Vec<Option<String>> =
        candidates.iter().zip(outliers).map(|(candidate, outlier)| missed(candidate).or(outlier)).collect();
    let mut group = SourceGroup { key, accepted: Vec::new(), reports: Vec::new() };
    for (candidate, rejection) in candidates.into_iter().zip(rejections) {
        group.reports.push(SourceReport { name: candidate.source.name.clone(), rejection });
        if group.reports.last().is_some_and(|report| report.rejection.is_none()) {
            group.accepted.push(candidate);
        }
    }
    group
}

fn group_key(result: &BenchResult, answer: &TuneAnswer, options: MergeOptions) -> GroupKey {
    GroupKey {
        id: result.instance.id().filter(|_| options.by_id).map(str::to_owned),
        versions: (!options.ignore_versions).then(|| result.versions.clone()),
        mem_profile: answer.mem_profile,
        time_scale: result.system.time_scale.map(|scale| scale.factor().to_string()),
        device: result.system.device.model.clone(),
        firmware: result.system.device.firmware.clone(),
        qos: settings(&answer.qos_spec),
    }
}

/// The specification of an `iocost-qos` without what may differ.
fn settings(qos_spec: &SpecText) -> String {
    // What is no specification is equal to itself alone.
    let Ok(qos) = BenchSpec::parse(qos_spec.as_str()) else { return qos_spec.to_string() };
    let mut qos = BenchSpec { id: None, ..qos };
    if let Properties::IocostQos(properties) = &mut qos.properties {
        properties.vrate_intvs = 0;
    }
    qos.to_string()
}

fn label(id: Option<&str>, number: u32) -> InstanceLabel {
    match (id, number) {
        (None, number) => InstanceLabel::Position(number),
        (Some(id), 1) => InstanceLabel::Id(id.to_owned()),
        (Some(id), number) => InstanceLabel::Id(format!("{id}-{number}")),
    }
}

/// The merged result of a group; `None` without any.
fn merge_group(label: InstanceLabel, group: &SourceGroup, others: &[SourceGroup]) -> Option<Merged> {
    let result = pooled(label, &group.accepted)?;
    let times = group.accepted.iter().filter_map(|candidate| candidate.source.times.as_ref());
    let start = times.clone().map(|(start, _)| start).min().cloned().unwrap_or_default();
    let end = times.map(|(_, end)| end).max().cloned().unwrap_or_default();
    let report = MergeReport {
        instance: result.instance.clone(),
        group: group.key.describe(),
        sources: group.reports.clone(),
        dropped: others.iter().map(SourceGroup::dropped).collect(),
        start,
        end,
    };
    Some(Merged { result, report })
}

impl SourceGroup {
    fn dropped(&self) -> DroppedGroup {
        DroppedGroup {
            group: self.key.describe(),
            sources: self.reports.iter().map(|report| report.name.clone()).collect(),
            rejected: self.reports.iter().filter(|report| report.rejection.is_some()).cloned().collect(),
        }
    }
}

/// One result with the values of all; `None` without any.
fn pooled(label: InstanceLabel, accepted: &[Candidate]) -> Option<BenchResult> {
    let (Candidate { source: first, answer }, others) = accepted.split_first()?;
    let mut pooled = answer.clone();
    for other in others {
        for (series, fitted) in &other.answer.series {
            match pooled.series.get_mut(series) {
                Some(own) => *own = solve::pooled(own, fitted),
                None => drop(pooled.series.insert(*series, fitted.clone())),
            }
        }
    }
    let models: Vec<_> = accepted.iter().map(|candidate| candidate.answer.base.model).collect();
    pooled.base.model = model::median(&models);
    let properties = IocostTuneProperties::default();
    let instance = Instance { bench: Bench::IocostTune, label };
    let mut system = first.result.system.clone();
    system.iocost = Some(pooled.base);
    system.merged = others.iter().flat_map(|other| differences(&first.result.system, &other.source)).collect();
    Some(BenchResult {
        spec: merged_spec(&instance).to_text(),
        instance,
        system,
        versions: first.result.versions.clone(),
        answer: Answer::IocostTune(solve::solve(pooled, &properties)),
    })
}

fn merged_spec(instance: &Instance) -> BenchSpec {
    BenchSpec { id: instance.id().map(str::to_owned), ..BenchSpec::new(Bench::IocostTune) }
}

/// The differences between the machine in the header and the machine of another source, in a line.
fn differences(described: &SystemInfo, other: &MergeSource) -> Option<String> {
    let words = machines::differences(described, &other.result.system);
    (!words.is_empty()).then(|| format!("{}: {}", other.name, words.join(" ")))
}

impl GroupKey {
    fn describe(&self) -> Vec<String> {
        let profile = self.mem_profile.map_or("off".to_owned(), |profile| profile.to_string());
        let mut lines = vec![
            format!("version: {}", self.versions.as_ref().map_or("any".to_owned(), Versions::to_string)),
            format!("memory profile: {profile}"),
            format!("device: {}, firmware {:?}", self.device, self.firmware),
            format!("settings: {}", self.qos),
        ];
        lines.extend(self.time_scale.as_ref().map(|scale| format!("trial: durations times {scale}")));
        lines
    }
}

/// Writes merged results into a run folder that is open for writing. Fails if the run has such a result already.
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
            spec: merged_spec(&result.instance),
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
