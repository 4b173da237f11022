//! Commands that read a run: `summary`, `format`, `study`, `solve`.

use std::path::{Path, PathBuf};

use wb_plan::Selection;
use wb_record::RunFolder;
use wb_session::definitions::registry_of_run;
use wb_study::Study;

use super::contention::{BenchSelection, ReadTarget};
use crate::cli::{FormatArgs, ReadArgs, StudyArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

/// Reads a run folder and studies it.
pub(crate) fn load_study(path: &Path, tests_d: &[PathBuf], console: &Console) -> Result<(RunFolder, Study), Error> {
    let run = RunFolder::open(path)?;
    let study = wb_study::study(&run, &registry_of_run(&run, tests_d, &console.events())?)?;
    Ok((run, study))
}

/// Prints one line per cell.
pub(crate) fn summary(args: &ReadArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let target = ReadTarget::new(&args.words, folder)?;
    if let Some(exit) = target.show_benches(args.json, |benches| benches.summary(args.json))? {
        return Ok(exit);
    }
    let (_, study) = load_study(target.run, &args.tests_d, console)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?
    }
    Ok(study_exit(&study))
}

/// Prints all details of each cell.
pub(crate) fn format(args: &FormatArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let selection = Selection::new(&args.select, &args.ignore)?;
    let target = ReadTarget::new(&args.read.words, folder)?;
    if let Some(exit) = target.show_benches(args.read.json, |benches| benches.format(args.read.json))? {
        return Ok(exit);
    }
    let (_, mut study) = load_study(target.run, &args.read.tests_d, console)?;
    select_cells(&mut study, &selection, &args.select, target.run)?;
    if args.read.json {
        print_json(&study.cells)?;
    } else {
        print_text(&wb_report::text::format(&study, |_| true, console.stdout_style))?;
    }
    Ok(study_exit(&study))
}

/// Keeps the selected cells of a study.
pub(crate) fn select_cells(
    study: &mut Study,
    selection: &Selection,
    patterns: &[String],
    run: &Path,
) -> Result<(), Error> {
    let all = study.cells.len();
    study.cells.retain(|cell| selection.skip_reason(&cell.id, None).is_none());
    match study.cells.is_empty() && all > 0 {
        true => Err(Error::NothingToDo {
            what: wb_session::describe_empty_selection(patterns),
            help: format!("`weighbridge summary {}` lists all {all}", run.display()),
        }),
        false => Ok(()),
    }
}

/// Recomputes the values and writes them to the result.json files.
pub(crate) fn study(args: &StudyArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let StudyArgs { read: args, reports } = args;
    let target = ReadTarget::new(&args.words, folder)?;
    let study_benches = |benches: &BenchSelection| benches.study(reports.as_deref(), args.json);
    match target.show_benches(args.json, study_benches)? {
        Some(exit) => return Ok(exit),
        None if reports.is_some() => {
            return Err(Error::Usage {
                what: format!("--reports: {} has results of tests", target.run.display()),
                help: "the artefacts of tests are read from the run folder alone; name benches with -r".to_owned(),
            });
        }
        None => {}
    }
    let run = RunFolder::open(target.run)?;
    let study = wb_study::write_results(&run, &registry_of_run(&run, &args.tests_d, &console.events())?)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?
    }
    Ok(study_exit(&study))
}

/// Prints conclusions from the recorded results.
pub(crate) fn solve(args: &ReadArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let target = ReadTarget::new(&args.words, folder)?;
    if let Some(exit) = target.show_benches(args.json, |benches| benches.solve(args.json))? {
        return Ok(exit);
    }
    let run = RunFolder::open(target.run)?;
    let registry = registry_of_run(&run, &args.tests_d, &console.events())?;
    let answers = wb_study::solve::solve(&wb_study::current_results(&run, &registry)?, &registry);
    if args.json {
        print_json(&answers)?;
    } else if answers.is_empty() {
        print_text("no conclusions: the tests of this run draw none from its cells\n")?;
    } else {
        print_text(&wb_report::text::solutions_text(&answers, console.stdout_style))?;
    }
    Ok(Exit::Success)
}

/// The exit status of commands that show a study.
pub(crate) fn study_exit(study: &Study) -> Exit {
    let is_incomplete = study.cells.iter().any(|cell| cell.outcome.is_incomplete()) || study.run.unmeasured.is_some();
    if is_incomplete { Exit::Incomplete } else { Exit::Success }
}
