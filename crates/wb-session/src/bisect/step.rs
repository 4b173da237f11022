//! Builds and measures one revision and classifies it as good or bad.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use wb_model::pluralize;

use super::child_process::{self, ChildExit};
use super::classification::{Classification, classify};
use super::state::{BisectionConfig, BisectionFolder, MeasureMethod, RevisionVerdict};
use crate::error::SessionError;
use crate::event::{EventSink, SessionEvent};
use crate::program::current_program;

/// The maximum number of runs of a revision, as a multiple of those of an endpoint.
pub(super) const MAX_RUNS: u16 = 2;

#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    Verdict(RevisionVerdict),
    Interrupted,
}

pub(super) struct CheckedOutRevision<'a> {
    pub(super) folder: &'a BisectionFolder,
    pub(super) config: &'a BisectionConfig,
    pub(super) name: &'a str,
    pub(super) events: &'a EventSink,
}

impl CheckedOutRevision<'_> {
    /// Classifies the revision, measuring it unless that was done before.
    pub(super) fn run_step(&self) -> Result<StepOutcome, SessionError> {
        let is_classified =
            |verdict: &RevisionVerdict| matches!(verdict, RevisionVerdict::Good { .. } | RevisionVerdict::Bad { .. });
        let steps = self.folder.read_steps()?.into_iter().rev();
        if let Some(step) = steps.into_iter().find(|step| step.name == self.name && is_classified(&step.verdict)) {
            return Ok(StepOutcome::Verdict(step.verdict));
        }
        let Some(verdict) = self.measure_and_classify()? else { return Ok(StepOutcome::Interrupted) };
        let step = self.folder.append_step(self.name, verdict)?;
        let (name, verdict) = (self.name.to_owned(), step.verdict.clone());
        self.events.emit(SessionEvent::RevisionClassified { name, verdict });
        Ok(StepOutcome::Verdict(step.verdict))
    }

    /// Takes runs of the revision until they classify it, or there are enough. `None` if interrupted.
    fn measure_and_classify(&self) -> Result<Option<RevisionVerdict>, SessionError> {
        let mut runs = 0;
        loop {
            match self.measure(runs)? {
                RevisionOutcome::Interrupted => return Ok(None),
                RevisionOutcome::Failed(reason) => return Ok(Some(RevisionVerdict::Skipped { reason })),
                RevisionOutcome::Done => runs += 1,
            }
            match classify(self.folder, self.config, self.name, runs, self.events)? {
                Classification::Verdict(verdict) => return Ok(Some(verdict)),
                Classification::Undecided(position) if runs >= self.config.runs.saturating_mul(MAX_RUNS) => {
                    let runs = pluralize(usize::from(runs), "run");
                    let reason = format!(
                        "{runs} do not show on which side of the middle it is: {position} of the way from the good to the bad revision"
                    );
                    return Ok(Some(RevisionVerdict::Skipped { reason }));
                }
                Classification::Undecided(_) => {}
            }
        }
    }

    /// Takes one run of the revision, after building it if this is the first. Logs and results stay in the folder.
    pub(super) fn measure(&self, run: u16) -> Result<RevisionOutcome, SessionError> {
        if run == 0 { self.build_and_measure(run) } else { self.take_run(run) }
    }

    pub(super) fn build_and_measure(&self, run: u16) -> Result<RevisionOutcome, SessionError> {
        let results = self.folder.results_path(self.name, run);
        if let Some(command) = &self.config.build_command {
            let ended = self.run_shell("build", command, &results)?;
            if !ended.status.success() {
                let log = self.folder.log_path(self.name, "build");
                return Ok(failure_or_interruption("cannot be built", &ended, &log));
            }
        }
        self.take_run(run)
    }

    fn take_run(&self, run: u16) -> Result<RevisionOutcome, SessionError> {
        let results = self.folder.results_path(self.name, run);
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
}

pub(super) enum RevisionOutcome {
    Done,
    Failed(String),
    Interrupted,
}

fn failure_or_interruption(what: &str, ended: &ChildExit, log: &Path) -> RevisionOutcome {
    if ended.interrupted {
        RevisionOutcome::Interrupted
    } else {
        RevisionOutcome::Failed(format!("{what}: {}; {}", ended.status, log.display()))
    }
}

fn is_empty_folder(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
