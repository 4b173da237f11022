//! `weighbridge report`: writes a run as an HTML page, CSV, JSON or text.

use std::collections::BTreeMap;

use wb_record::RunFolder;
use wb_record::journal::IMPORTED_FOLDER;
use wb_report::page::{ReproduceCommand, RunExtras, TelemetrySeries};
use wb_results::Study;
use wb_session::variants::read_experiment;

use super::contention::ReadTarget;
use super::latest_run::resolve_run;
use super::read;
use crate::cli::ReportArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text, write_file, write_files};

pub(crate) fn report(args: &ReportArgs, console: &Console) -> Result<Exit, Error> {
    let folder = resolve_run(args.run.as_deref(), console)?;
    if args.html.is_none() && args.csv.is_none() && !args.json {
        let words: Vec<_> = args.run.iter().cloned().collect();
        let target = ReadTarget::new(&words, None, console)?;
        if let Some(exit) = target.run_on_benches(false, |benches, output| benches.summary(output))? {
            return Ok(exit);
        }
    }
    let (run, study) = read::load_selected(&folder, &args.tests_d, &args.selection, console)?;
    if let Some(path) = &args.html {
        let extras = RunExtras {
            telemetry: read_telemetry(&run, &study),
            experiment: read_experiment(&run)?,
            commands: reproduce_commands(&run)?,
        };
        write_file(path, &wb_report::page::html(&study, &extras).map_err(|error| Error::Internal(error.to_string()))?)?;
        crate::console::message!("page: {path}");
    }
    if let Some(prefix) = &args.csv {
        let texts = [wb_report::csv::metrics(&study), wb_report::csv::samples(&study)];
        let files = write_files(prefix, texts)?;
        crate::console::message!("figures: {files}");
    }
    if args.json {
        print_json(&study)?;
    } else if args.html.is_none() && args.csv.is_none() {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?;
        if let Some(experiment) = read_experiment(&run)? {
            print_text(&wb_report::compare::experiment_text(&experiment, console.stdout_style))?;
        }
    }
    Ok(read::study_exit(&study))
}

fn reproduce_commands(run: &wb_record::RunFolder) -> Result<Vec<ReproduceCommand>, Error> {
    let invocations = run.run_file()?.invocations;
    let line = |invocation: &wb_record::Invocation| ReproduceCommand {
        purpose: format!("as run at {}", invocation.started.replace('T', " ").replace('Z', " UTC")),
        line: shell_words::join(&invocation.command),
    };
    Ok(invocations.iter().map(line).collect())
}

/// Telemetry by the folder of the attempt. Attempts that failed early have none; an unreadable file causes a warning.
fn read_telemetry(run: &RunFolder, study: &Study) -> BTreeMap<String, Vec<TelemetrySeries>> {
    let mut all = BTreeMap::new();
    for folder in study.cells.iter().flat_map(|cell| &cell.attempts).map(|sample| &sample.folder) {
        if folder.starts_with(IMPORTED_FOLDER) {
            continue;
        }
        match run.read_json(&run.path().join(folder).join("telemetry.json")) {
            Ok(Some(telemetry)) => drop(all.insert(folder.clone(), crate::telemetry::series(&telemetry))),
            Ok(None) => {}
            Err(error) => crate::console::message!("warning: the page has no telemetry of {folder}: {error}"),
        }
    }
    all
}
