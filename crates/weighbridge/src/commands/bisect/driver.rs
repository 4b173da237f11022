//! `weighbridge bisect run`: both ends, then whatever git asks for.

use std::path::Path;
use std::process::Stdio;

use clap::Parser;
use wb_compare::comparison::{ComparisonResult, FinalVerdict};
use wb_compare::{statistical, tolerance};

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
            "{} does not come after {}",
            git.describe_revision(&about.bad.revision),
            git.describe_revision(&about.good.revision)
        );
        return Err(Error::Usage { what, help: "--good is from before the change, --bad from after it".to_owned() });
    }
    if git.is_bisecting() {
        let what = "the repository is being bisected already".to_owned();
        return Err(Error::Usage { what, help: "`git bisect reset` ends that".to_owned() });
    }
    let folder = BisectionFolder::new(&args.into)?;
    folder.create_or_resume(&about)?;
    let bisection = BisectionDriver { git: &git, folder: &folder, config: &about };
    let before = git.run(&["symbolic-ref", "--short", "--quiet", "HEAD"]).or_else(|_| git.rev_parse("HEAD"))?;
    let ended = bisection.measure_ends(args.anyway, console).and_then(|interrupted| match interrupted {
        Some(exit) => Ok(exit),
        None => bisection.run_git_bisect(console),
    });
    // Whatever happened, the repository is as it was found.
    git.run(&["checkout", "--quiet", &before])?;
    ended
}

/// Refuses words that no run would take, before anything is built.
fn check_run_arguments(words: &[String]) -> Result<(), Error> {
    let line = ["weighbridge", "run"].map(str::to_owned).into_iter().chain(words.iter().cloned());
    let wrong =
        |what: String| Error::Usage { what, help: "after `--` stand the words of `weighbridge run`".to_owned() };
    match Cli::try_parse_from(line).map_err(|error| wrong(error.to_string().trim().to_owned()))?.command {
        Command::Run(args) => {
            let asked = resolve_request(&args.measurement)?;
            requested_profiles(&args.measurement.hosts)?.iter().try_for_each(|named| asked.plan(None, named).map(drop))
        }
        _ => Err(wrong("these are no words of a run".to_owned())),
    }
}

struct BisectionDriver<'a> {
    git: &'a Git<'a>,
    folder: &'a BisectionFolder,
    config: &'a BisectionConfig,
}

impl BisectionDriver<'_> {
    /// Measures the ends that have no results, and sees whether they differ; how it ended, if it did.
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
                crate::console::tell!("measuring {}", self.git.describe_revision(&end.revision));
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
                    RevisionOutcome::Failed(why) => {
                        let what = format!("{}: {why}", self.git.describe_revision(&end.revision));
                        let help = "an end has to be built and measured; name another revision".to_owned();
                        return Err(Error::Incomplete { what, help });
                    }
                }
            }
            self.folder.append_step(&end.revision, RevisionVerdict::End)?;
        }
        let outcome = self.compare_ends()?;
        if outcome.exit_code == Exit::NothingToDo.code() {
            let what = "the ends have no check in common".to_owned();
            let help = "results that were given have to be of what is measured here".to_owned();
            return Err(Error::Incomplete { what, help });
        }
        let single = outcome.builds.iter().any(|build| build.runs.len() == 1);
        let differing = differing_checks(&outcome, single);
        if differing.is_empty() && !anyway {
            return Err(Error::Incomplete {
                what: "nothing differs clearly between the good end and the bad one".to_owned(),
                help: "more runs of each end (`--runs`) or samples may show a difference; --anyway goes on without"
                    .to_owned(),
            });
        }
        if !console.quiet {
            differing.iter().take(10).for_each(|line| crate::console::tell!("differs: {line}"));
            if single {
                crate::console::tell!("note: an end is a single run: nobody knows whether any two runs differ as much");
            }
        }
        Ok(None)
    }

    fn report_interruption(&self) {
        crate::console::tell!(
            "interrupted; everything measured is kept in {}, and the same line goes on from there",
            self.folder.0.display()
        );
    }

    /// How the bad end stands to the good one.
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

    /// Lets git ask for revisions, and tells what it found.
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
            // git hands on no status above 127, and says 2 where only revisions that were skipped are left.
            Some(2) => Err(Error::Incomplete {
                what: "only revisions that cannot be built, measured or told apart are left".to_owned(),
                help: format!("`weighbridge bisect show --into {into}` tells why each was skipped"),
            }),
            _ if interrupted => {
                self.report_interruption();
                Ok(Exit::Interrupted)
            }
            _ => Err(Error::Incomplete {
                what: format!("git bisect ended with {status}"),
                help: format!(
                    "{} has what it asked; the same line goes on from there",
                    self.folder.log_path("git", "bisect").display()
                ),
            }),
        }
    }
}

/// The primary checks in which the ends differ; of single runs also those of which nobody knows whether runs do.
fn differing_checks(outcome: &ComparisonResult, single: bool) -> Vec<String> {
    let differs = |decided: FinalVerdict| match decided {
        FinalVerdict::Gain | FinalVerdict::Loss => true,
        FinalVerdict::Differs => single,
        _ => false,
    };
    let checks = outcome.checks.iter().filter(|check| check.primary && differs(check.final_verdict));
    checks.map(|check| check.id.to_string()).collect()
}
