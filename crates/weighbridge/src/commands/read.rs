//! Commands that read a run: `summary`, `format`, `study`, `solve`.

use wb_plan::Selection;
use wb_record::RunFolder;
use wb_study::Study;

use super::what::registry;
use super::{print_json, print_text};
use crate::cli::{FormatArgs, ReadArgs, SolveArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Studies a run afresh.
pub(crate) fn studied(args: &ReadArgs) -> Result<(RunFolder, Study), Error> {
    let run = RunFolder::open(&args.run)?;
    let study = wb_study::study(&run, &registry(&args.tests_d, Some(&run.tests()))?)?;
    Ok((run, study))
}

/// One line per cell.
pub(crate) fn summary(args: &ReadArgs, console: &Console) -> Result<Exit, Error> {
    let (_, study) = studied(args)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.out))?
    }
    Ok(exit(&study))
}

/// Everything of each cell.
pub(crate) fn format(args: &FormatArgs, console: &Console) -> Result<Exit, Error> {
    let selection = Selection::new(&args.select, &args.ignore)?;
    let (_, mut study) = studied(&args.read)?;
    let all = study.cells.len();
    study.cells.retain(|cell| selection.leaves_out(&cell.cell).is_none());
    if study.cells.is_empty() {
        return Err(Error::Nothing {
            what: "no cell matches".to_owned(),
            help: format!("`weighbridge summary {}` lists all {all}", args.read.run.display()),
        });
    }
    if args.read.json {
        print_json(&study.cells)?;
    } else {
        print_text(&wb_report::text::format(&study, |_| true, console.out))?;
    }
    Ok(exit(&study))
}

/// Reads the values anew and writes them down.
pub(crate) fn study(args: &ReadArgs, console: &Console) -> Result<Exit, Error> {
    let run = RunFolder::open(&args.run)?;
    let study = wb_study::write_results(&run, &registry(&args.tests_d, Some(&run.tests()))?)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.out))?
    }
    Ok(exit(&study))
}

/// Concludes from results, those of the records as they stand.
pub(crate) fn solve(args: &SolveArgs, console: &Console) -> Result<Exit, Error> {
    let run = RunFolder::open(&args.read.run)?;
    let registry = registry(&args.read.tests_d, Some(&run.tests()))?;
    let answers = wb_study::solve::solve(&wb_study::current_results(&run, &registry)?, &registry);
    if args.read.json {
        print_json(&answers)?;
    } else if answers.is_empty() {
        print_text("nothing follows from these cells together\n")?;
    } else {
        print_text(&wb_report::text::answers(&answers, console.out))?;
    }
    Ok(Exit::Fine)
}

fn exit(study: &Study) -> Exit {
    if study.cells.iter().any(|cell| cell.outcome.falls_short()) { Exit::FellShort } else { Exit::Fine }
}
