//! Compares variants of one test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wb_compare::experiment::{CaseSamples, VariantSamples, compare_variants};
use wb_compare::sequential_test::{Options, SequentialTest};
use wb_model::Scope;
use wb_plan::{Catalog, Cell, Plan, Sampling, SamplingOrder, Variant};
use wb_record::RunFolder;
use wb_results::Study;
use wb_results::comparison::AttemptCounts;
use wb_results::experiment::{ComparedMetric, Criterion, Experiment, VariantExperiment};
use wb_stats::SamplingRule;
use wb_test::Registry;

use super::VariantsError;
use super::criterion::{
    build_criterion, counted_values, disturbed_count, makes_no_more, measured_rounds, primary_metrics, round_attempts,
};
use super::experiment::write_experiment;
use super::inputs::measured_inputs;
use super::stopping_rule::{AbDesign, AbStoppingRule};
use crate::error::SessionError;
use crate::event::EventSink;
use crate::hosts::localhost;
use crate::measure::{MeasureSession, require_same_plan};
use crate::options::SessionOptions;
use crate::request::MeasureRequest;
use crate::result::SessionStatus;

#[derive(Debug, Clone)]
pub struct AbOptions {
    variants: Vec<Variant>,
    min_blocks: usize,
    max_blocks: usize,
    threshold: f64,
    error_rate: f64,
}

impl AbOptions {
    /// Creates options for variants as the user writes them, with the minimum and maximum number of blocks. `threshold`
    /// is the smallest difference that matters, `error_rate` the false discovery rate over all interim analyses and
    /// comparisons; both are in percent.
    pub fn new(
        variants: &[String],
        (min_blocks, max_blocks): (usize, usize),
        threshold: f64,
        error_rate: f64,
    ) -> Result<Self, SessionError> {
        if min_blocks > max_blocks {
            return Err(VariantsError::BlockLimits(min_blocks, max_blocks).into());
        }
        Ok(Self { variants: Variant::parse_all(variants)?, min_blocks, max_blocks, threshold, error_rate })
    }
}

/// Compares variants of a test with interleaved samples until the result is clear, and records the result.
pub fn ab(
    options: &AbOptions,
    request: MeasureRequest,
    session_options: &SessionOptions,
    events: &EventSink,
) -> Result<(VariantExperiment, SessionStatus), SessionError> {
    let (request, changed) = build_request(options, request, events)?;
    let stopping_rule = Arc::new(AbStoppingRule::new(changed));
    let decide = {
        let stopping_rule = stopping_rule.clone();
        move |cells: &[wb_run::active_cell::ActiveCell], position: usize| stopping_rule.decide(cells, position)
    };
    let mut criterion = None;
    let mut session = MeasureSession::new(&request, session_options, events)?;
    session.stopping_rule = Some(&decide);
    session.single_profile_command = Some("ab");
    let folder = &session_options.run_folder.path;
    require_same_plan(folder, &request)?;
    let result = session.run(|workers, named| {
        let plan = request.plan(Some(workers), named, events)?;
        let (plan, planned_criterion) = plan_blocks(options, &request, &stopping_rule, plan)?;
        criterion = Some(planned_criterion);
        Ok(plan)
    })?;
    let (Some(criterion), Some(design)) = (criterion, stopping_rule.design()) else {
        return Err(VariantsError::NoPlan.into());
    };
    let experiment = evaluate(&result.study, criterion, options, &request.registry, &stopping_rule, design)?;
    write_experiment(&RunFolder::open(folder)?, &Experiment::Variants(experiment.clone()))?;
    Ok((experiment, result.status()))
}

/// Builds the requests of all variants; returns them with the names of the parameters that variants change.
fn build_request(
    options: &AbOptions,
    mut all: MeasureRequest,
    events: &EventSink,
) -> Result<(MeasureRequest, Vec<String>), SessionError> {
    let variants = &options.variants;
    // Report errors of the test itself once, not for each variant.
    all.plan(None, &localhost(), events)?;
    let MeasureRequest { requests, registry, .. } = &all;
    let not_one = || VariantsError::NotOneTest(all.name.clone());
    let [request] = &requests[..] else { return Err(not_one().into()) };
    let test = registry.declaration(&request.test).ok_or_else(not_one)?;
    let of_variants =
        variants.iter().map(|variant| variant.apply(request, test, registry)).collect::<Result<_, _>>()?;
    let changed: BTreeSet<String> =
        variants.iter().flat_map(|variant| variant.changed_params(test, registry)).collect();
    all.requests = of_variants;
    // Changing these limits after an interim analysis would invalidate the error rate, so they are part of the name.
    let AbOptions { min_blocks, max_blocks, error_rate, threshold, .. } = options;
    let rule = format!("{min_blocks} to {max_blocks} blocks, error rate {error_rate} %, threshold {threshold} %");
    let variants: Vec<String> = variants.iter().map(Variant::masked_text).collect();
    all.name = format!("ab {} ({rule}) -- {}", all.name, variants.join(" "));
    all.sampling.max_samples = *max_blocks;
    all.sampling.min_samples = *max_blocks;
    Ok((all, changed.into_iter().collect()))
}

/// Plans the cells: all are measured in rounds, in which variants of the same case are sampled one directly after the
/// other, and each sample has its own preparation.
fn plan_blocks(
    options: &AbOptions,
    request: &MeasureRequest,
    stopping_rule: &AbStoppingRule,
    mut plan: Plan,
) -> Result<(Plan, Criterion), VariantsError> {
    let &AbOptions { ref variants, min_blocks, max_blocks, threshold, error_rate } = options;
    let cases: Vec<String> = plan.cells.iter().map(|cell| stopping_rule.case(&cell.id).to_string()).collect();
    let distinct: BTreeSet<&String> = cases.iter().collect();
    let groups: BTreeMap<&String, usize> = distinct.iter().enumerate().map(|(index, case)| (*case, index)).collect();
    for case in &distinct {
        let cells = cases.iter().filter(|other| other == case).count();
        if cells != variants.len() {
            return Err(VariantsError::UnevenCase { variants: variants.len(), cells, case: case.to_string() });
        }
    }
    let criterion = build_criterion(request, &plan, threshold, error_rate)?;
    let of_case = |case: &&String| {
        let cells = plan.cells.iter().zip(&cases).filter(|(_, other)| other == case).map(|(cell, _)| cell);
        Ok(((*case).clone(), common_metrics(request, cells)?))
    };
    let metrics: BTreeMap<String, Vec<ComparedMetric>> =
        distinct.iter().map(of_case).collect::<Result<_, VariantsError>>()?;
    let options = Options { min_blocks, max_blocks, threshold, error_rate: error_rate / 100.0 };
    let test = SequentialTest::new(metrics.values().map(Vec::len).sum(), variants.len(), options)?;
    let min_samples = test.min_blocks();
    for (cell, case) in plan.cells.iter_mut().zip(&cases) {
        (cell.block, cell.group) = (0, Some(groups[case]));
        cell.scope = Scope::Sample;
        cell.rule = SamplingRule::Compared { min_samples, max_samples: max_blocks };
    }
    plan.sampling = Sampling { min_samples, order: SamplingOrder::Interleaved, ..plan.sampling };
    stopping_rule.set_design(AbDesign { test, metrics, sampling: plan.sampling.clone() });
    Ok((plan, criterion))
}

fn common_metrics<'a>(
    request: &MeasureRequest,
    variants: impl Iterator<Item = &'a Cell>,
) -> Result<Vec<ComparedMetric>, VariantsError> {
    let of_variants = variants.map(|cell| primary_metrics(request, cell));
    let common = of_variants.reduce(|common, other| common.into_iter().filter(|it| other.contains(it)).collect());
    let metrics = common.filter(|metrics| !metrics.is_empty());
    metrics.ok_or_else(|| VariantsError::NoPrimaryMetric(request.name.clone()))
}

fn evaluate(
    study: &Study,
    criterion: Criterion,
    options: &AbOptions,
    registry: &Registry,
    stopping_rule: &AbStoppingRule,
    design: &AbDesign,
) -> Result<VariantExperiment, SessionError> {
    let mut cases: BTreeMap<String, Vec<VariantSamples>> = BTreeMap::new();
    for variant in &options.variants {
        for cell in study.cells.iter().filter(|cell| cell.id.serial.to_string() == variant.name.to_string()) {
            let case = stopping_rule.case(&cell.id).to_string();
            let metrics = design.metrics.get(&case).map_or(&[][..], Vec::as_slice);
            let shortfall_reason = cell.outcome.is_incomplete().then(|| cell.outcome.to_string());
            let samples = VariantSamples {
                name: variant.name.to_string(),
                spec: variant.masked_text(),
                values: metrics.iter().map(|metric| counted_values(cell, &metric.metric)).collect(),
                measured_rounds: measured_rounds(cell),
                attempts: round_attempts(cell.attempts.iter().map(|attempt| (attempt.purpose, &attempt.outcome))),
                disturbed: disturbed_count(cell, metrics),
                failures: AttemptCounts {
                    failed: cell.failures.failed as u32,
                    attempts: cell.failures.attempts as u32,
                },
                makes_no_more: makes_no_more(cell, &design.sampling),
                is_given_up: shortfall_reason.is_some() && cell.ended_by.is_some(),
                shortfall_reason,
                inputs: measured_inputs(cell, registry)?,
            };
            cases.entry(case).or_default().push(samples);
        }
    }
    let with_metrics = |(case, variants): (String, Vec<VariantSamples>)| {
        let metrics = design.metrics.get(&case).cloned().unwrap_or_default();
        CaseSamples { case, metrics, variants }
    };
    let cases = compare_variants(cases.into_iter().map(with_metrics).collect(), &design.test)
        .map_err(|error| VariantsError::Evaluation { metric: error.metric, cause: error.cause.into() })?;
    let family = Some(design.test.family());
    Ok(VariantExperiment { criterion, max_blocks: options.max_blocks, family, cases })
}
