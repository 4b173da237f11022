//! Commands that read a run: `summary`, `format`, `study`, `solve`.

use std::path::{Path, PathBuf};

use wb_contention::spec::Statistics;
use wb_plan::{Catalog, SelectableCell, Selection, UnmatchedAssignment};
use wb_record::RunFolder;
use wb_results::CellResult;
use wb_results::Study;
use wb_session::definitions::registry_of_run;
use wb_test::Registry;

use super::contention::{BenchSelection, ReadTarget};
use crate::cli::{FormatArgs, SelectionFlags, SolveArgs, StudyArgs, SummaryArgs};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn load_study(path: &Path, tests_d: &[PathBuf], console: &Console) -> Result<(RunFolder, Study), Error> {
    load_selected(path, tests_d, &SelectionFlags::default(), console)
}

/// Reads a run folder and studies it; the study has the selected cells.
pub(crate) fn load_selected(
    path: &Path,
    tests_d: &[PathBuf],
    flags: &SelectionFlags,
    console: &Console,
) -> Result<(RunFolder, Study), Error> {
    let selection = Selection::new(&flags.select, &flags.ignore)?;
    let run = RunFolder::open(path)?;
    let registry = registry_of_run(&run, tests_d, &console.events())?;
    let mut study = wb_study::study(&run, &registry)?;
    select_cells(&mut study.cells, &selection, &registry, path)?;
    Ok((run, study))
}

pub(crate) fn summary(args: &SummaryArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let SummaryArgs { read: args, selection } = args;
    let target = ReadTarget::new(&args.words, folder, console)?;
    if let Some(exit) = target.run_on_benches(args.json, |benches, output| benches.summary(output))? {
        return Ok(exit);
    }
    let (_, study) = load_selected(&target.run, &args.tests_d, selection, console)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?
    }
    Ok(study_exit(&study))
}

pub(crate) fn format(args: &FormatArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let target = ReadTarget::new(&args.read.words, folder, console)?;
    let statistics = match args.rstat {
        0 => Statistics::None,
        1 => Statistics::Main,
        _ => Statistics::All,
    };
    if let Some(exit) = target.run_on_benches(args.read.json, |benches, output| benches.format(output, statistics))? {
        return Ok(exit);
    }
    if args.rstat > 0 {
        return Err(Error::Usage {
            what: "--rstat has no effect on tests".to_owned(),
            help: "it shows statistics of the contention bench `storage`".to_owned(),
        });
    }
    let (_, study) = load_selected(&target.run, &args.read.tests_d, &args.selection, console)?;
    if args.read.json {
        print_json(&study.cells)?;
    } else {
        print_text(&wb_report::text::format(&study, |_| true, console.stdout_style))?;
    }
    Ok(study_exit(&study))
}

fn select_cells(
    all_cells: &mut Vec<CellResult>,
    selection: &Selection,
    registry: &Registry,
    run: &Path,
) -> Result<(), Error> {
    let all = all_cells.len();
    if selection.is_unrestricted() || all == 0 {
        return Ok(());
    }
    let cells: Vec<SelectableCell<'_>> = all_cells
        .iter()
        .map(|cell| SelectableCell::new(&cell.id, &cell.params, registry.declaration(cell.id.test.as_str())))
        .collect();
    let selected = select(selection, &cells, || format!("`weighbridge summary {}` lists all {all}", run.display()))?;
    let mut selected = selected.into_iter();
    all_cells.retain(|_| selected.next().unwrap_or_default());
    Ok(())
}

/// Whether each cell is selected. Fails if none is, or if the selection names something that no cell has.
pub(crate) fn select(
    selection: &Selection,
    cells: &[SelectableCell<'_>],
    help: impl FnOnce() -> String,
) -> Result<Vec<bool>, Error> {
    if let Some(UnmatchedAssignment { message: what, help }) = selection.find_unmatched(cells) {
        return Err(Error::NothingToDo { what, help });
    }
    let selected: Vec<bool> = cells.iter().map(|cell| selection.skip_reason(cell).is_none()).collect();
    if selected.contains(&true) {
        Ok(selected)
    } else {
        let what = wb_session::describe_empty_selection(&selection.select_patterns());
        Err(Error::NothingToDo { what, help: help() })
    }
}

/// Recomputes the values and writes them to the result.json files.
pub(crate) fn study(args: &StudyArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let StudyArgs { read: args, selection, reports } = args;
    let selection = Selection::new(&selection.select, &selection.ignore)?;
    // resctl-bench's documentation repeats the name of the command as its last argument.
    let words = match (folder, args.words.split_last()) {
        (Some(_), Some((last, others))) if last.as_os_str() == "study" => others,
        _ => &args.words,
    };
    let target = ReadTarget::new(words, folder, console)?;
    if reports.is_some() && target.has_cells()? {
        return Err(Error::Usage {
            what: format!("--reports: {} has results of tests", target.run.display()),
            help: "the artefacts of tests are read from the run folder alone; name benches with -r".to_owned(),
        });
    }
    let study_benches = |benches: &BenchSelection, output| benches.study(reports.as_deref(), output);
    if let Some(exit) = target.run_on_benches(args.json, study_benches)? {
        return Ok(exit);
    }
    let run = RunFolder::open(&target.run)?;
    let registry = registry_of_run(&run, &args.tests_d, &console.events())?;
    let mut study = wb_study::write_results(&run, &registry)?;
    select_cells(&mut study.cells, &selection, &registry, &target.run)?;
    if args.json {
        print_json(&study)?
    } else {
        print_text(&wb_report::text::summary(&study, console.stdout_style))?
    }
    Ok(study_exit(&study))
}

pub(crate) fn solve(args: &SolveArgs, folder: Option<&Path>, console: &Console) -> Result<Exit, Error> {
    let SolveArgs { read: args, selection } = args;
    let selection = Selection::new(&selection.select, &selection.ignore)?;
    let target = ReadTarget::new(&args.words, folder, console)?;
    if let Some(exit) = target.run_on_benches(args.json, |benches, output| benches.solve(output))? {
        return Ok(exit);
    }
    let run = RunFolder::open(&target.run)?;
    let registry = registry_of_run(&run, &args.tests_d, &console.events())?;
    let mut cells = wb_study::current_results(&run, &registry)?;
    select_cells(&mut cells, &selection, &registry, &target.run)?;
    let answers = wb_study::solve::solve(&cells, &registry);
    if args.json {
        print_json(&answers)?;
    } else if answers.is_empty() {
        print_text("no conclusions: the tests of this run draw none from its cells\n")?;
    } else {
        print_text(&wb_report::text::solutions_text(&answers, console.stdout_style))?;
    }
    Ok(Exit::Success)
}

pub(crate) fn study_exit(study: &Study) -> Exit {
    let is_incomplete = study.cells.iter().any(|cell| cell.outcome.is_incomplete()) || study.run.unmeasured.is_some();
    if is_incomplete { Exit::Incomplete } else { Exit::Success }
}
