//! `weighbridge ab`: compares variants of one test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wb_compare::experiment::{Criterion, Experiment, VariantCase, VariantExperiment, VariantSamples};
use wb_compare::sequential_test::{Options, SequentialTest};
use wb_compare::statistical::Verdict;
use wb_model::Scope;
use wb_plan::{Catalog, Plan, PlanWorkers, Sampling, Variant};
use wb_profile::NamedProfile;
use wb_stats::SamplingRule;
use wb_study::Study;
use wb_tests::Registry;

use super::criterion::{build_criterion, counted_values, disturbed_count, sample_numbers};
use super::inputs::measured_inputs;
use super::save_and_print;
use super::stopping_rule::AbStoppingRule;
use crate::cli::variants::{AbArgs, SingleTestFlags};
use crate::commands::hosts::localhost;
use crate::commands::measure::{MeasureSession, require_same_plan, run_folder};
use crate::commands::selection::{MeasureRequest, resolve_single_test};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Compares variants of a test with interleaved samples until the result is clear.
pub(crate) fn ab(args: &AbArgs, console: &Console) -> Result<Exit, Error> {
    if args.min_blocks > args.max_blocks {
        let what = format!("--min-blocks {} is more than --max-blocks {}", args.min_blocks, args.max_blocks);
        return Err(Error::Usage { what, help: "raise --max-blocks (default: 30)".to_owned() });
    }
    let variants = Variant::parse_all(&args.variants)?;
    let (request, changed) = build_request(args, &variants)?;
    let stopping_rule = Arc::new(AbStoppingRule::new(changed, args.min_blocks));
    let enough = {
        let stopping_rule = stopping_rule.clone();
        move |cells: &[wb_run::active_cell::ActiveCell], at: usize| stopping_rule.stop_reason(cells, at)
    };
    let folder = run_folder(&args.single_test.run_folder, "weighbridge-ab");
    let mut criterion = None;
    let mut measuring = MeasureSession::new(
        &folder,
        &args.single_test.run_folder,
        &request,
        &args.single_test.hosts,
        &args.single_test.preparation,
    )?;
    measuring.stopping_rule = Some(&enough);
    measuring.single_profile_command = Some("ab");
    require_same_plan(&folder, &request)?;
    let measured = measuring.run(console, |workers, named| {
        let (plan, planned_criterion) = plan_blocks(args, &request, &stopping_rule, workers, named)?;
        criterion = Some(planned_criterion);
        Ok(plan)
    })?;
    let (Some(criterion), Some(rule)) = (criterion, stopping_rule.rule()) else {
        return Err(Error::Internal("no plan was made".to_owned()));
    };
    let result = evaluate(&measured.study, criterion, args, &request.registry, &variants, &stopping_rule, rule)?;
    save_and_print(&Experiment::Variants(result.clone()), &folder, &args.single_test, console)?;
    if args.single_test.json {
        // The text output shows duplicates with their cases.
        let duplicates = result.cases.iter().flat_map(|case| &case.duplicates);
        duplicates.for_each(|duplicate| crate::console::message!("warning: {duplicate}"));
    }
    let standings = result.cases.iter().flat_map(|case| &case.variants).filter_map(|variant| variant.result);
    let is_worse = standings.into_iter().any(|standing| standing.verdict == Verdict::Regressed);
    Ok(if is_worse { Exit::Regression } else { measured.exit().unwrap_or(Exit::Success) })
}

/// Builds the requests of all variants; returns them with the names of the parameters that variants change.
fn build_request(args: &AbArgs, variants: &[Variant]) -> Result<(MeasureRequest, Vec<String>), Error> {
    let mut all = resolve_single_test(&args.single_test)?;
    // Report errors of the test itself once, not for each variant.
    all.plan(None, &localhost())?;
    let MeasureRequest { requests, registry, .. } = &all;
    let [request] = &requests[..] else { return Err(Error::Internal("expected one test".to_owned())) };
    let Some(test) = registry.declaration(&request.test) else {
        return Err(Error::Internal(format!("unknown test `{}`", request.test)));
    };
    let of_variants =
        variants.iter().map(|variant| variant.apply(request, test, registry)).collect::<Result<_, _>>()?;
    let changed: BTreeSet<String> =
        variants.iter().flat_map(|variant| variant.changed_params(test, registry)).collect();
    all.requests = of_variants;
    // Changing these limits after an interim analysis would invalidate the error rate, so they are part of the name.
    let AbArgs { max_blocks, error_rate, single_test: SingleTestFlags { threshold, .. }, .. } = args;
    let rule = format!("at most {max_blocks} blocks, error rate {error_rate} %, threshold {threshold} %");
    let variants: Vec<String> = variants.iter().map(Variant::masked_text).collect();
    all.name = format!("ab {} ({rule}) -- {}", all.name, variants.join(" "));
    all.sampling.max_samples = args.max_blocks;
    all.sampling.min_samples = args.max_blocks;
    Ok((all, changed.into_iter().collect()))
}

/// Plans the cells: variants of the same case share a block, and each sample has its own preparation.
fn plan_blocks(
    args: &AbArgs,
    request: &MeasureRequest,
    stopping_rule: &AbStoppingRule,
    workers: &PlanWorkers,
    named: &NamedProfile,
) -> Result<(Plan, Criterion), Error> {
    let mut plan = request.plan(Some(workers), named)?;
    let cases: Vec<String> = plan.cells.iter().map(|cell| stopping_rule.case(&cell.id).to_string()).collect();
    let distinct: BTreeSet<&String> = cases.iter().collect();
    let places: BTreeMap<&String, usize> = distinct.iter().enumerate().map(|(at, case)| (*case, at)).collect();
    for case in &distinct {
        let cells = cases.iter().filter(|other| other == case).count();
        if cells != args.variants.len() {
            let what = format!("{} variants have {cells} cells in the case `{case}`", args.variants.len());
            let help = "a variant takes one value per parameter; use lists in the test itself".to_owned();
            return Err(Error::Usage { what, help });
        }
    }
    let criterion = build_criterion(request, &plan, args.single_test.threshold, args.error_rate)?;
    let options = Options {
        max_blocks: args.max_blocks,
        threshold: args.single_test.threshold,
        // Split among the cases, which are decided independently.
        error_rate: args.error_rate / 100.0 / distinct.len().max(1) as f64,
        direction: criterion.direction,
    };
    let rule = SequentialTest::new(args.variants.len(), options).map_err(|error| {
        let help = "--max-blocks is the maximum number of blocks, --error-rate the false-positive rate in percent";
        let what = match distinct.len() {
            0 | 1 => error.to_string(),
            cases => format!("{error}; {} % are shared among {cases} cases", args.error_rate),
        };
        Error::Usage { what, help: help.to_owned() }
    })?;
    let min_samples = rule.min_blocks().max(args.min_blocks).min(args.max_blocks);
    for (cell, case) in plan.cells.iter_mut().zip(&cases) {
        cell.block = places[case];
        cell.scope = Scope::Sample;
        cell.rule = SamplingRule::External { min_samples, max_samples: args.max_blocks };
    }
    plan.sampling = Sampling { min_samples, ..plan.sampling };
    stopping_rule.set_rule(rule, plan.sampling.clone());
    Ok((plan, criterion))
}

/// Evaluates all samples in the folder.
fn evaluate(
    study: &Study,
    criterion: Criterion,
    args: &AbArgs,
    registry: &Registry,
    variants: &[Variant],
    stopping_rule: &AbStoppingRule,
    rule: &SequentialTest,
) -> Result<VariantExperiment, Error> {
    let mut cases: BTreeMap<String, Vec<VariantSamples>> = BTreeMap::new();
    for variant in variants {
        for cell in study.cells.iter().filter(|cell| cell.cell.serial.to_string() == variant.name.to_string()) {
            let shortfall = cell.outcome.is_incomplete().then(|| cell.outcome.to_string());
            let samples = VariantSamples {
                name: variant.name.to_string(),
                spec: variant.masked_text(),
                values: counted_values(cell, &criterion),
                numbers: sample_numbers(cell),
                disturbed: disturbed_count(cell, &criterion),
                shortfall,
                setup: measured_inputs(cell, registry)?,
            };
            cases.entry(stopping_rule.case(&cell.cell).to_string()).or_default().push(samples);
        }
    }
    let evaluate = |(case, variants)| VariantCase::of(case, variants, rule);
    let cases = cases.into_iter().map(evaluate).collect::<Result<_, _>>().map_err(|error| Error::Incomplete {
        what: format!("{}: {error}", criterion.metric),
        help: "all samples are in the run folder; `weighbridge format` shows them".to_owned(),
    })?;
    Ok(VariantExperiment { criterion, max_blocks: args.max_blocks, cases })
}
