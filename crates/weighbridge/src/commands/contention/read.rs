//! What reading commands show of contention benches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wb_contention::execute::{StudyRequest, read_results, solve_results, study_results};
use wb_contention::format::{Detail, Times, format};
use wb_contention::record::{SequenceHistory, read_history};
use wb_contention::spec::{FormatOptions, FormatSpec, PdfFile, SelectedBench, Statistics};
use wb_diagnostics::DiagnosticCollector;
use wb_record::RunFolder;
use wb_results::contention::{Answer, Bench, BenchResult, Instance};

use crate::cli::OutputPath;
use crate::commands::latest_run::resolve_run;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text, reserve_standard_output, write_file};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    Json,
    /// JSON is one document, and that of the cells follows.
    Nothing,
}

/// The subject of a command that reads: a run, and all or some of its contention benches.
#[derive(Debug)]
pub(crate) struct ReadTarget {
    pub(crate) run: PathBuf,
    benches: Vec<String>,
}

impl ReadTarget {
    /// With `-r`, the arguments are benches; otherwise the only one is the run folder. Without any, it is the newest run.
    pub(crate) fn new(words: &[PathBuf], folder: Option<&Path>, console: &Console) -> Result<Self, Error> {
        match (folder, words) {
            (Some(run), benches) => {
                let benches = benches.iter().map(|bench| bench.to_string_lossy().into_owned()).collect();
                Ok(Self { run: resolve_run(Some(run), console)?, benches })
            }
            (None, []) => Ok(Self { run: resolve_run(None, console)?, benches: Vec::new() }),
            (None, [run]) => Ok(Self { run: resolve_run(Some(run), console)?, benches: Vec::new() }),
            (None, [run, more, ..]) => Err(Error::Usage {
                what: format!("unexpected argument `{}` after the run folder `{}`", more.display(), run.display()),
                help: format!("to read some benches of a run: `-r {} {}`", run.display(), more.display()),
            }),
        }
    }

    /// Runs a command on the benches of the run. `None` if the command goes on with the cells of tests, of which there are
    /// none in most runs with benches.
    pub(crate) fn run_on_benches(
        &self,
        json: bool,
        command: impl FnOnce(&BenchSelection, Output) -> Result<Exit, Error>,
    ) -> Result<Option<Exit>, Error> {
        let Some(benches) = self.benches()? else { return Ok(None) };
        if !self.has_cells()? {
            return command(&benches, if json { Output::Json } else { Output::Text }).map(Some);
        }
        match command(&benches, if json { Output::Nothing } else { Output::Text }) {
            Ok(_) => {}
            // The cells may have what the benches have not.
            Err(Error::NothingToDo { .. }) if json => {}
            Err(Error::NothingToDo { .. }) => benches.print_unfinished()?,
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    /// Whether the command is one for cells of tests, too: the run has some, and no bench is selected.
    pub(crate) fn has_cells(&self) -> Result<bool, Error> {
        let invocations = RunFolder::open(&self.run)?.run_file()?.invocations;
        Ok(self.benches.is_empty() && invocations.iter().any(|invocation| !invocation.cells.is_empty()))
    }

    /// The selected benches; `None` if the run has no results of benches, and none are selected.
    fn benches(&self) -> Result<Option<BenchSelection>, Error> {
        let run = RunFolder::open(&self.run)?;
        let history = read_history(&run)?;
        if self.benches.is_empty() && history.instances().is_empty() && history.unfinished().is_empty() {
            return Ok(None);
        }
        Ok(Some(BenchSelection { run, history, words: self.benches.clone() }))
    }
}

/// Parses selections of results, and reports the mistakes of all.
fn parse_selected(words: &[String]) -> Result<Vec<SelectedBench>, Error> {
    let mut mistakes = DiagnosticCollector::default();
    let selected = words.iter().filter_map(|word| mistakes.ok(SelectedBench::parse(word))).collect();
    mistakes.finish()?;
    Ok(selected)
}

fn pdf_file(spec: &FormatSpec) -> Option<OutputPath> {
    match &spec.options.pdf {
        Some(PdfFile::At(path)) => Some(path.clone().into()),
        Some(PdfFile::OfRun) | None => None,
    }
}

/// Selected results of benches of a run.
#[derive(Debug)]
pub(crate) struct BenchSelection {
    run: RunFolder,
    history: SequenceHistory,
    /// Selections as typed; none: all.
    words: Vec<String>,
}

impl BenchSelection {
    pub(crate) fn summary(&self, output: Output) -> Result<Exit, Error> {
        let selected = parse_selected(&self.words)?;
        let mut results = read_results(&self.run, &self.history)?;
        results.retain(|result| selected.is_empty() || selected.iter().any(|bench| bench.includes(&result.instance)));
        self.print_summaries(&results, output)
    }

    pub(crate) fn format(&self, output: Output, statistics: Statistics) -> Result<Exit, Error> {
        let mut mistakes = DiagnosticCollector::default();
        let specs: Vec<FormatSpec> =
            self.words.iter().filter_map(|word| mistakes.ok(FormatSpec::parse(word))).collect();
        mistakes.finish()?;
        if specs.iter().filter_map(pdf_file).any(|path| path.is_standard_output()) {
            reserve_standard_output();
        }
        let mut shown = Vec::new();
        for result in read_results(&self.run, &self.history)? {
            let including = || specs.iter().filter(|spec| spec.includes(&result.instance));
            let spec = including().find(|spec| spec.names_instance()).or_else(|| including().next());
            let options = match spec {
                Some(spec) => spec.options.clone(),
                None if specs.is_empty() => FormatOptions::default(),
                None => continue,
            };
            shown.push((result, FormatOptions { statistics, ..options }));
        }
        if shown.is_empty() {
            return Err(self.nothing());
        }
        let documents = self.documents(&shown);
        match output {
            Output::Nothing => return Ok(Exit::Success),
            Output::Json if !documents.is_empty() => {
                return Err(Error::Usage {
                    what: "--json writes no PDF".to_owned(),
                    help: "without --json, `pdf` writes the file; without `pdf`, --json prints the result".to_owned(),
                });
            }
            Output::Json => {
                print_json(&shown.iter().map(|(result, _)| result).collect::<Vec<_>>())?;
                return Ok(Exit::Success);
            }
            Output::Text => {}
        }
        let mut instances = BTreeMap::new();
        for (instance, path) in &documents {
            if let Some(other) = instances.insert(path.to_string(), instance) {
                return Err(Error::Usage {
                    what: format!("{path} cannot have the charts of both {other} and {instance}"),
                    help: format!("name a file for each: `{other}:pdf=FILE {instance}:pdf=FILE`"),
                });
            }
        }
        for (result, options) in &shown {
            let path = documents.iter().find(|(instance, _)| **instance == result.instance).map(|(_, path)| path);
            self.print_full(result, options, path)?;
        }
        self.print_unfinished()?;
        Ok(Exit::Success)
    }

    /// The instances whose charts are written, each with its file: without a name, that of the run and, of several results,
    /// of the instance.
    fn documents<'a>(&self, shown: &'a [(BenchResult, FormatOptions)]) -> Vec<(&'a Instance, OutputPath)> {
        let requested = || {
            shown.iter().filter_map(|(result, options)| {
                matches!(result.answer, Answer::IocostTune(_)).then_some((&result.instance, options.pdf.as_ref()?))
            })
        };
        let run = self.run.name();
        let is_single = requested().nth(1).is_none();
        let path = |instance: &Instance, file: &PdfFile| match file {
            PdfFile::At(path) => path.clone(),
            PdfFile::OfRun if is_single => PathBuf::from(format!("{run}.pdf")),
            PdfFile::OfRun => PathBuf::from(format!("{run}-{instance}.pdf")),
        };
        requested().map(|(instance, file)| (instance, path(instance, file).into())).collect()
    }

    fn print_full(
        &self,
        result: &BenchResult,
        options: &FormatOptions,
        document: Option<&OutputPath>,
    ) -> Result<(), Error> {
        let (Some(path), Answer::IocostTune(answer)) = (document, &result.answer) else {
            return print_text(&format!("{}\n", format(result, self.times(&result.instance), Detail::Full, options)));
        };
        let text = format(result, self.times(&result.instance), Detail::Summary, options);
        let document = wb_report::contention::tune_pdf(&text, answer);
        write_file(path, &document.map_err(|error| Error::Internal(error.to_string()))?)?;
        print_text(&format!("{}: {path}\n", result.instance))
    }

    /// Derives results again from raw reports, and prints their summaries.
    pub(crate) fn study(&self, reports: Option<&Path>, output: Output) -> Result<Exit, Error> {
        let benches = parse_selected(&self.words)?;
        let benches = (!benches.is_empty()).then_some(benches.as_slice());
        let results = study_results(&self.run, &StudyRequest { benches, reports })?;
        self.print_summaries(&results, output)
    }

    pub(crate) fn solve(&self, output: Output) -> Result<Exit, Error> {
        let selected = parse_selected(&self.words)?;
        if let Some(bench) = selected.iter().map(|one| one.spec.bench()).find(|bench| *bench != Bench::IocostTune) {
            return Err(Error::Usage {
                what: format!("cannot solve {bench}: its result follows from measurements alone"),
                help: format!("`solve` computes solutions of iocost-tune; `study {bench}` derives a result again"),
            });
        }
        let results = solve_results(&self.run, &selected)?;
        if results.is_empty() {
            return Err(self.nothing_of("result of iocost-tune, which has the solutions,"));
        }
        self.print_summaries(&results, output)
    }

    fn print_summaries(&self, results: &[BenchResult], output: Output) -> Result<Exit, Error> {
        if results.is_empty() {
            return Err(self.nothing());
        }
        match output {
            Output::Nothing => {}
            Output::Json => print_json(&results)?,
            Output::Text => {
                for result in results {
                    let times = self.times(&result.instance);
                    let text = format(result, times, Detail::Summary, &FormatOptions::default());
                    print_text(&format!("{text}\n"))?;
                }
                self.print_unfinished()?;
            }
        }
        Ok(Exit::Success)
    }

    fn print_unfinished(&self) -> Result<(), Error> {
        if !self.words.is_empty() {
            return Ok(());
        }
        self.history.unfinished().iter().try_for_each(|bench| print_text(&format!("{bench}\n")))
    }

    fn times(&self, instance: &Instance) -> Option<Times<'_>> {
        self.history.times(instance).map(|(start, end)| Times { start, end })
    }

    fn quoted_words(&self) -> String {
        self.words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    }

    fn nothing(&self) -> Error {
        if self.words.is_empty() {
            self.nothing_of("results of contention benches")
        } else {
            self.nothing_of(&format!("result of {}", self.quoted_words()))
        }
    }

    /// The error for what the run does not have, with the benches that it has.
    fn nothing_of(&self, what: &str) -> Error {
        let present: Vec<String> = self.history.instances().iter().map(ToString::to_string).collect();
        let unfinished: Vec<String> = self.history.unfinished().iter().map(ToString::to_string).collect();
        let mut help = Vec::new();
        if !present.is_empty() {
            help.push(format!("it has {}", present.join(", ")));
        }
        if !unfinished.is_empty() {
            help.extend(unfinished);
            help.push("repeat the same `run` to go on at the last checkpoint".to_owned());
        }
        if help.is_empty() {
            help.push("`weighbridge -r DIR run BENCH` measures a bench".to_owned());
        }
        Error::NothingToDo { what: format!("no {what} in {}", self.run.path().display()), help: help.join("; ") }
    }
}

/// The folders of the benches of a run that are not selected; none without a selection.
pub(crate) fn unselected_folders(target: &ReadTarget) -> Result<Vec<String>, Error> {
    let selected = parse_selected(&target.benches)?;
    let Some(selection) = target.benches()?.filter(|_| !selected.is_empty()) else { return Ok(Vec::new()) };
    let instances = selection.history.instances();
    let is_selected = |instance: &Instance| selected.iter().any(|one| one.includes(instance));
    if !instances.iter().any(|instance| is_selected(instance)) {
        return Err(selection.nothing());
    }
    Ok(instances.into_iter().filter(|instance| !is_selected(instance)).map(ToString::to_string).collect())
}
