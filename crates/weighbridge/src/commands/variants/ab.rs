//! `weighbridge ab`.

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

/// Holds variants of a test against each other.
pub(crate) fn ab(args: &AbArgs, console: &Console) -> Result<Exit, Error> {
    if args.min_blocks > args.max_blocks {
        let what = format!("--min-blocks {} is more than --max-blocks {}", args.min_blocks, args.max_blocks);
        return Err(Error::Usage { what, help: "--max-blocks raises the most there are (30)".to_owned() });
    }
    let variants = Variant::parse_all(&args.variants)?;
    let (asked, changed) = build_request(args, &variants)?;
    let referee = Arc::new(AbStoppingRule::new(changed, args.min_blocks));
    let enough = {
        let referee = referee.clone();
        move |cells: &[wb_run::active_cell::ActiveCell], at: usize| referee.stop_reason(cells, at)
    };
    let folder = run_folder(&args.single_test.run_folder, "weighbridge-ab");
    let mut asks = None;
    let mut measuring = MeasureSession::new(
        &folder,
        &args.single_test.run_folder,
        &asked,
        &args.single_test.hosts,
        &args.single_test.preparation,
    )?;
    measuring.stopping_rule = Some(&enough);
    measuring.single_profile_command = Some("ab");
    require_same_plan(&folder, &asked)?;
    let measured = measuring.run(console, |workers, named| {
        let (plan, question) = plan_blocks(args, &asked, &referee, workers, named)?;
        asks = Some(question);
        Ok(plan)
    })?;
    let (Some(question), Some(rule)) = (asks, referee.rule()) else {
        return Err(Error::Internal("no plan was made".to_owned()));
    };
    let told = evaluate(&measured.study, question, args, &asked.registry, &variants, &referee, rule)?;
    save_and_print(&Experiment::Variants(told.clone()), &folder, &args.single_test, console)?;
    if args.single_test.json {
        // The text has them with their cases.
        told.cases.iter().flat_map(|case| &case.duplicates).for_each(|same| crate::console::tell!("warning: {same}"));
    }
    let standings = told.cases.iter().flat_map(|case| &case.variants).filter_map(|variant| variant.result);
    let worse = standings.into_iter().any(|standing| standing.verdict == Verdict::Regressed);
    Ok(if worse { Exit::Regression } else { measured.exit().unwrap_or(Exit::Success) })
}

/// The test in all its variants, and the parameters that they change.
fn build_request(args: &AbArgs, variants: &[Variant]) -> Result<(MeasureRequest, Vec<String>), Error> {
    let mut asked = resolve_single_test(&args.single_test)?;
    // What is wrong with the test itself is told of it, not of each variant.
    asked.plan(None, &localhost())?;
    let MeasureRequest { requests, registry, .. } = &asked;
    let [request] = &requests[..] else { return Err(Error::Internal("one test is asked for".to_owned())) };
    let Some(test) = registry.declaration(&request.test) else {
        return Err(Error::Internal(format!("`{}` is no test", request.test)));
    };
    let of_variants =
        variants.iter().map(|variant| variant.apply(request, test, registry)).collect::<Result<_, _>>()?;
    let changed: BTreeSet<String> =
        variants.iter().flat_map(|variant| variant.changed_params(test, registry)).collect();
    asked.requests = of_variants;
    // Whoever raises the blocks or the rate after a look errs more often than the rate says.
    let AbArgs { max_blocks, error_rate, single_test: SingleTestFlags { threshold, .. }, .. } = args;
    let rule = format!("at most {max_blocks} blocks, error rate {error_rate} %, threshold {threshold} %");
    let variants: Vec<String> = variants.iter().map(Variant::masked_text).collect();
    asked.name = format!("ab {} ({rule}) -- {}", asked.name, variants.join(" "));
    asked.sampling.max_samples = args.max_blocks;
    asked.sampling.min_samples = args.max_blocks;
    Ok((asked, changed.into_iter().collect()))
}

/// The cells: those that are variants of one another in a block, none prepared for more than a sample.
fn plan_blocks(
    args: &AbArgs,
    asked: &MeasureRequest,
    referee: &AbStoppingRule,
    workers: &PlanWorkers,
    named: &NamedProfile,
) -> Result<(Plan, Criterion), Error> {
    let mut plan = asked.plan(Some(workers), named)?;
    let cases: Vec<String> = plan.cells.iter().map(|cell| referee.case(&cell.id).to_string()).collect();
    let distinct: BTreeSet<&String> = cases.iter().collect();
    let places: BTreeMap<&String, usize> = distinct.iter().enumerate().map(|(at, case)| (*case, at)).collect();
    for case in &distinct {
        let cells = cases.iter().filter(|other| other == case).count();
        if cells != args.variants.len() {
            let what = format!("{} variants have {cells} cells in the case `{case}`", args.variants.len());
            let help = "a variant gives each parameter one value; lists belong to the test itself".to_owned();
            return Err(Error::Usage { what, help });
        }
    }
    let question = build_criterion(asked, &plan, args.single_test.threshold, args.error_rate)?;
    let options = Options {
        max_blocks: args.max_blocks,
        threshold: args.single_test.threshold,
        // Shared among the cases, each of which is decided by itself.
        error_rate: args.error_rate / 100.0 / distinct.len().max(1) as f64,
        direction: question.direction,
    };
    let rule = SequentialTest::new(args.variants.len(), options).map_err(|bad| {
        let help = "--max-blocks says how many blocks there are, --error-rate in percent how often they may err (5)";
        let what = match distinct.len() {
            0 | 1 => bad.to_string(),
            cases => format!("{bad}; {} % are shared among {cases} cases", args.error_rate),
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
    referee.set_rule(rule, plan.sampling.clone());
    Ok((plan, question))
}

/// What came of it, from all that the folder has.
fn evaluate(
    study: &Study,
    question: Criterion,
    args: &AbArgs,
    registry: &Registry,
    variants: &[Variant],
    referee: &AbStoppingRule,
    rule: &SequentialTest,
) -> Result<VariantExperiment, Error> {
    let mut cases: BTreeMap<String, Vec<VariantSamples>> = BTreeMap::new();
    for variant in variants {
        for cell in study.cells.iter().filter(|cell| cell.cell.serial.to_string() == variant.name.to_string()) {
            let shortfall = cell.outcome.is_incomplete().then(|| cell.outcome.to_string());
            let samples = VariantSamples {
                name: variant.name.to_string(),
                spec: variant.masked_text(),
                values: counted_values(cell, &question),
                numbers: sample_numbers(cell),
                disturbed: disturbed_count(cell, &question),
                shortfall,
                setup: measured_inputs(cell, registry)?,
            };
            cases.entry(referee.case(&cell.cell).to_string()).or_default().push(samples);
        }
    }
    let judged = |(case, variants)| VariantCase::of(case, variants, rule);
    let cases = cases.into_iter().map(judged).collect::<Result<_, _>>().map_err(|bad| Error::Incomplete {
        what: format!("{}: {bad}", question.metric),
        help: "all samples are in the run folder; `weighbridge format` shows them".to_owned(),
    })?;
    Ok(VariantExperiment { criterion: question, max_blocks: args.max_blocks, cases })
}
