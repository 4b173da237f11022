//! `weighbridge import`: imports results of other programs into a run.

use std::collections::{BTreeMap, BTreeSet};

use wb_import::{FileReport, Format, ImportReport, ImportRequest, ImportedFile, NameOverrides};
use wb_model::{CellId, pluralize};
use wb_plan::Catalog;
use wb_record::RunFolder;
use wb_session::definitions::registry_of_run;
use wb_session::program::current_program_hash;
use wb_sys::SysRoot;

use crate::cli::import::ImportArgs;
use crate::commands::command_line::recorded_words;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn import(args: ImportArgs, console: &Console) -> Result<Exit, Error> {
    if let Some(test) = args.test.as_ref().filter(|test| wb_tests::built_in().declaration(test.as_str()).is_some()) {
        return Err(Error::Usage {
            what: format!("invalid test name `{test}` for imported results: it is a test of this program"),
            help: format!("choose another name with --test, such as `{test}-imported`"),
        });
    }
    if args.paths.iter().all(|path| !path.exists()) {
        let paths = args.paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
        return Err(Error::Usage {
            what: format!("cannot read {paths}: no such file or folder"),
            help: "name files or folders of results".to_owned(),
        });
    }
    let ImportArgs { test, profile, id, system, .. } = args;
    let report = wb_import::import(&ImportRequest {
        folder: &args.into,
        paths: &args.paths,
        format: args.format,
        names: NameOverrides { test, profile, id, system },
        include_incorrect: args.include_incorrect,
        strict: args.strict,
        command: recorded_words(),
        metadata: args.metadata.into_iter().collect::<BTreeMap<_, _>>(),
        version: env!("CARGO_PKG_VERSION"),
        program_sha256: current_program_hash()?,
        boot_id: SysRoot::real().text("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
    })?;
    report_files(&report, console);
    if report.files.iter().all(|file| file.result.is_err()) {
        return Err(nothing_imported(&report));
    }
    let run = RunFolder::open(&args.into)?;
    let study = wb_study::write_results(&run, &registry_of_run(&run, &[], &console.events())?)?;
    if args.json {
        print_json(&study)?;
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?;
        print_text(&format!("\nrun folder: {}\n", args.into.display()))?;
    }
    if report.failed_files().next().is_some() || report.has_skipped_results() {
        return Ok(Exit::Incomplete);
    }
    if report.samples() == 0 {
        crate::console::message!("nothing to do: {} already has all of these samples", args.into.display());
        return Ok(Exit::NothingToDo);
    }
    let imported: BTreeSet<CellId> =
        run.run_file()?.invocations.pop().into_iter().flat_map(|invocation| invocation.cells).collect();
    let is_incomplete = study.cells.iter().any(|cell| cell.outcome.is_incomplete() && imported.contains(&cell.id));
    Ok(if is_incomplete { Exit::Incomplete } else { Exit::Success })
}

/// Reports the result for each file: skipped files and results always, imported ones unless the console is quiet.
fn report_files(report: &ImportReport, console: &Console) {
    for FileReport { path, result } in &report.files {
        let path = path.display();
        match result {
            Err(error) => crate::console::message!("warning: {path}: {error}; skipped"),
            Ok(imported) if console.quiet => report_skipped(&path, imported),
            Ok(imported) => {
                let duplicates = match imported.duplicates {
                    0 => String::new(),
                    duplicates => format!(", {duplicates} already in the run"),
                };
                let (cells, samples) = (pluralize(imported.cells, "cell"), pluralize(imported.samples, "sample"));
                crate::console::message!("{path}: {}, {cells}, {samples}{duplicates}", imported.format);
                report_skipped(&path, imported);
                imported.notes.iter().for_each(|note| crate::console::message!("note: {path}: {note}"));
            }
        }
    }
    if report.skipped > 0 && !console.quiet {
        crate::console::message!("note: skipped {} of unknown format in folders", pluralize(report.skipped, "file"));
    }
    if report.skipped_serials > 0 && !console.quiet {
        let count = pluralize(report.skipped_serials, "result");
        crate::console::message!("note: skipped {count} under a non-numeric serial; --include-incorrect imports them");
    }
}

/// Reports skipped results, even if the console is quiet: they determine the exit status.
fn report_skipped(path: &impl std::fmt::Display, imported: &ImportedFile) {
    imported.skipped.iter().for_each(|note| crate::console::message!("note: {path}: {note}"));
}

fn nothing_imported(report: &ImportReport) -> Error {
    let help = format!("supported formats: {}; docs/import.md describes the files", Format::names());
    match report.files.len() {
        0 => Error::NothingToDo { what: "no result files found".to_owned(), help },
        _ => Error::Incomplete { what: "nothing could be imported".to_owned(), help },
    }
}
