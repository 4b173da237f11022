//! `weighbridge run`: measures, records, studies and prints the summary.

use wb_model::pluralize;
use wb_run::RunEnd;
use wb_session::MeasureSession;
use wb_session::publishing::PublishState;

use super::selection::resolve_request;
use crate::cli::RunArgs;
use crate::console::{Console, message};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

/// Runs the requested tests and prints the summary.
pub(crate) fn run(args: &RunArgs, console: &Console) -> Result<Exit, Error> {
    let events = console.events();
    let request = resolve_request(&args.measurement, &events)?;
    let session = args.run_folder.session_options("weighbridge", &args.measurement.hosts, &args.preparation);
    let folder = &session.run_folder.path;
    let measured = MeasureSession::new(&request, &session, &events)?
        .run(|workers, named| request.plan(Some(workers), named, &events))?;
    if args.json {
        print_json(&measured.study)?;
    } else {
        print_text(&wb_report::text::summary(&measured.study, console.stdout_style))?;
        print_text(&format!("\nrun folder: {}\n", folder.display()))?;
    }
    match (measured.end, measured.shortfall_count()) {
        (RunEnd::Complete, 0) if matches!(measured.published, PublishState::NotRequested | PublishState::UpToDate) => {
            message!("nothing to do: every cell of {} is complete", folder.display());
            return Ok(Exit::NothingToDo);
        }
        (RunEnd::Complete, incomplete) if incomplete > 0 => {
            message!("nothing left to measure: {} incomplete (see above)", pluralize(incomplete, "cell"));
        }
        _ => {}
    }
    Ok(measured.status().into())
}
