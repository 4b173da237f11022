//! Bisections: find the revision that changed performance by classifying each revision as good or bad.

mod child_process;
mod classification;
mod confirmation;
mod driver;
mod endpoints;
mod error;
mod git;
mod nearest_difference;
mod options;
mod state;
mod step;

use std::fs;
use std::io;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use self::git::Git;
use self::state::BisectionFolder;
use self::step::CheckedOutRevision;
use crate::error::SessionError;
use crate::event::EventSink;

pub use self::driver::{BisectionOutcome, run};
pub use self::error::BisectError;
pub use self::nearest_difference::NearestDifference;
pub use self::options::BisectionOptions;
pub use self::state::{
    BisectionConfig, BisectionEndpoint, BisectionStep, DifferenceShare, MeasureMethod, RevisionVerdict,
};
pub use self::step::StepOutcome;

/// Classifies the checked-out revision, under its hash or a given name, unless that was done before.
pub fn step(folder: &Path, name: Option<&str>, events: &EventSink) -> Result<StepOutcome, SessionError> {
    let folder = BisectionFolder::new(folder)?;
    let config = folder.read_config()?;
    let name = match name {
        Some(name) => name.to_owned(),
        None => {
            let git = Git(&config.repo);
            // With uncommitted changes, the results would not be those of the revision.
            git.require_clean()?;
            git.rev_parse("HEAD")?
        }
    };
    CheckedOutRevision { folder: &folder, config: &config, name: &name, events }.run_step()
}

/// A bisection: its configuration and everything measured so far.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BisectionReport {
    /// Its configuration.
    pub config: BisectionConfig,
    /// All steps, in order.
    pub steps: Vec<BisectionStep>,
    /// The first bad revision, once found.
    pub first_bad: Option<String>,
}

impl BisectionReport {
    pub fn read(folder: &Path) -> Result<Self, SessionError> {
        let folder = BisectionFolder::new(folder)?;
        let path = folder.first_bad_path();
        let first_bad = match fs::read_to_string(&path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(SessionError::file("read", &path)(error)),
        };
        Ok(Self { config: folder.read_config()?, steps: folder.read_steps()?, first_bad })
    }

    /// One-line description of a revision: abbreviated hash and subject, or its name if git does not know it.
    pub fn describe_revision(&self, revision: &str) -> String {
        Git(&self.config.repo).describe_revision(revision)
    }
}
