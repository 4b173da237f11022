//! `weighbridge bisect run`: both ends, then whatever git asks for.

use std::path::Path;
use std::process::Stdio;

use clap::Parser;
use wb_compare::outcome::{Decided, Outcome};
use wb_compare::{statistical, tolerance};

use super::child::{self, Ended};
use super::git::Git;
use super::state::{About, End, Folder, Found, Measure};
use super::step::{Measured, Standing, read, results_of};
use crate::cli::bisect::RunArgs;
use crate::cli::{Cli, Command};
use crate::commands::crew::profiles;
use crate::commands::what::asked;
use crate::commands::{print_text, this_program};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Measures the ends and drives git.
pub(super) fn run(args: &RunArgs, console: &Console) -> Result<Exit, Error> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|source| Error::File { path: path.display().to_string(), source })
    };
    let repo = absolute(&args.repo)?;
    let git = Git(&repo);
    let end = |name: &str, results: &Option<String>| {
        Ok::<_, Error>(End { revision: git.revision(name)?, results: results.clone() })
    };
    let about = About {
        good: end(&args.good, &args.good_results)?,
        bad: end(&args.bad, &args.bad_results)?,
        from: absolute(Path::new("."))?,
        build: args.build.clone(),
        measure: args.measure.clone().map_or_else(|| Measure::Run(args.words.clone()), Measure::Command),
        runs: args.runs,
        repo: repo.clone(),
    };
    if let Measure::Run(words) = &about.measure {
        check(words)?;
    }
    git.require_clean()?;
    if git.says(&["merge-base", "--is-ancestor", &about.bad.revision, &about.good.revision]).is_ok() {
        let what =
            format!("{} does not come after {}", git.about(&about.bad.revision), git.about(&about.good.revision));
        return Err(Error::Usage { what, help: "--good is from before the change, --bad from after it".to_owned() });
    }
    if git.is_bisecting() {
        let what = "the repository is being bisected already".to_owned();
        return Err(Error::Usage { what, help: "`git bisect reset` ends that".to_owned() });
    }
    let folder = Folder::new(&args.into)?;
    folder.begin(&about)?;
    let bisection = Bisection { git: &git, folder: &folder, about: &about };
    let before = git.says(&["symbolic-ref", "--short", "--quiet", "HEAD"]).or_else(|_| git.revision("HEAD"))?;
    let ended = bisection.ends(args.anyway, console).and_then(|interrupted| match interrupted {
        Some(exit) => Ok(exit),
        None => bisection.driven(console),
    });
    // Whatever happened, the repository is as it was found.
    git.says(&["checkout", "--quiet", &before])?;
    ended
}

/// Refuses words that no run would take, before anything is built.
fn check(words: &[String]) -> Result<(), Error> {
    let line = ["weighbridge", "run"].map(str::to_owned).into_iter().chain(words.iter().cloned());
    let wrong =
        |what: String| Error::Usage { what, help: "after `--` stand the words of `weighbridge run`".to_owned() };
    match Cli::try_parse_from(line).map_err(|error| wrong(error.to_string().trim().to_owned()))?.command {
        Command::Run(args) => {
            let asked = asked(&args.what)?;
            profiles(&args.what.hosts)?.iter().try_for_each(|named| asked.plan(None, named).map(drop))
        }
        _ => Err(wrong("these are no words of a run".to_owned())),
    }
}

struct Bisection<'a> {
    git: &'a Git<'a>,
    folder: &'a Folder,
    about: &'a About,
}

impl Bisection<'_> {
    /// Measures the ends that have no results, and sees whether they differ; how it ended, if it did.
    fn ends(&self, anyway: bool, console: &Console) -> Result<Option<Exit>, Error> {
        for end in [&self.about.good, &self.about.bad] {
            let done = self.folder.steps()?.iter().any(|step| step.name == end.revision && step.found == Found::End);
            if end.results.is_some() || done {
                continue;
            }
            if !console.quiet {
                crate::console::tell!("measuring {}", self.git.about(&end.revision));
            }
            self.git.says(&["checkout", "--quiet", "--detach", &end.revision])?;
            let standing = Standing { folder: self.folder, about: self.about, name: &end.revision };
            for run in 0..self.about.runs {
                match standing.measured(run)? {
                    Measured::Done => {}
                    Measured::Interrupted => {
                        self.tell_interrupted();
                        return Ok(Some(Exit::Interrupted));
                    }
                    Measured::Failed(why) => {
                        let what = format!("{}: {why}", self.git.about(&end.revision));
                        let help = "an end has to be built and measured; name another revision".to_owned();
                        return Err(Error::FellShort { what, help });
                    }
                }
            }
            self.folder.add(&end.revision, Found::End)?;
        }
        let outcome = self.compared()?;
        if outcome.exit == Exit::Nothing.code() {
            let what = "the ends have no check in common".to_owned();
            let help = "results that were given have to be of what is measured here".to_owned();
            return Err(Error::FellShort { what, help });
        }
        let single = outcome.builds.iter().any(|build| build.runs.len() == 1);
        let differing = differing(&outcome, single);
        if differing.is_empty() && !anyway {
            return Err(Error::FellShort {
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

    fn tell_interrupted(&self) {
        crate::console::tell!(
            "interrupted; everything measured is kept in {}, and the same line goes on from there",
            self.folder.0.display()
        );
    }

    /// How the bad end stands to the good one.
    fn compared(&self) -> Result<Outcome, Error> {
        let typed = [&self.about.good, &self.about.bad].map(|end| results_of(self.folder, self.about, end));
        let builds = read(&typed)?;
        let directions = builds.directions().clone();
        let by_tolerance = tolerance::Options { directions: directions.clone(), ..tolerance::Options::default() };
        let by_statistics = statistical::Options { directions, ..statistical::Options::default() };
        let tolerances = tolerance::compare(&builds, &[], &by_tolerance);
        let statistics = statistical::compare(&builds, &[], &by_statistics);
        Ok(Outcome::of(&builds, &tolerances, statistics.as_ref(), None, false))
    }

    /// Lets git ask for revisions, and tells what it found.
    fn driven(&self, console: &Console) -> Result<Exit, Error> {
        let program = this_program()?.display().to_string();
        let into = self.folder.0.display().to_string();
        let mut words = vec!["bisect", "run", &program, "bisect", "step", "--into", &into];
        words.extend(console.quiet.then_some("--quiet"));
        self.git.says(&["bisect", "start", &self.about.bad.revision, &self.about.good.revision])?;
        let mut git = self.git.command(&words);
        git.stdin(Stdio::null()).stdout(Stdio::null());
        let ended = child::run(git);
        let log = self.git.says(&["bisect", "log"]);
        let first_bad = self.git.revision("refs/bisect/bad");
        self.git.says(&["bisect", "reset"])?;
        let Ended { status, interrupted } = ended?;
        wb_record::files::write_whole(&self.folder.log("git", "bisect"), format!("{}\n", log?).as_bytes())?;
        match status.code() {
            Some(0) => {
                let first_bad = first_bad?;
                wb_record::files::write_whole(&self.folder.first_bad(), format!("{first_bad}\n").as_bytes())?;
                print_text(&format!("first bad: {}\n", self.git.about(&first_bad)))?;
                Ok(Exit::Fine)
            }
            // git hands on no status above 127, and says 2 where only revisions that were skipped are left.
            Some(2) => Err(Error::FellShort {
                what: "only revisions that cannot be built, measured or told apart are left".to_owned(),
                help: format!("`weighbridge bisect show --into {into}` tells why each was skipped"),
            }),
            _ if interrupted => {
                self.tell_interrupted();
                Ok(Exit::Interrupted)
            }
            _ => Err(Error::FellShort {
                what: format!("git bisect ended with {status}"),
                help: format!(
                    "{} has what it asked; the same line goes on from there",
                    self.folder.log("git", "bisect").display()
                ),
            }),
        }
    }
}

/// The primary checks in which the ends differ; of single runs also those of which nobody knows whether runs do.
fn differing(outcome: &Outcome, single: bool) -> Vec<String> {
    let differs = |decided: Decided| match decided {
        Decided::Gain | Decided::Loss => true,
        Decided::Differs => single,
        _ => false,
    };
    let checks = outcome.checks.iter().filter(|check| check.primary && differs(check.decided));
    checks.map(|check| check.id.to_string()).collect()
}
