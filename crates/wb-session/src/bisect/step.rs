//! Builds and measures one revision and classifies it as good or bad.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use wb_compare::run_perf::nearest::{DecidedBy, NearestError, nearest};
use wb_compare::{BuildSource, Builds, ReadOptions};
use wb_record::RunFolder;

use super::child_process::{self, ChildExit};
use super::state::{BisectionConfig, BisectionEndpoint, BisectionFolder, MeasureMethod, RevisionVerdict};
use crate::definitions::study_in_memory;
use crate::error::SessionError;
use crate::event::{EventSink, SessionEvent};
use crate::program::current_program;

/// Minimum relative gap between the similarity to the nearer endpoint and to the other one.
const MIN_RELATIVE_GAP: f64 = 0.2;

/// Outcome of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    /// The revision has a verdict.
    Verdict(RevisionVerdict),
    /// The user interrupted it.
    Interrupted,
}

/// The revision that is checked out, to be built, measured and classified.
pub(super) struct CheckedOutRevision<'a> {
    pub(super) folder: &'a BisectionFolder,
    pub(super) config: &'a BisectionConfig,
    pub(super) name: &'a str,
    pub(super) events: &'a EventSink,
}

impl CheckedOutRevision<'_> {
    /// Classifies the revision, measuring it unless that was done before.
    pub(super) fn run_step(&self) -> Result<StepOutcome, SessionError> {
        let previous = self.folder.read_steps()?.into_iter().rev().find(|step| step.name == self.name);
        if let Some(step) =
            previous.filter(|step| matches!(step.verdict, RevisionVerdict::Good { .. } | RevisionVerdict::Bad { .. }))
        {
            return Ok(StepOutcome::Verdict(step.verdict));
        }
        let verdict = match self.measure(0)? {
            RevisionOutcome::Interrupted => return Ok(StepOutcome::Interrupted),
            RevisionOutcome::Failed(why) => RevisionVerdict::Skipped { reason: why },
            RevisionOutcome::Done => self.nearest_endpoint()?,
        };
        let step = self.folder.append_step(self.name, verdict)?;
        let (name, verdict) = (self.name.to_owned(), step.verdict.clone());
        self.events.emit(SessionEvent::RevisionClassified { name, verdict });
        Ok(StepOutcome::Verdict(step.verdict))
    }

    /// Takes one run of the revision, after building it if this is the first. Logs and results stay in the folder.
    pub(super) fn measure(&self, run: u16) -> Result<RevisionOutcome, SessionError> {
        let results = self.folder.results_path(self.name, run);
        if let Some(command) = self.config.build_command.as_ref().filter(|_| run == 0) {
            let ended = self.run_shell("build", command, &results)?;
            if !ended.status.success() {
                let log = self.folder.log_path(self.name, "build");
                return Ok(failure_or_interruption("cannot be built", &ended, &log));
            }
        }
        let ended = match &self.config.measure {
            MeasureMethod::Command(command) => {
                fs::create_dir_all(&results).map_err(SessionError::file("create", &results))?;
                self.run_shell("measure", command, &results)?
            }
            MeasureMethod::Run(words) => self.run_weighbridge(words, &results)?,
        };
        Ok(match (ended.status.code(), &self.config.measure) {
            (Some(0), MeasureMethod::Command(_)) if is_empty_folder(&results) => {
                let what = "the measuring command succeeded";
                RevisionOutcome::Failed(format!("{what}, but left no results in the folder $WEIGHBRIDGE_RESULTS"))
            }
            (Some(0), _) => RevisionOutcome::Done,
            // Partial results count: what is missing is missing for all revisions, or is like the endpoint that
            // lacks it.
            (Some(3 | 4), MeasureMethod::Run(_)) => RevisionOutcome::Done,
            _ => failure_or_interruption("cannot be measured", &ended, &self.folder.log_path(self.name, "measure")),
        })
    }

    fn run_shell(&self, what: &str, command: &str, results: &Path) -> Result<ChildExit, SessionError> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.config.repo);
        shell.env("WEIGHBRIDGE_RESULTS", results).env("WEIGHBRIDGE_REVISION", self.name);
        self.run_logged(what, shell)
    }

    /// Runs `weighbridge run` in a process of its own, so that it measures just as when started by hand.
    fn run_weighbridge(&self, words: &[String], results: &Path) -> Result<ChildExit, SessionError> {
        let mut run = Command::new(current_program()?);
        run.args(["run", "--into"]).arg(results).args(words).current_dir(&self.config.working_dir);
        self.run_logged("measure", run)
    }

    fn run_logged(&self, what: &str, mut command: Command) -> Result<ChildExit, SessionError> {
        let path = self.folder.log_path(self.name, what);
        let failed = SessionError::file("write", &path);
        let log = File::options().create(true).append(true).open(&path).map_err(failed)?;
        let log_stderr = log.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(log).stderr(log_stderr);
        child_process::run_interruptible(command)
    }

    fn nearest_endpoint(&self) -> Result<RevisionVerdict, SessionError> {
        let typed = [
            self.folder.results_path(self.name, 0).display().to_string(),
            endpoint_results(self.folder, self.config, &self.config.good),
            endpoint_results(self.folder, self.config, &self.config.bad),
        ];
        let builds = read_builds(&typed, self.events)?;
        let nearest = match nearest(&builds, 0, &[vec![1], vec![2]], 1.0) {
            Ok(nearest) => nearest,
            Err(error @ NearestError::NothingInCommon) => {
                return Ok(RevisionVerdict::Skipped { reason: error.to_string() });
            }
            Err(error) => return Err(error.into()),
        };
        let sums = if nearest.by == DecidedBy::Others { &nearest.others } else { &nearest.primary };
        let similarity = [sums[0], sums[1]];
        let unclear = (similarity[0] - similarity[1]).abs() < MIN_RELATIVE_GAP * similarity[0].max(similarity[1]);
        Ok(match (nearest.by, nearest.candidate) {
            _ if unclear || nearest.by == DecidedBy::Order => {
                let [good, bad] = similarity;
                RevisionVerdict::Skipped {
                    reason: format!(
                        "inconclusive: similarity {good:.3} to the good revision and {bad:.3} to the bad one"
                    ),
                }
            }
            (_, 0) => RevisionVerdict::Good { similarity },
            _ => RevisionVerdict::Bad { similarity },
        })
    }
}

/// Outcome of measuring a revision.
pub(super) enum RevisionOutcome {
    Done,
    Failed(String),
    Interrupted,
}

fn failure_or_interruption(what: &str, ended: &ChildExit, log: &Path) -> RevisionOutcome {
    match ended.interrupted {
        true => RevisionOutcome::Interrupted,
        false => RevisionOutcome::Failed(format!("{what}: {}; {}", ended.status, log.display())),
    }
}

fn is_empty_folder(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// The results of an endpoint, as a build argument: runs separated by commas.
pub(super) fn endpoint_results(
    folder: &BisectionFolder,
    about: &BisectionConfig,
    endpoint: &BisectionEndpoint,
) -> String {
    let resolve = |run: &str| about.working_dir.join(run).display().to_string();
    match &endpoint.results {
        Some(runs) => runs.split(',').map(resolve).collect::<Vec<_>>().join(","),
        None => {
            let runs = (0..about.runs).map(|run| folder.results_path(&endpoint.revision, run).display().to_string());
            runs.collect::<Vec<_>>().join(",")
        }
    }
}

/// Reads builds whose names do not matter.
pub(super) fn read_builds(typed: &[String], events: &EventSink) -> Result<Builds, SessionError> {
    let source = |(at, text): (usize, &String)| BuildSource::parse(&format!("{at}={text}"));
    let sources = typed.iter().enumerate().map(source).collect::<Result<Vec<_>, _>>()?;
    let study = |run: &RunFolder| study_in_memory(run, events);
    Ok(wb_compare::read(&sources, &ReadOptions::default(), &study)?.builds)
}
