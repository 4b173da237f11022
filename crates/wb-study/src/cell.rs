//! What is known of a cell: whether more samples are needed, and what the ones there are come to.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::outcome::Gate;
use wb_model::{Aggregate, CellOutcome, Metric, Purpose, WorkerName};
use wb_record::CellDefinition;
use wb_stats::{Budget, Decision, Rule, Samples, Spread, Stop, Summary};

use crate::curves::merge_curves;
use crate::findings::findings;
use crate::latency::nested;
use crate::result::{CellResult, MetricResult, SampleResult};
use crate::sample::Studied;
use crate::together::key;

/// What the rule says of a cell's samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The samples that count, as positions among the attempts.
    pub counted: Vec<usize>,
    /// What to do next.
    pub decision: Decision,
}

/// Decides whether a cell needs more samples. For each disturbed sample another one is taken, up to the
/// definition's `retakes`; the disturbed ones stay, since dropping samples would choose the result.
pub fn judge(definition: &CellDefinition, studied: &[Studied], budget: Budget) -> Judgement {
    let foreign = other_units(definition, studied);
    let counts = |at: &usize| studied[*at].valid_sample().is_some() && !foreign.contains_key(at);
    let valid: Vec<usize> = (0..studied.len()).filter(counts).collect();
    let value = |at: &usize| studied[*at].valid_sample().and_then(|measured| measured.get(primary(definition)?));
    let values: Vec<f64> = valid.iter().filter_map(value).collect();
    let disturbed = valid.iter().filter(|at| studied[**at].is_disturbed()).count();
    let rule = with_retakes(definition.rule, disturbed.min(definition.retakes));
    // Values are finite: the gates that every sample passes see to it.
    let decision = rule.decide(&values, budget).unwrap_or(Decision::Continue);
    let counted = match &decision {
        Decision::Continue => valid,
        Decision::Done(stop) | Decision::NotConverged(stop) => valid[stop.counted.clone()].to_vec(),
    };
    Judgement { counted, decision }
}

fn primary(definition: &CellDefinition) -> Option<&Metric> {
    definition.metrics.iter().find(|metric| metric.primary)
}

fn with_retakes(rule: Rule, retakes: usize) -> Rule {
    match rule {
        Rule::Precision { percent, min_samples, max_samples } => {
            Rule::Precision { percent, min_samples: min_samples + retakes, max_samples: max_samples + retakes }
        }
        other @ (Rule::MaxStddev { .. } | Rule::Compared { .. }) => other,
    }
}

/// The interval of a median reaches 95 % from so many samples on.
pub const FEWEST_FOR_AN_INTERVAL: usize = 6;

/// The fewest samples that a rule wants.
pub fn wanted(rule: Rule) -> usize {
    match rule {
        Rule::Precision { min_samples, .. } | Rule::Compared { min_samples, .. } => min_samples,
        Rule::MaxStddev { samples, .. } => samples,
    }
}

/// The most samples that a rule takes, retakes apart.
fn most(rule: Rule) -> usize {
    match rule {
        Rule::Precision { max_samples, .. } | Rule::Compared { max_samples, .. } => max_samples,
        Rule::MaxStddev { samples, .. } => samples,
    }
}

/// The samples whose value is off by a power of 1000, as positions among the attempts, each with its figures: a tool
/// that printed another unit.
fn other_units(definition: &CellDefinition, studied: &[Studied]) -> BTreeMap<usize, String> {
    const FAR: f64 = 300.0;
    let Some(metric) = primary(definition) else { return BTreeMap::new() };
    let value = |studied: &Studied| studied.valid_sample()?.get(metric);
    let values: Vec<f64> = studied.iter().filter_map(value).collect();
    let Some(median) = Samples::new(&values).ok().filter(|_| values.len() >= 3).map(|samples| samples.median()) else {
        return BTreeMap::new();
    };
    let off = |(at, studied): (usize, &Studied)| {
        let value = value(studied)?;
        let ratio = (value / median).abs();
        let told = || format!("{} is {value}, {ratio:.3} times the median of its samples", metric.name);
        (!(1.0 / FAR..FAR).contains(&ratio)).then(|| (at, told()))
    };
    studied.iter().enumerate().filter_map(off).collect()
}

/// All that is known of a cell. `ended_by` is what ended it, where its run is done with it.
pub fn cell_result(
    definition: &CellDefinition,
    mut studied: Vec<Studied>,
    ended_by: Option<&str>,
    origin: &Origin,
) -> CellResult {
    for (at, figures) in other_units(definition, &studied) {
        if let Some(measured) = &mut studied[at].measured {
            measured.reject(Gate::Possible, figures);
        }
    }
    // One that is not done has come as far as one whose budget is spent.
    let judgement = judge(definition, &studied, Budget::Spent);
    let counted: Vec<&Studied> = judgement.counted.iter().map(|at| &studied[*at]).collect();
    let workers: BTreeSet<&WorkerName> = counted.iter().flat_map(|studied| &studied.attempt.ended.workers).collect();
    let of = |worker: Option<&WorkerName>| {
        definition.metrics.iter().map(|metric| metric_result(metric, worker, &counted)).collect::<Vec<_>>()
    };
    let mut metrics = of(None);
    // What stays apart has no value of all.
    metrics.retain(|result| workers.is_empty() || result.metric.aggregate != Aggregate::None);
    metrics.sort_by_key(|result| !result.metric.primary);
    metrics.extend(workers.into_iter().flat_map(|worker| of(Some(worker))));
    let mut provenance = definition.provenance.clone();
    provenance.extend(counted.iter().flat_map(|s| s.measured.iter()).flat_map(|m| m.provenance.clone()));
    CellResult {
        cell: definition.cell.clone(),
        key: definition.key.clone(),
        summary: definition.summary.clone(),
        params: definition.params.clone(),
        rule: definition.rule,
        outcome: outcome(definition, &studied, &judgement),
        ended_by: ended_by.map(str::to_owned),
        findings: findings(definition, &counted),
        curves: merge_curves(&counted),
        latency: nested(&counted),
        samples: samples(&studied, &judgement, origin),
        metrics,
        provenance,
    }
}

fn outcome(definition: &CellDefinition, studied: &[Studied], judgement: &Judgement) -> CellOutcome {
    if let (Some(reason), 0) = (&definition.unsupported, judgement.counted.len()) {
        return CellOutcome::Unsupported { reason: reason.clone() };
    }
    let valid = studied.iter().filter(|studied| studied.valid_sample().is_some()).count();
    let wanted = wanted(definition.rule);
    let in_vain = |studied: &&Studied| studied.valid().is_none() && !studied.is_cancelled();
    let failed = || match studied.iter().rfind(in_vain) {
        Some(last) => CellOutcome::Failed { reason: last.reason() },
        None => CellOutcome::Partial { valid: 0, wanted },
    };
    match &judgement.decision {
        Decision::Done(_) => CellOutcome::Measured,
        _ if valid == 0 => failed(),
        _ if valid < wanted => CellOutcome::Partial { valid, wanted },
        Decision::NotConverged(Stop {
            spread: Spread::HalfWidthPercent(percent) | Spread::StddevPercent(percent),
            ..
        }) => CellOutcome::NotConverged { percent: *percent },
        // As with pbench's rule of three: so few were asked for, and no interval goes with them.
        _ if valid >= most(definition.rule) => CellOutcome::Measured,
        _ => CellOutcome::Partial { valid, wanted: wanted.max(FEWEST_FOR_AN_INTERVAL) },
    }
}

/// A metric over the samples that count: of all workers together, or of one of several.
fn metric_result(metric: &Metric, worker: Option<&WorkerName>, counted: &[&Studied]) -> MetricResult {
    let name = key(metric, worker);
    let over = |chosen: &dyn Fn(&Studied) -> bool| {
        let chosen = counted.iter().filter(|studied| chosen(studied));
        let values: Vec<f64> =
            chosen.filter_map(|studied| studied.measured.as_ref()?.values.get(&name).copied()).collect();
        Samples::new(&values).ok().map(|samples| Summary::of(&samples))
    };
    let disturbed = counted.iter().any(|studied| studied.is_disturbed());
    MetricResult {
        // What a cell converges on is of all together.
        metric: Metric { primary: metric.primary && worker.is_none(), ..metric.clone() },
        worker: worker.cloned(),
        summary: over(&|_| true),
        undisturbed: if disturbed { over(&|studied| !studied.is_disturbed()) } else { None },
    }
}

/// When the run's attempts began, for the time axis.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Seconds from the run's first start, by an attempt's folder relative to the run's.
    pub started: BTreeMap<String, f64>,
}

fn samples(studied: &[Studied], judgement: &Judgement, origin: &Origin) -> Vec<SampleResult> {
    let row = |(at, studied): (usize, &Studied)| {
        let ended = &studied.attempt.ended;
        let folder = wb_record::RunFolder::attempt(&ended.cell, ended.purpose, ended.sample, ended.attempt);
        let folder = folder.to_string_lossy().into_owned();
        SampleResult {
            sample: ended.sample,
            attempt: ended.attempt,
            purpose: ended.purpose,
            at: origin.started.get(&folder).copied().unwrap_or_default(),
            seconds: ended.seconds,
            measured_seconds: studied.measured_seconds(),
            outcome: ended.outcome.clone(),
            validity: studied.measured.as_ref().map(|measured| measured.validity.clone()),
            disturbances: ended.disturbances.clone(),
            counted: ended.purpose == Purpose::Sample && judgement.counted.contains(&at),
            values: studied.measured.as_ref().map(|measured| measured.values.clone()).unwrap_or_default(),
            folder,
        }
    };
    studied.iter().enumerate().map(row).collect()
}
