//! The user's git.

use std::path::Path;
use std::process::{Command, Output};

use crate::error::Error;

/// A repository.
pub(super) struct Git<'a>(pub(super) &'a Path);

impl Git<'_> {
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.0).args(words);
        git
    }

    fn output(&self, words: &[&str]) -> Result<Output, Error> {
        self.command(words).output().map_err(|source| Error::File { path: "git".to_owned(), source })
    }

    /// What a command prints that has to succeed.
    pub(super) fn run(&self, words: &[&str]) -> Result<String, Error> {
        let output = self.output(words)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(Error::Usage {
                what: format!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()),
                help: format!("it was run in {}; --repo names the repository", self.0.display()),
            }),
        }
    }

    /// The hash of a revision.
    pub(super) fn rev_parse(&self, name: &str) -> Result<String, Error> {
        self.run(&["rev-parse", "--verify", "--end-of-options", &format!("{name}^{{commit}}")])
    }

    /// A revision in a line, for people.
    pub(super) fn describe_revision(&self, revision: &str) -> String {
        self.run(&["log", "-1", "--format=%h %s", revision]).unwrap_or_else(|_| revision.to_owned())
    }

    /// Refuses a repository whose files are not as they were committed: checking out others would mix or lose them.
    pub(super) fn require_clean(&self) -> Result<(), Error> {
        let changes = self.run(&["status", "--porcelain", "--untracked-files=no"])?;
        match changes.lines().next() {
            None => Ok(()),
            Some(first) => Err(Error::Usage {
                what: format!("the repository has changes that are not committed: {}", first.trim()),
                help: "commit or stash them: other revisions will be checked out".to_owned(),
            }),
        }
    }

    /// Whether a bisection of the user's is under way.
    pub(super) fn is_bisecting(&self) -> bool {
        self.run(&["rev-parse", "--verify", "--quiet", "refs/bisect/bad"]).is_ok()
    }
}
