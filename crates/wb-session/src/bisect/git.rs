//! Runs git commands in the user's repository.

use std::path::Path;
use std::process::{Command, Output};

use super::BisectError;
use crate::error::SessionError;

/// A git repository.
pub(super) struct Git<'a>(pub(super) &'a Path);

impl Git<'_> {
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.0).args(words);
        git
    }

    fn output(&self, words: &[&str]) -> Result<Output, SessionError> {
        self.command(words).output().map_err(|source| SessionError::File { path: "git".to_owned(), source })
    }

    /// Runs a git command that must succeed, and returns its output.
    pub(super) fn run(&self, words: &[&str]) -> Result<String, SessionError> {
        let output = self.output(words)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(SessionError::Bisect(BisectError::Git {
                command: words.join(" "),
                message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                repo: self.0.to_owned(),
            })),
        }
    }

    /// Resolves a revision to its commit hash.
    pub(super) fn rev_parse(&self, name: &str) -> Result<String, SessionError> {
        self.run(&["rev-parse", "--verify", "--end-of-options", &format!("{name}^{{commit}}")])
    }

    /// One-line description of a revision: abbreviated hash and subject.
    pub(super) fn describe_revision(&self, revision: &str) -> String {
        self.run(&["log", "-1", "--format=%h %s", revision]).unwrap_or_else(|_| revision.to_owned())
    }

    /// Refuses a repository with uncommitted changes: checking out other revisions would mix or lose them.
    pub(super) fn require_clean(&self) -> Result<(), SessionError> {
        let changes = self.run(&["status", "--porcelain", "--untracked-files=no"])?;
        match changes.lines().next() {
            None => Ok(()),
            Some(first) => Err(BisectError::UncommittedChanges(first.trim().to_owned()).into()),
        }
    }

    /// Whether a bisection is already in progress.
    pub(super) fn is_bisecting(&self) -> bool {
        self.run(&["rev-parse", "--verify", "--quiet", "refs/bisect/bad"]).is_ok()
    }
}
