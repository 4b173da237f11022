//! `weighbridge bisect`: finds the revision that changed performance by classifying each revision as good or bad.

use wb_session::EventSink;
use wb_session::bisect::{
    self, BisectionOptions, BisectionOutcome, BisectionReport, BisectionStep, MeasureMethod, RevisionVerdict,
    StepOutcome,
};
use wb_session::hosts::requested_profiles;

use super::selection::resolve_request;
use crate::cli::bisect::{BisectCommand, BisectShowArgs, BisectStepArgs};
use crate::cli::{Cli, Command, ParseError, UsageError};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};
use crate::session_events::describe_verdict;

/// Exit statuses with a meaning for `git bisect run`.
const SKIP: u8 = 125;
const ABORT: u8 = 128;

pub(crate) fn bisect(command: &BisectCommand, console: &Console) -> Result<Exit, Error> {
    match command {
        BisectCommand::Run(args) => run(args, console),
        BisectCommand::Step(args) => run_step(args, console),
        BisectCommand::Show(args) => show(args),
    }
}

fn run(options: &BisectionOptions, console: &Console) -> Result<Exit, Error> {
    let events = console.events();
    if let MeasureMethod::Run(words) = options.measure_method() {
        check_run_arguments(&words, &events)?;
    }
    match bisect::run(options, console.quiet, &events)? {
        BisectionOutcome::FirstBad(revision) => {
            print_text(&format!("first bad: {revision}\n"))?;
            Ok(Exit::Success)
        }
        BisectionOutcome::Interrupted => Ok(Exit::Interrupted),
    }
}

/// Refuses arguments that `weighbridge run` would refuse, before anything is built.
fn check_run_arguments(words: &[String], events: &EventSink) -> Result<(), Error> {
    let line = ["weighbridge", "run"].map(str::to_owned).into_iter().chain(words.iter().cloned());
    let usage_error = |what: String| Error::Usage {
        what,
        help: "the arguments after `--` are those of `weighbridge run`".to_owned(),
    };
    let parsed = Cli::parse_words(line).map_err(|error| match error {
        ParseError::Usage(UsageError { what, .. }) => usage_error(what),
        ParseError::Output(_) => usage_error("invalid arguments after `--`: expected a measurement".to_owned()),
    });
    match parsed?.command {
        Command::Run(args) => {
            let request = resolve_request(&args.measurement, events)?;
            for named in requested_profiles(&args.measurement.cells.hosts)? {
                request.plan(None, &named, events)?;
            }
            Ok(())
        }
        _ => Err(usage_error("invalid arguments after `--`: expected those of `weighbridge run`".to_owned())),
    }
}

/// Measures one revision. An error must abort the bisection: git would take exit status 1 for `bad`.
fn run_step(args: &BisectStepArgs, console: &Console) -> Result<Exit, Error> {
    let code = match bisect::step(&args.into, args.name.as_deref(), &console.events()) {
        Ok(StepOutcome::Verdict(RevisionVerdict::Good { .. })) => 0,
        Ok(StepOutcome::Verdict(RevisionVerdict::Bad { .. })) => 1,
        Ok(StepOutcome::Verdict(RevisionVerdict::Skipped { .. })) => SKIP,
        // git does not test the endpoints, and a step confirms nothing.
        Ok(StepOutcome::Verdict(
            RevisionVerdict::Given | RevisionVerdict::Confirmed { .. } | RevisionVerdict::Refuted { .. },
        )) => ABORT,
        Ok(StepOutcome::Interrupted) => return Ok(Exit::Interrupted),
        Err(error) => {
            Error::from(error).report(console);
            ABORT
        }
    };
    Ok(Exit::Code(code))
}

fn show(args: &BisectShowArgs) -> Result<Exit, Error> {
    let bisection = BisectionReport::read(&args.into)?;
    if args.json {
        print_json(&bisection)?;
        return Ok(Exit::Success);
    }
    let describe = |revision: &str| bisection.describe_revision(revision);
    let endpoints = [("good", &bisection.config.good), ("bad", &bisection.config.bad)];
    let endpoints: String =
        endpoints.map(|(side, endpoint)| format!("{side}: {}\n", describe(&endpoint.revision))).concat();
    let line = |step: &BisectionStep| format!("{}  {}\n", describe(&step.name), describe_verdict(&step.verdict));
    let steps: String = bisection.steps.iter().map(line).collect();
    let first_bad = bisection.first_bad.as_ref().map(|revision| format!("first bad: {}\n", describe(revision)));
    print_text(&format!("{endpoints}{steps}{}", first_bad.unwrap_or_default()))?;
    Ok(Exit::Success)
}
