//! `weighbridge ab`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wb_compare::ab::{Ab, Options};
use wb_compare::statistical::Verdict;
use wb_compare::variants::{Held, Question, VariantSamples, Variants, VariantsOfCase};
use wb_model::Scope;
use wb_plan::{Catalogue, Plan, Sampling, Variant, Workers};
use wb_profile::Named;
use wb_stats::Rule;
use wb_study::Study;
use wb_tests::Registry;

use super::measured::measured;
use super::question::{disturbed, question, sample_numbers, values};
use super::referee::Referee;
use super::tell;
use crate::cli::variants::{AbArgs, One};
use crate::commands::crew::localhost;
use crate::commands::measure::{Measuring, folder, require_same};
use crate::commands::what::{Asked, asked_one};
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
    let (asked, changed) = asked(args, &variants)?;
    let referee = Arc::new(Referee::new(changed, args.min_blocks));
    let enough = {
        let referee = referee.clone();
        move |cells: &[wb_run::cells::Measuring], at: usize| referee.enough(cells, at)
    };
    let folder = folder(&args.one.into, "weighbridge-ab");
    let mut asks = None;
    let mut measuring = Measuring::new(&folder, &args.one.into, &asked, &args.one.hosts, &args.one.ready)?;
    measuring.referee = Some(&enough);
    measuring.one_state = Some("ab");
    require_same(&folder, &asked)?;
    let measured = measuring.carry_out(console, |workers, named| {
        let (plan, question) = plan(args, &asked, &referee, workers, named)?;
        asks = Some(question);
        Ok(plan)
    })?;
    let (Some(question), Some(rule)) = (asks, referee.rule()) else {
        return Err(Error::Kernel("no plan was made".to_owned()));
    };
    let told = told(&measured.study, question, args, &asked.registry, &variants, &referee, rule)?;
    tell(&Held::Variants(told.clone()), &folder, &args.one, console)?;
    if args.one.json {
        // The text has them with their cases.
        told.cases.iter().flat_map(|case| &case.duplicates).for_each(|same| crate::console::tell!("warning: {same}"));
    }
    let standings = told.cases.iter().flat_map(|case| &case.variants).filter_map(|variant| variant.standing);
    let worse = standings.into_iter().any(|standing| standing.verdict == Verdict::Regressed);
    Ok(if worse { Exit::Regression } else { measured.exit().unwrap_or(Exit::Fine) })
}

/// The test in all its variants, and the parameters that they change.
fn asked(args: &AbArgs, variants: &[Variant]) -> Result<(Asked, Vec<String>), Error> {
    let mut asked = asked_one(&args.one)?;
    // What is wrong with the test itself is told of it, not of each variant.
    asked.plan(None, &localhost())?;
    let Asked { requests, registry, .. } = &asked;
    let [request] = &requests[..] else { return Err(Error::Kernel("one test is asked for".to_owned())) };
    let Some(test) = registry.declaration(&request.test) else {
        return Err(Error::Kernel(format!("`{}` is no test", request.test)));
    };
    let of_variants = variants.iter().map(|variant| variant.of(request, test, registry)).collect::<Result<_, _>>()?;
    let changed: BTreeSet<String> = variants.iter().flat_map(|variant| variant.changes(test, registry)).collect();
    asked.requests = of_variants;
    // Whoever raises the blocks or the rate after a look errs more often than the rate says.
    let AbArgs { max_blocks, error_rate, one: One { threshold, .. }, .. } = args;
    let rule = format!("at most {max_blocks} blocks, error rate {error_rate} %, threshold {threshold} %");
    let variants: Vec<String> = variants.iter().map(Variant::shown).collect();
    asked.name = format!("ab {} ({rule}) -- {}", asked.name, variants.join(" "));
    asked.sampling.max_samples = args.max_blocks;
    asked.sampling.min_samples = args.max_blocks;
    Ok((asked, changed.into_iter().collect()))
}

/// The cells: those that are variants of one another in a block, none prepared for more than a sample.
fn plan(
    args: &AbArgs,
    asked: &Asked,
    referee: &Referee,
    workers: &Workers,
    named: &Named,
) -> Result<(Plan, Question), Error> {
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
    let question = question(asked, &plan, args.one.threshold, args.error_rate)?;
    let options = Options {
        most: args.max_blocks,
        threshold: args.one.threshold,
        // Shared among the cases, each of which is decided by itself.
        rate: args.error_rate / 100.0 / distinct.len().max(1) as f64,
        direction: question.direction,
    };
    let rule = Ab::new(args.variants.len(), options).map_err(|bad| {
        let help = "--max-blocks says how many blocks there are, --error-rate in percent how often they may err (5)";
        let what = match distinct.len() {
            0 | 1 => bad.to_string(),
            cases => format!("{bad}; {} % are shared among {cases} cases", args.error_rate),
        };
        Error::Usage { what, help: help.to_owned() }
    })?;
    let min_samples = rule.earliest().max(args.min_blocks).min(args.max_blocks);
    for (cell, case) in plan.cells.iter_mut().zip(&cases) {
        cell.block = places[case];
        cell.scope = Scope::Sample;
        cell.rule = Rule::Compared { min_samples, max_samples: args.max_blocks };
    }
    plan.sampling = Sampling { min_samples, ..plan.sampling };
    referee.settle(rule, plan.sampling.clone());
    Ok((plan, question))
}

/// What came of it, from all that the folder has.
fn told(
    study: &Study,
    question: Question,
    args: &AbArgs,
    registry: &Registry,
    variants: &[Variant],
    referee: &Referee,
    rule: &Ab,
) -> Result<Variants, Error> {
    let mut cases: BTreeMap<String, Vec<VariantSamples>> = BTreeMap::new();
    for variant in variants {
        for cell in study.cells.iter().filter(|cell| cell.cell.serial.to_string() == variant.name.to_string()) {
            let shortfall = cell.outcome.falls_short().then(|| cell.outcome.to_string());
            let samples = VariantSamples {
                name: variant.name.to_string(),
                variant: variant.shown(),
                values: values(cell, &question),
                numbers: sample_numbers(cell),
                disturbed: disturbed(cell, &question),
                shortfall,
                measured: measured(cell, registry)?,
            };
            cases.entry(referee.case(&cell.cell).to_string()).or_default().push(samples);
        }
    }
    let judged = |(case, variants)| VariantsOfCase::of(case, variants, rule);
    let cases = cases.into_iter().map(judged).collect::<Result<_, _>>().map_err(|bad| Error::FellShort {
        what: format!("{}: {bad}", question.metric),
        help: "all samples are in the run folder; `weighbridge format` shows them".to_owned(),
    })?;
    Ok(Variants { question, max_blocks: args.max_blocks, cases })
}
