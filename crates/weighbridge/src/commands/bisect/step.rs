//! One revision: built, measured, and told which end it is most like.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use wb_compare::nearest::{DecidedBy, NearestError, nearest};
use wb_compare::{Builds, ReadOptions, Source};

use super::child::{self, Ended};
use super::git::Git;
use super::state::{About, End, Folder, Found, Measure};
use crate::commands::compare::builds::study;
use crate::commands::this_program;
use crate::console::Console;
use crate::error::Error;

/// What `git bisect run` takes an exit status for.
const SKIP: u8 = 125;
const ABORT: u8 = 128;

/// By so much of its own likeness the nearer end has to be more like a revision than the other end.
const CLEAR: f64 = 0.2;

/// How taking a step ended.
pub(super) enum Taken {
    /// With this.
    Found(Found),
    /// The user ended it.
    Interrupted,
}

impl Taken {
    /// The exit status that says it.
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::Found(Found::Good { .. }) => 0,
            Self::Found(Found::Bad { .. }) => 1,
            Self::Found(Found::Skipped { .. }) => SKIP,
            // Ends are not asked for by git.
            Self::Found(Found::End) => ABORT,
            Self::Interrupted => 130,
        }
    }
}

/// What stands in the repository, as a step.
pub(super) struct Standing<'a> {
    pub(super) folder: &'a Folder,
    pub(super) about: &'a About,
    pub(super) name: &'a str,
}

impl Standing<'_> {
    /// Measures it, unless it was, and tells which end it is most like.
    pub(super) fn step(&self, console: &Console) -> Result<Taken, Error> {
        let known = self.folder.steps()?.into_iter().rev().find(|step| step.name == self.name);
        if let Some(step) = known.filter(|step| matches!(step.found, Found::Good { .. } | Found::Bad { .. })) {
            return Ok(Taken::Found(step.found));
        }
        let found = match self.measured(0)? {
            Measured::Interrupted => return Ok(Taken::Interrupted),
            Measured::Failed(why) => Found::Skipped { why },
            Measured::Done => self.side()?,
        };
        let step = self.folder.add(self.name, found)?;
        if !console.quiet {
            crate::console::tell!("{}: {}", self.name, told(&step.found));
        }
        Ok(Taken::Found(step.found))
    }

    /// Takes a run of it, and builds it before the first; what it printed and measured stays in the folder.
    pub(super) fn measured(&self, run: u16) -> Result<Measured, Error> {
        let results = self.folder.results(self.name, run);
        if let Some(build) = self.about.build.as_ref().filter(|_| run == 0) {
            let ended = self.shell("build", build, &results)?;
            if !ended.status.success() {
                let log = self.folder.log(self.name, "build");
                return Ok(ended_badly("it cannot be built", &ended, &log));
            }
        }
        let ended = match &self.about.measure {
            Measure::Command(command) => {
                fs::create_dir_all(&results).map_err(|source| file(&results, source))?;
                self.shell("measure", command, &results)?
            }
            Measure::Run(words) => self.run(words, &results)?,
        };
        Ok(match (ended.status.code(), &self.about.measure) {
            (Some(0), Measure::Command(_)) if is_empty(&results) => {
                let what = "it was measured, and there is nothing in the folder $WEIGHBRIDGE_RESULTS";
                Measured::Failed(format!("{what}, where results are looked for"))
            }
            (Some(0), _) => Measured::Done,
            // What could be measured counts; what could not is the same for all, or makes it like the end that lacks it.
            (Some(3 | 4), Measure::Run(_)) => Measured::Done,
            _ => ended_badly("it cannot be measured", &ended, &self.folder.log(self.name, "measure")),
        })
    }

    fn shell(&self, what: &str, command: &str, results: &Path) -> Result<Ended, Error> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.about.repo);
        shell.env("WEIGHBRIDGE_RESULTS", results).env("WEIGHBRIDGE_REVISION", self.name);
        self.logged(what, shell)
    }

    /// A run of this program, in a process of its own: what it measures is the same whoever asked for it.
    fn run(&self, words: &[String], results: &Path) -> Result<Ended, Error> {
        let mut run = Command::new(this_program()?);
        run.args(["run", "--into"]).arg(results).args(words).current_dir(&self.about.from);
        self.logged("measure", run)
    }

    fn logged(&self, what: &str, mut command: Command) -> Result<Ended, Error> {
        let path = self.folder.log(self.name, what);
        let log = File::options().create(true).append(true).open(&path).map_err(|source| file(&path, source))?;
        let again = log.try_clone().map_err(|source| file(&path, source))?;
        command.stdin(Stdio::null()).stdout(log).stderr(again);
        child::run(command)
    }

    fn side(&self) -> Result<Found, Error> {
        let builds = read(&[
            self.folder.results(self.name, 0).display().to_string(),
            results_of(self.folder, self.about, &self.about.good),
            results_of(self.folder, self.about, &self.about.bad),
        ])?;
        let found = match nearest(&builds, 0, &[vec![1], vec![2]], 1.0) {
            Ok(found) => found,
            Err(error @ NearestError::NothingInCommon) => return Ok(Found::Skipped { why: error.to_string() }),
            Err(error) => return Err(error.into()),
        };
        let sums = if found.by == DecidedBy::Others { &found.others } else { &found.primary };
        let likeness = [sums[0], sums[1]];
        let unclear = (likeness[0] - likeness[1]).abs() < CLEAR * likeness[0].max(likeness[1]);
        Ok(match (found.by, found.candidate) {
            _ if unclear || found.by == DecidedBy::Order => {
                let [good, bad] = likeness;
                Found::Skipped { why: format!("it is as like one end ({good:.3}) as the other ({bad:.3})") }
            }
            (_, 0) => Found::Good { likeness },
            _ => Found::Bad { likeness },
        })
    }
}

/// How measuring a revision ended.
pub(super) enum Measured {
    Done,
    Failed(String),
    Interrupted,
}

fn ended_badly(what: &str, ended: &Ended, log: &Path) -> Measured {
    match ended.interrupted {
        true => Measured::Interrupted,
        false => Measured::Failed(format!("{what}: {}; {}", ended.status, log.display())),
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Where an end's results are, as they are typed.
pub(super) fn results_of(folder: &Folder, about: &About, end: &End) -> String {
    let from = |run: &str| about.from.join(run).display().to_string();
    match &end.results {
        Some(runs) => runs.split(',').map(from).collect::<Vec<_>>().join(","),
        None => {
            let runs = (0..about.runs).map(|run| folder.results(&end.revision, run).display().to_string());
            runs.collect::<Vec<_>>().join(",")
        }
    }
}

/// Reads builds whose names do not matter.
pub(super) fn read(typed: &[String]) -> Result<Builds, Error> {
    let source = |(at, text): (usize, &String)| Source::parse(&format!("{at}={text}"));
    let sources = typed.iter().enumerate().map(source).collect::<Result<Vec<_>, _>>()?;
    Ok(wb_compare::read(&sources, &ReadOptions::default(), &study)?.builds)
}

/// What came of a step, in words.
pub(super) fn told(found: &Found) -> String {
    let like = |[good, bad]: &[f64; 2]| format!("likeness to the good end {good:.3}, to the bad one {bad:.3}");
    match found {
        Found::End => "an end".to_owned(),
        Found::Good { likeness } => format!("good: {}", like(likeness)),
        Found::Bad { likeness } => format!("bad: {}", like(likeness)),
        Found::Skipped { why } => format!("skipped: {why}"),
    }
}

/// What stands in the repository.
pub(super) fn standing_name(about: &About) -> Result<String, Error> {
    Git(&about.repo).revision("HEAD")
}

fn file(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), source }
}
