//! `weighbridge run`: measures, records, studies and prints the summary.

use std::path::{Path, PathBuf};

use wb_model::pluralize;
use wb_record::RunFolder;
use wb_results::Study;
use wb_run::{InputRecorder, RunEnd};
use wb_session::publishing::PublishState;
use wb_session::{MeasureRequest, MeasureSession, SessionOptions};
use wb_test::Registry;

use super::contention;
use super::deciding_metrics::{DecidingMetrics, warn_of_undecisive_thresholds};
use super::layout;
use super::peers::{matrix_file, record_inputs};
use super::selection::resolve_request;
use crate::cli::{LayoutFolder, RUN_PREFIX, RunArgs};
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn run(mut args: RunArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    args.run_folder.into = run_folder(args.run_folder.into, folder)?;
    args.measurement.tests = contention::with_files(&args.contention.file, args.measurement.tests)?;
    if args.runs > 1 && (args.json || contention::is_sequence(&args.measurement.tests)?) {
        return Err(Error::Usage {
            what: "--runs measures neither contention benches nor with --json".to_owned(),
            help: "leave --runs out, or repeat the command with another --into".to_owned(),
        });
    }
    if args.runs > 1 && args.run_folder.into.is_none() {
        return Err(Error::Usage {
            what: "--runs requires the beginning of the folders' names".to_owned(),
            help: format!("with `--into R`, the runs are R-1 to R-{}", args.runs),
        });
    }
    if contention::is_sequence(&args.measurement.tests)? {
        if args.layout.is_some() {
            return Err(Error::Usage {
                what: "--layout has no effect on contention benches".to_owned(),
                help: "leave it out: `weighbridge format` shows their results".to_owned(),
            });
        }
        return contention::run_sequence(&args, console);
    }
    contention::refuse_sequence_flags(&args.contention)?;
    let events = console.events();
    contention::refuse_misspelled(&args.measurement, &events)?;
    let request = resolve_request(&args.measurement, &events)?;
    // Relative paths are those of the plan.
    let folder = args.measurement.plan.as_deref().and_then(|plan| Path::new(plan).parent()).unwrap_or(Path::new(""));
    let matrices: Vec<PathBuf> =
        request.requests.iter().filter_map(matrix_file).map(|file| folder.join(file)).collect();
    let recorder = |run: &RunFolder| {
        let warnings: Vec<String> = matrices.iter().filter_map(|file| record_inputs(run, file)).collect();
        (!warnings.is_empty()).then(|| warnings.join("; "))
    };
    let base = args.run_folder.into.clone();
    let mut exits = Vec::new();
    for number in 1..=args.runs {
        args.run_folder.into = match &base {
            Some(base) if args.runs > 1 => Some(numbered(base, number)),
            base => base.clone(),
        };
        let session = args.run_folder.session_options(RUN_PREFIX, &args.measurement.cells.hosts, &args.preparation);
        let numbered_layout = |layout: &LayoutFolder| match args.runs {
            1 => layout.folder.clone(),
            _ => numbered(&layout.folder, number),
        };
        let output = MeasureOutput { json: args.json, run_perf: args.layout.as_ref().map(numbered_layout) };
        let exit = measure(&request, &session, Some(&recorder), &output, console)?;
        exits.push(exit);
        if exit == Exit::Interrupted {
            break;
        }
    }
    Ok(combine(&exits))
}

/// The folder of one of several runs: `DIR-2`.
fn numbered(base: &Path, number: u16) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(format!("-{number}"));
    PathBuf::from(name)
}

/// The exit status of several runs: the worst, and nothing to do only if all of them had nothing.
fn combine(exits: &[Exit]) -> Exit {
    let worst = [Exit::Interrupted, Exit::Incomplete, Exit::Success].into_iter().find(|exit| exits.contains(exit));
    worst.or_else(|| exits.first().copied()).unwrap_or(Exit::Success)
}

fn run_folder(into: Option<PathBuf>, folder: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    match (into, folder) {
        (Some(into), Some(folder)) if into != folder => Err(Error::Usage {
            what: format!("two run folders: `{}` of --into and `{}` of -r", into.display(), folder.display()),
            help: "give one of them".to_owned(),
        }),
        (into, folder) => Ok(into.or_else(|| folder.map(Path::to_owned))),
    }
}

/// What is shown and written of a measured request.
#[derive(Debug, Default)]
pub(super) struct MeasureOutput {
    /// Print the study as JSON in place of the summary.
    pub(super) json: bool,
    /// Write the results to this folder in run-perf's layout.
    pub(super) run_perf: Option<PathBuf>,
}

pub(super) fn measure(
    request: &MeasureRequest,
    session: &SessionOptions,
    input_recorder: Option<&InputRecorder<'_>>,
    output: &MeasureOutput,
    console: &Console,
) -> Result<Exit, Error> {
    let events = console.events();
    let folder = &session.run_folder.path;
    if let Some(layout) = &output.run_perf {
        layout::check(layout, folder)?;
    }
    let mut measured =
        MeasureSession::new(request, session, &events)?.record_inputs(input_recorder).run(|workers, named| {
            let plan = request.plan(Some(workers), named, &events)?;
            warn_of_undecisive_thresholds(&DecidingMetrics::of_plan(&plan, &request.registry));
            Ok(plan)
        })?;
    measured.expected_failures = report_expectations(&measured.study, &request.registry);
    if let Some(layout) = &output.run_perf {
        layout::write(layout, folder, &measured.study)?;
    }
    if output.json {
        print_json(&measured.study)?;
    } else {
        print_text(&wb_report::text::summary(&measured.study, console.stdout_style))?;
        print_text(&format!("\nrun folder: {}\n", folder.display()))?;
    }
    match (measured.end, measured.shortfall_count()) {
        (RunEnd::AlreadyComplete, 0)
            if matches!(measured.published, PublishState::NotRequested | PublishState::UpToDate) =>
        {
            message!("nothing to do: every cell of {} is complete", folder.display());
            return Ok(Exit::NothingToDo);
        }
        (RunEnd::AlreadyComplete, incomplete) if incomplete > measured.expected_failures => {
            message!("measured as far as possible: {} incomplete (see above)", pluralize(incomplete, "cell"));
        }
        _ => {}
    }
    Ok(measured.status().into())
}

/// Reports the cells with an expected failure; returns how many failed before the expectation expired.
fn report_expectations(study: &Study, registry: &Registry) -> usize {
    let today = jiff::Zoned::now().date().to_string();
    let mut failures = 0;
    for result in &study.cells {
        let test_cell = registry.test_cell(result.id.test.as_str(), &result.params);
        let Some(expected) = test_cell.and_then(|cell| cell.expected_failure()) else { continue };
        let (cell, reason, until) = (&result.id, &expected.reason, &expected.until);
        if !result.outcome.is_incomplete() {
            message!("passed, but expected to fail until {until}: {cell} ({reason}): remove the expectation")
        } else if *until < today {
            message!("expected to fail until {until}, which is over: {cell} ({reason})")
        } else {
            failures += 1;
            message!("failed as expected until {until}: {cell} ({reason})");
        }
    }
    failures
}
