//! Runs git commands in the user's repository.

use std::path::Path;
use std::process::{Command, Output};

use super::BisectError;
use crate::error::SessionError;

pub(super) struct Git<'a>(pub(super) &'a Path);

impl Git<'_> {
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.0).args(args);
        git
    }

    fn output(&self, args: &[&str]) -> Result<Output, SessionError> {
        self.command(args).output().map_err(SessionError::file("run", Path::new("git")))
    }

    /// Runs a git command that must succeed, and returns its output.
    pub(super) fn run(&self, args: &[&str]) -> Result<String, SessionError> {
        let output = self.output(args)?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            Err(SessionError::Bisect(BisectError::Git {
                command: args.join(" "),
                message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
                repo: self.0.to_owned(),
            }))
        }
    }

    pub(super) fn rev_parse(&self, name: &str) -> Result<String, SessionError> {
        let output =
            self.output(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        self.require_repository()?;
        Err(BisectError::UnknownRevision { name: name.to_owned(), repo: self.0.to_owned() }.into())
    }

    fn require_repository(&self) -> Result<(), SessionError> {
        let unreadable =
            |cause: &str| BisectError::UnreadableRepository { repo: self.0.to_owned(), cause: cause.to_owned() };
        if !self.0.is_dir() {
            return Err(unreadable("no such folder").into());
        }
        let output = self.output(&["rev-parse", "--git-dir"])?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let cause = message.lines().next().unwrap_or_default();
        let cause = cause.strip_prefix("fatal: ").unwrap_or(cause);
        Err(unreadable(cause.split(" (or any ").next().unwrap_or(cause)).into())
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

    /// Whether a bisection is already in progress, even if it has no good or bad revision yet.
    pub(super) fn is_bisecting(&self) -> bool {
        self.run(&["rev-parse", "--git-path", "BISECT_START"]).is_ok_and(|path| self.0.join(path).exists())
    }
}
