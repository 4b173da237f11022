//! `weighbridge import`.

use std::collections::{BTreeMap, BTreeSet};

use wb_import::{FileReport, Format, ImportReport, ImportRequest, NameOverrides};
use wb_model::secrets::mask_arguments;
use wb_model::{CellId, pluralize};
use wb_plan::Catalog;
use wb_record::RunFolder;
use wb_sys::SysRoot;
use wb_tests::Registry;

use super::definitions::registry;
use super::{current_program_hash, print_json, print_text};
use crate::cli::import::ImportArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Takes results of other programs into a run, studies it, and shows the summary.
pub(crate) fn import(args: ImportArgs, console: &Console) -> Result<Exit, Error> {
    if let Some(test) = args.test.as_ref().filter(|test| Registry::built_in().declaration(test.as_str()).is_some()) {
        return Err(Error::Usage {
            what: format!("`{test}` is a test of this program, and imported results are of another"),
            help: format!("choose another name with --test, `{test}-imported` say"),
        });
    }
    if args.paths.iter().all(|path| !path.exists()) {
        let paths = args.paths.iter().map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
        return Err(Error::Usage {
            what: format!("there is no {paths}"),
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
        command: mask_arguments(std::env::args()),
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
    let study = wb_study::write_results(&run, &registry(&[], Some(&run.tests_folder()))?)?;
    if args.json {
        print_json(&study)?;
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?;
        print_text(&format!("\nrun folder: {}\n", args.into.display()))?;
    }
    if report.failed_files().next().is_some() {
        return Ok(Exit::Incomplete);
    }
    if report.samples() == 0 {
        crate::console::tell!("nothing to do: {} has all of these samples already", args.into.display());
        return Ok(Exit::NothingToDo);
    }
    let imported: BTreeSet<CellId> = run.run_file()?.entries.pop().into_iter().flat_map(|entry| entry.cells).collect();
    let short = study.cells.iter().any(|cell| cell.outcome.is_incomplete() && imported.contains(&cell.cell));
    Ok(if short { Exit::Incomplete } else { Exit::Success })
}

/// Says what became of each file: of those that were left out always, of the others unless it is to be quiet.
fn report_files(report: &ImportReport, console: &Console) {
    for FileReport { path, result: became } in &report.files {
        let path = path.display();
        match became {
            Err(why) => crate::console::tell!("warning: {path}: {why}; it is left out"),
            Ok(_) if console.quiet => {}
            Ok(imported) => {
                let already = match imported.duplicates {
                    0 => String::new(),
                    already => format!(", {already} more that the run has already"),
                };
                let (cells, samples) = (pluralize(imported.cells, "cell"), pluralize(imported.samples, "sample"));
                crate::console::tell!("{path}: {}, {cells}, {samples}{already}", imported.format);
                imported.notes.iter().for_each(|note| crate::console::tell!("note: {path}: {note}"));
            }
        }
    }
    if report.skipped > 0 && !console.quiet {
        crate::console::tell!("note: passed over {} in folders: of no known format", pluralize(report.skipped, "file"));
    }
    if report.skipped_serials > 0 && !console.quiet {
        let count = pluralize(report.skipped_serials, "result");
        crate::console::tell!("note: left out {count} under a non-numeric serial; --include-incorrect imports them");
    }
}

fn nothing_imported(report: &ImportReport) -> Error {
    let help = format!("results of {} can be imported; docs/import.md says which files these are", Format::names());
    match report.files.len() {
        0 => Error::NothingToDo { what: "there is no file of results".to_owned(), help },
        _ => Error::Incomplete { what: "nothing could be imported".to_owned(), help },
    }
}
