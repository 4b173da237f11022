//! Commands that read a run: `summary`, `format`, `study`, `solve`.

use wb_plan::Selection;
use wb_record::RunFolder;
use wb_study::Study;

use super::selection::registry;
use super::{print_json, print_text};
use crate::cli::{FormatArgs, ReadArgs, SolveArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Studies a run afresh.
pub(crate) fn load_study(args: &ReadArgs) -> Result<(RunFolder, Study), Error> {
    let run = RunFolder::open(&args.run)?;
    let study = wb_study::study(&run, &registry(&args.tests_d, Some(&run.tests_folder()))?)?;
    Ok((run, study))
}

/// One line per cell.
pub(crate) fn summary(args: &ReadArgs, console: &Console) -> Result<Exit, Error> {
    let (_, study) = load_study(args)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?
    }
    Ok(study_exit(&study))
}

/// Everything of each cell.
pub(crate) fn format(args: &FormatArgs, console: &Console) -> Result<Exit, Error> {
    let selection = Selection::new(&args.select, &args.ignore)?;
    let (_, mut study) = load_study(&args.read)?;
    let all = study.cells.len();
    study.cells.retain(|cell| selection.skip_reason(&cell.cell).is_none());
    if study.cells.is_empty() {
        return Err(Error::NothingToDo {
            what: "no cell matches".to_owned(),
            help: format!("`weighbridge summary {}` lists all {all}", args.read.run.display()),
        });
    }
    if args.read.json {
        print_json(&study.cells)?;
    } else {
        print_text(&wb_report::text::format(&study, |_| true, console.stdout_style))?;
    }
    Ok(study_exit(&study))
}

/// Reads the values anew and writes them down.
pub(crate) fn study(args: &ReadArgs, console: &Console) -> Result<Exit, Error> {
    let run = RunFolder::open(&args.run)?;
    let study = wb_study::write_results(&run, &registry(&args.tests_d, Some(&run.tests_folder()))?)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?
    }
    Ok(study_exit(&study))
}

/// Concludes from results, those of the records as they stand.
pub(crate) fn solve(args: &SolveArgs, console: &Console) -> Result<Exit, Error> {
    let run = RunFolder::open(&args.read.run)?;
    let registry = registry(&args.read.tests_d, Some(&run.tests_folder()))?;
    let answers = wb_study::solve::solve(&wb_study::current_results(&run, &registry)?, &registry);
    if args.read.json {
        print_json(&answers)?;
    } else if answers.is_empty() {
        print_text("nothing follows from these cells together\n")?;
    } else {
        print_text(&wb_report::text::solutions_text(&answers, console.stdout_style))?;
    }
    Ok(Exit::Success)
}

fn study_exit(study: &Study) -> Exit {
    if study.cells.iter().any(|cell| cell.outcome.is_incomplete()) { Exit::Incomplete } else { Exit::Success }
}
