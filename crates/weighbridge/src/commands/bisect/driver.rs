//! `weighbridge bisect run`: measures both ends, then drives `git bisect run`.

use std::path::Path;
use std::process::Stdio;

use clap::Parser;
use wb_compare::comparison::{ComparisonResult, FinalVerdict};
use wb_compare::run_perf::tolerance;
use wb_compare::statistical;

use super::child_process::{self, ChildExit};
use super::git::Git;
use super::state::{BisectionConfig, BisectionEnd, BisectionFolder, MeasureMethod, RevisionVerdict};
use super::step::{CheckedOutRevision, RevisionOutcome, end_results, read_builds};
use crate::cli::bisect::BisectRunArgs;
use crate::cli::{Cli, Command};
use crate::commands::hosts::requested_profiles;
use crate::commands::selection::resolve_request;
use crate::commands::{current_program, print_text};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Measures the ends and drives git.
pub(super) fn run(args: &BisectRunArgs, console: &Console) -> Result<Exit, Error> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|source| Error::File { path: path.display().to_string(), source })
    };
    let repo = absolute(&args.repo)?;
    let git = Git(&repo);
    let end = |name: &str, results: &Option<String>| {
        Ok::<_, Error>(BisectionEnd { revision: git.rev_parse(name)?, results: results.clone() })
    };
    let about = BisectionConfig {
        good: end(&args.good, &args.good_results)?,
        bad: end(&args.bad, &args.bad_results)?,
        working_dir: absolute(Path::new("."))?,
        build: args.build.clone(),
        measure: args.measure.clone().map_or_else(|| MeasureMethod::Run(args.words.clone()), MeasureMethod::Command),
        runs: args.runs,
        repo: repo.clone(),
    };
    if let MeasureMethod::Run(words) = &about.measure {
        check_run_arguments(words)?;
    }
    git.require_clean()?;
    if git.run(&["merge-base", "--is-ancestor", &about.bad.revision, &about.good.revision]).is_ok() {
        let what = format!(
            "bad revision {} is not after good revision {}",
            git.describe_revision(&about.bad.revision),
            git.describe_revision(&about.good.revision)
        );
        return Err(Error::Usage {
            what,
            help: "--good is a revision before the change, --bad one after it".to_owned(),
        });
    }
    if git.is_bisecting() {
        let what = "a bisection of the repository is already in progress".to_owned();
        return Err(Error::Usage { what, help: "`git bisect reset` ends it".to_owned() });
    }
    let folder = BisectionFolder::new(&args.into)?;
    folder.create_or_resume(&about)?;
    let bisection = BisectionDriver { git: &git, folder: &folder, config: &about };
    let before = git.run(&["symbolic-ref", "--short", "--quiet", "HEAD"]).or_else(|_| git.rev_parse("HEAD"))?;
    let ended = bisection.measure_ends(args.anyway, console).and_then(|interrupted| match interrupted {
        Some(exit) => Ok(exit),
        None => bisection.run_git_bisect(console),
    });
    // Restore the user's checkout, whatever happened.
    git.run(&["checkout", "--quiet", &before])?;
    ended
}

/// Refuses arguments that `weighbridge run` would refuse, before anything is built.
fn check_run_arguments(words: &[String]) -> Result<(), Error> {
    let line = ["weighbridge", "run"].map(str::to_owned).into_iter().chain(words.iter().cloned());
    let usage_error = |what: String| Error::Usage {
        what,
        help: "the arguments after `--` are those of `weighbridge run`".to_owned(),
    };
    match Cli::try_parse_from(line).map_err(|error| usage_error(error.to_string().trim().to_owned()))?.command {
        Command::Run(args) => {
            let request = resolve_request(&args.measurement)?;
            requested_profiles(&args.measurement.hosts)?
                .iter()
                .try_for_each(|named| request.plan(None, named).map(drop))
        }
        _ => Err(usage_error("invalid arguments after `--`: expected those of `weighbridge run`".to_owned())),
    }
}

/// Drives one bisection: its repository, folder and configuration.
struct BisectionDriver<'a> {
    git: &'a Git<'a>,
    folder: &'a BisectionFolder,
    config: &'a BisectionConfig,
}

impl BisectionDriver<'_> {
    /// Measures the ends that have no results and checks that they differ. Returns the exit status of an interruption.
    fn measure_ends(&self, anyway: bool, console: &Console) -> Result<Option<Exit>, Error> {
        for end in [&self.config.good, &self.config.bad] {
            let done = self
                .folder
                .read_steps()?
                .iter()
                .any(|step| step.name == end.revision && step.verdict == RevisionVerdict::End);
            if end.results.is_some() || done {
                continue;
            }
            if !console.quiet {
                crate::console::message!("measuring {}", self.git.describe_revision(&end.revision));
            }
            self.git.run(&["checkout", "--quiet", "--detach", &end.revision])?;
            let standing = CheckedOutRevision { folder: self.folder, config: self.config, name: &end.revision };
            for run in 0..self.config.runs {
                match standing.measure(run)? {
                    RevisionOutcome::Done => {}
                    RevisionOutcome::Interrupted => {
                        self.report_interruption();
                        return Ok(Some(Exit::Interrupted));
                    }
                    RevisionOutcome::Failed(reason) => {
                        let what = format!("{}: {reason}", self.git.describe_revision(&end.revision));
                        let help = "both ends must be built and measured; name another revision".to_owned();
                        return Err(Error::Incomplete { what, help });
                    }
                }
            }
            self.folder.append_step(&end.revision, RevisionVerdict::End)?;
        }
        let outcome = self.compare_ends()?;
        if outcome.exit_code == Exit::NothingToDo.code() {
            let what = "the good and the bad revision have no check in common".to_owned();
            let help = "--good-results and --bad-results must be results of the tests measured here".to_owned();
            return Err(Error::Incomplete { what, help });
        }
        let single = outcome.builds.iter().any(|build| build.runs.len() == 1);
        let differing = differing_checks(&outcome, single);
        if differing.is_empty() && !anyway {
            return Err(Error::Incomplete {
                what: "no significant difference between the good and the bad revision".to_owned(),
                help: "more runs of each end (--runs) or more samples may show one; --anyway continues without"
                    .to_owned(),
            });
        }
        if !console.quiet {
            differing.iter().take(10).for_each(|line| crate::console::message!("differs: {line}"));
            if single {
                crate::console::message!("note: one side is a single run: run-to-run variation is unknown");
            }
        }
        Ok(None)
    }

    fn report_interruption(&self) {
        crate::console::message!(
            "interrupted: results are kept in {}; run the same command again to resume",
            self.folder.0.display()
        );
    }

    /// Compares the bad end with the good one.
    fn compare_ends(&self) -> Result<ComparisonResult, Error> {
        let typed = [&self.config.good, &self.config.bad].map(|end| end_results(self.folder, self.config, end));
        let builds = read_builds(&typed)?;
        let directions = builds.directions().clone();
        let by_tolerance = tolerance::Options { directions: directions.clone(), ..tolerance::Options::default() };
        let by_statistics = statistical::Options { directions, ..statistical::Options::default() };
        let tolerances = tolerance::compare(&builds, &[], &by_tolerance);
        let statistics = statistical::compare(&builds, &[], &by_statistics);
        Ok(ComparisonResult::of(&builds, &tolerances, statistics.as_ref(), None, false))
    }

    /// Runs `git bisect run` and reports the first bad revision.
    fn run_git_bisect(&self, console: &Console) -> Result<Exit, Error> {
        let program = current_program()?.display().to_string();
        let into = self.folder.0.display().to_string();
        let mut words = vec!["bisect", "run", &program, "bisect", "step", "--into", &into];
        words.extend(console.quiet.then_some("--quiet"));
        self.git.run(&["bisect", "start", &self.config.bad.revision, &self.config.good.revision])?;
        let mut git = self.git.command(&words);
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
                wb_record::files::write_atomic(&self.folder.first_bad_path(), format!("{first_bad}\n").as_bytes())?;
                print_text(&format!("first bad: {}\n", self.git.describe_revision(&first_bad)))?;
                Ok(Exit::Success)
            }
            // git passes on no status above 127, and exits with 2 if only skipped revisions are left.
            Some(2) => Err(Error::Incomplete {
                what: "only revisions that cannot be built, measured or classified are left".to_owned(),
                help: format!("`weighbridge bisect show --into {into}` shows why each was skipped"),
            }),
            _ if interrupted => {
                self.report_interruption();
                Ok(Exit::Interrupted)
            }
            _ => Err(Error::Incomplete {
                what: format!("git bisect ended with {status}"),
                help: format!(
                    "its log is {}; run the same command again to resume",
                    self.folder.log_path("git", "bisect").display()
                ),
            }),
        }
    }
}

/// The primary checks in which the ends differ; for single runs also those whose run-to-run variation is unknown.
fn differing_checks(outcome: &ComparisonResult, single: bool) -> Vec<String> {
    let differs = |decided: FinalVerdict| match decided {
        FinalVerdict::Gain | FinalVerdict::Loss => true,
        FinalVerdict::Differs => single,
        _ => false,
    };
    let checks = outcome.checks.iter().filter(|check| check.primary && differs(check.final_verdict));
    checks.map(|check| check.id.to_string()).collect()
}
