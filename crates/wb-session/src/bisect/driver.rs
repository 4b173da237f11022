//! Measures both endpoints of a bisection, the good and the bad revision that the user gives, then drives
//! `git bisect run`.

use std::path::Path;
use std::process::Stdio;

use wb_compare::run_perf::tolerance::totals::ComparisonExit;

use super::BisectError;
use super::child_process::{self, ChildExit};
use super::classification::DecidingMetric;
use super::confirmation::Confirmation;
use super::endpoints;
use super::git::Git;
use super::nearest_difference::NearestDifference;
use super::options::BisectionOptions;
use super::state::{BisectionConfig, BisectionEndpoint, BisectionFolder, BisectionStep, RevisionVerdict};
use super::step::{CheckedOutRevision, MAX_RUNS, RevisionOutcome};
use crate::error::SessionError;
use crate::event::{EventSink, SessionEvent};
use crate::program::current_program;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BisectionOutcome {
    /// The first bad revision, described on one line.
    FirstBad(String),
    Interrupted,
}

/// Measures the endpoints and drives git. `quiet`: the processes that measure revisions print only errors.
pub fn run(options: &BisectionOptions, quiet: bool, events: &EventSink) -> Result<BisectionOutcome, SessionError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(SessionError::file("locate", path));
    let repo = absolute(&options.repo)?;
    let git = Git(&repo);
    let endpoint = |name: &str, results: &Option<String>| {
        Ok::<_, SessionError>(BisectionEndpoint { revision: git.rev_parse(name)?, results: results.clone() })
    };
    let config = BisectionConfig {
        good: endpoint(&options.good, &options.good_results)?,
        bad: endpoint(&options.bad, &options.bad_results)?,
        working_dir: absolute(Path::new("."))?,
        build_command: options.build.clone(),
        measure: options.measure_method(),
        runs: options.runs,
        threshold: options.threshold,
        run_noise: options.run_noise,
        repo: repo.clone(),
    };
    git.require_clean()?;
    if git.run(&["merge-base", "--is-ancestor", &config.bad.revision, &config.good.revision]).is_ok() {
        let [bad, good] = [&config.bad, &config.good].map(|endpoint| git.describe_revision(&endpoint.revision));
        return Err(BisectError::WrongOrder { bad, good }.into());
    }
    if git.is_bisecting() {
        return Err(BisectError::InProgress.into());
    }
    let folder = BisectionFolder::new(&options.into)?;
    folder.create_or_resume(&config)?;
    let bisection = BisectionDriver { git: &git, folder: &folder, config: &config, options, quiet, events };
    let original_checkout =
        git.run(&["symbolic-ref", "--short", "--quiet", "HEAD"]).or_else(|_| git.rev_parse("HEAD"))?;
    let ended = bisection.measure_endpoints().and_then(|interrupted| match interrupted {
        Some(interrupted) => Ok(interrupted),
        None => bisection.run_git_bisect(),
    });
    // Restore the user's checkout, whatever happened.
    git.run(&["checkout", "--quiet", &original_checkout])?;
    ended
}

struct BisectionDriver<'a> {
    git: &'a Git<'a>,
    folder: &'a BisectionFolder,
    config: &'a BisectionConfig,
    options: &'a BisectionOptions,
    quiet: bool,
    events: &'a EventSink,
}

impl BisectionDriver<'_> {
    /// Measures the endpoints that have no results and checks that they differ. Returns the outcome of an interruption.
    fn measure_endpoints(&self) -> Result<Option<BisectionOutcome>, SessionError> {
        for endpoint in [&self.config.good, &self.config.bad] {
            let steps = self.folder.read_steps()?;
            let is_measured =
                |step: &BisectionStep| step.name == endpoint.revision && step.verdict == RevisionVerdict::Given;
            if endpoint.results.is_some() || steps.iter().any(is_measured) {
                continue;
            }
            let revision = self.git.describe_revision(&endpoint.revision);
            self.events.emit(SessionEvent::MeasuringEndpoint(revision.clone()));
            self.git.run(&["checkout", "--quiet", "--detach", &endpoint.revision])?;
            let (folder, config, events) = (self.folder, self.config, self.events);
            let checked_out = CheckedOutRevision { folder, config, name: &endpoint.revision, events };
            for run in 0..self.config.runs {
                match checked_out.measure(run)? {
                    RevisionOutcome::Done => {}
                    RevisionOutcome::Interrupted => return Ok(Some(self.interrupted())),
                    RevisionOutcome::Failed(reason) => {
                        return Err(BisectError::EndpointNotMeasured { revision, reason }.into());
                    }
                }
            }
            self.folder.append_step(&endpoint.revision, RevisionVerdict::Given)?;
        }
        let outcome = endpoints::compare(self.folder, self.config, self.events)?;
        if outcome.exit_code == ComparisonExit::NothingComparable.code() {
            return Err(BisectError::NoCommonCheck.into());
        }
        let single_run = outcome.builds.iter().any(|build| build.runs.len() == 1);
        let checks = endpoints::differing_checks(&outcome);
        if !self.options.force {
            let nearest = NearestDifference::new(&outcome).filter(|_| checks.is_empty());
            let is_relevant = nearest.as_ref().is_none_or(NearestDifference::is_relevant);
            let metric = DecidingMetric::read(self.folder, self.config, &[], self.events)?;
            let required = metric.and_then(|metric| metric.ends()?.required_runs(usize::from(MAX_RUNS)));
            if let Some(runs) = required.filter(|_| is_relevant) {
                return Err(BisectError::SingleValues { run_noise: self.config.run_noise, runs }.into());
            }
            if checks.is_empty() {
                return Err(BisectError::NoDifference { nearest }.into());
            }
        }
        self.events.emit(SessionEvent::EndpointsDiffer { checks, single_run });
        Ok(None)
    }

    fn interrupted(&self) -> BisectionOutcome {
        self.events.emit(SessionEvent::BisectionInterrupted(self.folder.0.clone()));
        BisectionOutcome::Interrupted
    }

    /// Runs `git bisect run`, which finds the first bad revision.
    fn run_git_bisect(&self) -> Result<BisectionOutcome, SessionError> {
        let program = current_program()?.display().to_string();
        let into = self.folder.0.display().to_string();
        let mut args = vec!["bisect", "run", &program, "bisect", "step", "--into", &into];
        args.extend(self.quiet.then_some("--quiet"));
        self.git.run(&["bisect", "start", &self.config.bad.revision, &self.config.good.revision])?;
        let mut git = self.git.command(&args);
        git.stdin(Stdio::null()).stdout(Stdio::null());
        let ended = child_process::run_interruptible(git);
        let log = self.git.run(&["bisect", "log"]);
        let first_bad = self.git.rev_parse("refs/bisect/bad");
        self.git.run(&["bisect", "reset"])?;
        let ChildExit { status, interrupted } = ended?;
        wb_record::files::write_atomic(&self.folder.log_path("git", "bisect"), format!("{}\n", log?).as_bytes())?;
        match status.code() {
            Some(0) => {
                let first_bad = first_bad?;
                match (Confirmation { git: self.git, folder: self.folder, config: self.config, events: self.events })
                    .confirm(&first_bad)?
                {
                    None => return Ok(self.interrupted()),
                    Some(RevisionVerdict::Refuted { difference }) => {
                        let revision = self.git.describe_revision(&first_bad);
                        return Err(BisectError::NoSingleCommit { revision, difference }.into());
                    }
                    Some(_) => {}
                }
                wb_record::files::write_atomic(&self.folder.first_bad_path(), format!("{first_bad}\n").as_bytes())?;
                Ok(BisectionOutcome::FirstBad(self.git.describe_revision(&first_bad)))
            }
            // git exits with 2 if only skipped revisions are left.
            Some(2) => Err(BisectError::OnlySkippedLeft(self.folder.0.clone()).into()),
            _ if interrupted => Ok(self.interrupted()),
            _ => Err(BisectError::GitBisect { status, log: self.folder.log_path("git", "bisect") }.into()),
        }
    }
}
