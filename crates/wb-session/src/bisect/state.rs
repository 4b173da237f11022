//! The folder of a bisection: its configuration in `bisect.json`, every measured revision in `steps.jsonl`.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_compare::statistical::DEFAULT_RUN_NOISE;
use wb_record::files;
use wb_stats::{RunPrior, Share};

use super::BisectError;
use crate::error::SessionError;

/// Configuration of a bisection, fixed when it starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BisectionConfig {
    /// The repository.
    pub repo: PathBuf,
    /// The working directory in which it was started; paths in arguments and results are relative to it.
    pub working_dir: PathBuf,
    /// The good endpoint.
    pub good: BisectionEndpoint,
    /// The bad endpoint.
    pub bad: BisectionEndpoint,
    /// The command that builds a revision.
    pub build_command: Option<String>,
    /// How a revision is measured.
    pub measure: MeasureMethod,
    /// Number of runs of each endpoint.
    #[serde(default = "one")]
    pub runs: u16,
    /// The smallest relevant difference between the endpoints, in percent.
    #[serde(default = "default_threshold")]
    pub threshold: f64,
    /// How much runs of one revision are assumed to differ where the endpoints are single values, as a standard deviation
    /// in percent.
    #[serde(default = "default_run_noise")]
    pub run_noise: f64,
}

/// The threshold in configurations that do not record it: that of `compare`, in percent.
pub(super) const DEFAULT_THRESHOLD: f64 = 5.0;

fn default_threshold() -> f64 {
    DEFAULT_THRESHOLD
}

fn default_run_noise() -> f64 {
    DEFAULT_RUN_NOISE * 100.0
}

impl BisectionConfig {
    pub(super) fn run_prior(&self) -> RunPrior {
        RunPrior::new(self.run_noise / 100.0).unwrap_or(RunPrior::NONE)
    }
}

/// Number of runs in configurations that do not record it.
fn one() -> u16 {
    1
}

/// The good or the bad endpoint of a bisection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BisectionEndpoint {
    /// Its revision, as git's hash.
    pub revision: String,
    /// Its results, if they existed before the bisection.
    pub results: Option<String>,
}

/// How a revision is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureMethod {
    /// `weighbridge run` with these arguments.
    Run(Vec<String>),
    /// A shell command.
    Command(String),
}

/// A revision that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BisectionStep {
    /// Its name: the commit hash, or the name that was given.
    pub name: String,
    /// When it was finished: RFC 3339 in UTC.
    pub finished_at: String,
    /// The verdict on it.
    pub verdict: RevisionVerdict,
}

/// The verdict on a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RevisionVerdict {
    /// The good or the bad endpoint itself: given, not classified.
    Given,
    /// On the good endpoint's side of the middle between both.
    Good {
        /// Its position: 0 is the good endpoint, 1 the bad one.
        position: DifferenceShare,
    },
    /// On the bad endpoint's side, or clearly between both, so that a change is before it.
    Bad {
        /// Its position: 0 is the good endpoint, 1 the bad one.
        position: DifferenceShare,
    },
    /// It could not be classified.
    Skipped {
        /// The reason.
        reason: String,
    },
    /// The first bad revision differs from its parent, as the bad endpoint does from the good one.
    Confirmed {
        /// Its difference from its parent.
        difference: DifferenceShare,
    },
    /// The revision that the classifications led to does not differ significantly from its parent, or differs in the other
    /// direction.
    Refuted {
        /// Its difference from its parent.
        difference: DifferenceShare,
    },
}

/// A share of the difference between the good and the bad endpoint, with its interval at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceShare {
    /// The estimate.
    pub estimate: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl DifferenceShare {
    /// Phrase after a revision's name: why this difference from its parent refutes that it is the first bad one.
    pub fn describe_refuted(&self) -> String {
        let Self { estimate, low, high } = *self;
        if high < 0.0 {
            let reversed = Self { estimate: -estimate, low: -high, high: -low };
            format!(
                "differs from its parent in the other direction, from the bad to the good revision: by {reversed} of \
                     the difference of those"
            )
        } else {
            format!(
                "does not differ significantly from its parent: by {self} of the difference of the good and the bad revision"
            )
        }
    }
}

impl From<Share> for DifferenceShare {
    fn from(Share { estimate, interval }: Share) -> Self {
        Self { estimate, low: interval.low, high: interval.high }
    }
}

impl fmt::Display for DifferenceShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding zero turns -0 into 0.
        let [estimate, low, high] = [self.estimate, self.low, self.high].map(|share| (share * 100.0).round() + 0.0);
        write!(f, "{estimate} % [{low}, {high}]")
    }
}

#[derive(Debug, Clone)]
pub(super) struct BisectionFolder(pub(super) PathBuf);

impl BisectionFolder {
    /// Makes the path absolute.
    pub(super) fn new(path: &Path) -> Result<Self, SessionError> {
        std::path::absolute(path).map(Self).map_err(SessionError::file("locate", path))
    }

    pub(super) fn read_config(&self) -> Result<BisectionConfig, SessionError> {
        let config = files::read_json(&self.0, &self.0.join("bisect.json"))?;
        config.ok_or_else(|| BisectError::NotABisection(self.0.clone()).into())
    }

    /// Creates the folder, or resumes a bisection with the same configuration.
    pub(super) fn create_or_resume(&self, about: &BisectionConfig) -> Result<(), SessionError> {
        let path = self.0.join("bisect.json");
        if let Some(existing) = files::read_json::<BisectionConfig>(&self.0, &path)? {
            return if existing == *about { Ok(()) } else { Err(BisectError::OtherBisection(self.0.clone()).into()) };
        }
        fs::create_dir_all(self.0.join("results"))
            .and_then(|()| fs::create_dir_all(self.0.join("logs")))
            .map_err(SessionError::file("write", &self.0))?;
        Ok(files::write_json(&path, about)?)
    }

    /// Folder of the results of a revision's run; that of the first run has the revision's name.
    pub(super) fn results_path(&self, name: &str, run: u16) -> PathBuf {
        let name = if run == 0 { name.to_owned() } else { format!("{name}.{}", run + 1) };
        self.0.join("results").join(name)
    }

    pub(super) fn log_path(&self, name: &str, what: &str) -> PathBuf {
        self.0.join("logs").join(format!("{name}-{what}.log"))
    }

    pub(super) fn first_bad_path(&self) -> PathBuf {
        self.0.join("first-bad")
    }

    /// Reads all steps. An incomplete last line, left by a killed process, is ignored.
    pub(super) fn read_steps(&self) -> Result<Vec<BisectionStep>, SessionError> {
        let path = self.0.join("steps.jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(SessionError::file("read", &path)(source)),
        };
        let last = text.lines().count();
        let truncated = |position: usize| position == last && !text.ends_with('\n');
        let lines = (1..).zip(text.lines()).filter(|(position, _)| !truncated(*position));
        let read = |(line, text): (usize, &str)| {
            serde_json::from_str(text)
                .map_err(|error| BisectError::InvalidStep { path: path.clone(), line, error }.into())
        };
        lines.map(read).collect()
    }

    pub(super) fn append_step(&self, name: &str, found: RevisionVerdict) -> Result<BisectionStep, SessionError> {
        let step =
            BisectionStep { name: name.to_owned(), finished_at: jiff::Timestamp::now().to_string(), verdict: found };
        let path = self.0.join("steps.jsonl");
        let line = serde_json::to_string(&step).map_err(BisectError::UnrecordableStep)?;
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path)?;
            let existing = fs::read(&path)?;
            let complete = existing.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
            // Cut off an incomplete last line.
            file.set_len(complete as u64)?;
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_all()
        };
        write().map_err(SessionError::file("write", &path))?;
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_recorded_steps_are_read() {
        let read = |text: &str| serde_json::from_str::<RevisionVerdict>(text).unwrap();
        assert_eq!(read(r#"{"kind": "given"}"#), RevisionVerdict::Given);
        let good = read(r#"{"kind": "good", "position": {"estimate": 0.25, "low": 0.125, "high": 0.375}}"#);
        let position = DifferenceShare { estimate: 0.25, low: 0.125, high: 0.375 };
        assert_eq!(good, RevisionVerdict::Good { position });
    }

    #[test]
    fn a_refuted_revision_differs_in_the_other_direction_or_not() {
        let describe = |estimate, low, high| DifferenceShare { estimate, low, high }.describe_refuted();
        assert_eq!(
            describe(-1.2, -1.5, -0.9),
            "differs from its parent in the other direction, from the bad to the good revision: by 120 % [90, 150] of the \
             difference of those"
        );
        assert_eq!(
            describe(0.1, -0.2, 0.4),
            "does not differ significantly from its parent: by 10 % [-20, 40] of the difference of the good and the bad revision"
        );
    }

    #[test]
    fn shares_are_shown_in_percent() {
        let share = DifferenceShare { estimate: -0.001, low: -0.123, high: 1.5 };
        assert_eq!(share.to_string(), "0 % [-12, 150]");
    }
}
