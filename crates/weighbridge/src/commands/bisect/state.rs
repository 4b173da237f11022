//! What a bisection is about, and everything it has measured: `bisect.json` and `steps.jsonl` in its folder.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_record::files;

use crate::error::Error;

/// What a bisection is about. Settled when it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BisectionConfig {
    /// The repository.
    pub(crate) repo: PathBuf,
    /// The folder in which it was begun; words and results are meant from there.
    pub(crate) working_dir: PathBuf,
    /// The good end.
    pub(crate) good: BisectionEnd,
    /// The bad end.
    pub(crate) bad: BisectionEnd,
    /// What builds a revision.
    pub(crate) build: Option<String>,
    /// What measures a revision.
    pub(crate) measure: MeasureMethod,
    /// How many runs each end has.
    #[serde(default = "one")]
    pub(crate) runs: u16,
}

/// What there was before ends could have several runs.
fn one() -> u16 {
    1
}

/// An end of what is bisected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BisectionEnd {
    /// Its revision, as git's hash.
    pub(crate) revision: String,
    /// Its results, where they were there before.
    pub(crate) results: Option<String>,
}

/// What measures a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MeasureMethod {
    /// `weighbridge run` with these words.
    Run(Vec<String>),
    /// A command.
    Command(String),
}

/// A revision that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct BisectionStep {
    /// Its name: git's hash, or as it was called.
    pub(crate) name: String,
    /// When it was done: RFC 3339 in UTC.
    pub(crate) finished_at: String,
    /// What came of it.
    pub(crate) verdict: RevisionVerdict,
}

/// What came of a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub(crate) enum RevisionVerdict {
    /// An end, whose side is known.
    End,
    /// More like the good end.
    Good {
        /// How like it is to the good end and to the bad one.
        likeness: [f64; 2],
    },
    /// More like the bad end.
    Bad {
        /// How like it is to the good end and to the bad one.
        likeness: [f64; 2],
    },
    /// It cannot be told.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// The folder of a bisection.
#[derive(Debug, Clone)]
pub(crate) struct BisectionFolder(pub(crate) PathBuf);

impl BisectionFolder {
    /// A folder from the root.
    pub(crate) fn new(path: &Path) -> Result<Self, Error> {
        std::path::absolute(path).map(Self).map_err(|source| Error::File { path: path.display().to_string(), source })
    }

    /// What it is about.
    pub(crate) fn read_config(&self) -> Result<BisectionConfig, Error> {
        files::read_json(&self.0.join("bisect.json"))?.ok_or_else(|| Error::Usage {
            what: format!("{} is no bisection", self.0.display()),
            help: "`weighbridge bisect run --into DIR …` begins one".to_owned(),
        })
    }

    /// Begins it, or goes on with one that is about the same.
    pub(crate) fn create_or_resume(&self, about: &BisectionConfig) -> Result<(), Error> {
        let path = self.0.join("bisect.json");
        if let Some(before) = files::read_json::<BisectionConfig>(&path)? {
            return match before == *about {
                true => Ok(()),
                false => Err(Error::Usage {
                    what: format!("{} is a bisection of something else", self.0.display()),
                    help: "`weighbridge bisect show` tells of what; another folder takes this one".to_owned(),
                }),
            };
        }
        let io = |source| Error::File { path: self.0.display().to_string(), source };
        fs::create_dir_all(self.0.join("results"))
            .and_then(|()| fs::create_dir_all(self.0.join("logs")))
            .map_err(io)?;
        Ok(files::write_json(&path, about)?)
    }

    /// Where the results of a revision's run are; the first run's folder has the revision's name.
    pub(crate) fn results_path(&self, name: &str, run: u16) -> PathBuf {
        let name = if run == 0 { name.to_owned() } else { format!("{name}.{}", run + 1) };
        self.0.join("results").join(name)
    }

    /// Where what a command printed is kept.
    pub(crate) fn log_path(&self, name: &str, what: &str) -> PathBuf {
        self.0.join("logs").join(format!("{name}-{what}.log"))
    }

    /// Where the revision is told that was found.
    pub(crate) fn first_bad_path(&self) -> PathBuf {
        self.0.join("first-bad")
    }

    /// Every step until now. A torn last line, of one that was killed, is none.
    pub(crate) fn read_steps(&self) -> Result<Vec<BisectionStep>, Error> {
        let path = self.0.join("steps.jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::File { path: path.display().to_string(), source }),
        };
        let last = text.lines().count();
        let torn = |at: usize| at == last && !text.ends_with('\n');
        let lines = (1..).zip(text.lines()).filter(|(at, _)| !torn(*at));
        let read = |(at, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| Error::Usage {
                what: format!("{}: line {at} is no step: {error}", path.display()),
                help: "remove that line; its revision is then measured again".to_owned(),
            })
        };
        lines.map(read).collect()
    }

    /// Adds a step.
    pub(crate) fn append_step(&self, name: &str, found: RevisionVerdict) -> Result<BisectionStep, Error> {
        let step =
            BisectionStep { name: name.to_owned(), finished_at: jiff::Timestamp::now().to_string(), verdict: found };
        let path = self.0.join("steps.jsonl");
        let line = serde_json::to_string(&step).map_err(|error| Error::Internal(error.to_string()))?;
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path)?;
            let before = fs::read(&path)?;
            let whole = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            // The beginning of a line that was never finished.
            file.set_len(whole as u64)?;
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| Error::File { path: path.display().to_string(), source })?;
        Ok(step)
    }
}
