//! Things that can be changed and put back.

mod command;
mod file;
mod group;

use std::fs::File;

use serde::{Deserialize, Serialize};

use crate::environment::memory::selected_option;
use crate::{SysError, SysRoot};

/// One thing that can be changed and put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// A file in which the kernel shows and takes one value. It is as it was after a reboot.
    Setting {
        /// The file.
        path: String,
    },
    /// A whole file. It outlives a reboot.
    File {
        /// The file.
        path: String,
        /// The permissions of one that is made; one that is there keeps its own.
        mode: u32,
    },
    /// What commands set and show, words and no shell. It is as it was after a reboot.
    Command {
        /// What it is, in a word or two.
        name: String,
        /// Prints the state: as many lines as it takes, the same for the same state.
        read: Vec<String>,
        /// Sets it: `{}` in a word stands for the state.
        write: Vec<String>,
    },
    /// A control group that is made; what is in it goes back to the group above when it is taken away. Its state is a
    /// line for each of the files. It is gone after a reboot.
    Group {
        /// Its folder.
        path: String,
        /// The files in it that are set, in the order in which the kernel wants them.
        files: Vec<String>,
    },
    /// Every thread of every program in one control group of version 1 is moved to another. It is as it was after a
    /// reboot.
    MoveThreads {
        /// The folder of the group that they were in.
        from: String,
        /// The folder of the group that they are moved to.
        to: String,
    },
}

/// Why something cannot be changed, as far as that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// This user is not root.
    NotRoot,
    /// Something else, as one clause.
    Other(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotRoot => f.write_str("only root may change it"),
            Self::Other(why) => f.write_str(why),
        }
    }
}

/// Why a step could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It cannot be read.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// It cannot be written.
    #[error("`{what}` cannot be set to `{value}`: {why}")]
    Write {
        /// What.
        what: String,
        /// To which value.
        value: String,
        /// What the system said.
        why: String,
    },
    /// Settings that a change has reset, and that cannot be restored.
    #[error("`{what}` is as it was, and not everything that was reset with it: {failed}")]
    Dependents {
        /// What was changed.
        what: String,
        /// The settings, what they hold and should, and why.
        failed: String,
    },
    /// A command failed.
    #[error("{name}: {why}")]
    Command {
        /// What it shows or sets.
        name: String,
        /// What it said.
        why: String,
    },
}

impl Step {
    /// The state in which threads have been moved.
    pub const MOVED: &str = "moved";

    /// A setting.
    pub fn setting(path: impl Into<String>) -> Self {
        Self::Setting { path: path.into() }
    }

    /// What it is, for people.
    pub fn description(&self) -> String {
        match self {
            Self::Setting { path } | Self::File { path, .. } | Self::Group { path, .. } => path.clone(),
            Self::Command { name, .. } => name.clone(),
            Self::MoveThreads { from, .. } => format!("threads in {from}"),
        }
    }

    /// Whether a reboot puts it back.
    pub fn is_volatile(&self) -> bool {
        !matches!(self, Self::File { .. })
    }

    /// What is there, to be put back one day: of a made root every byte, since no kernel stands behind its settings.
    /// None where a file or a group is not there.
    pub(super) fn state(&self, root: &SysRoot) -> Result<Option<Vec<u8>>, StepError> {
        match self {
            Self::Setting { path } if root.is_real() => {
                Ok(Some(selected_option(&root.text(path)?).to_owned().into_bytes()))
            }
            Self::Setting { path } => Ok(Some(root.bytes(path)?)),
            Self::File { path, .. } => match root.bytes(path) {
                Err(SysError::Missing { .. }) => Ok(None),
                other => Ok(Some(other?)),
            },
            Self::Command { name, read, .. } => command::output(name, read).map(Some),
            Self::Group { path, files } => group::state(root, path, files),
            Self::MoveThreads { to, .. } => group::moved_state(root, to),
        }
    }

    /// Why it cannot be changed here, as far as that can be read; nothing is tried.
    pub fn refusal(&self, root: &SysRoot) -> Option<Refusal> {
        match self {
            Self::Setting { path } => file::refusal(root, path),
            Self::File { path, .. } => {
                let obstacle = file::replacement_obstacle(root, path).or_else(|| file::folder_obstacle(root, path));
                obstacle.map(Refusal::Other)
            }
            Self::Command { .. } => file::root_refusal(root),
            Self::Group { path, .. } => {
                let above = path.rsplit_once('/').map_or("/", |(above, _)| above);
                // What permissions its folder shows means nothing to the kernel.
                file::root_refusal(root).or_else(|| file::refusal(root, &format!("{above}/cgroup.procs")))
            }
            Self::MoveThreads { from, .. } => file::refusal(root, &format!("{from}/tasks")),
        }
    }

    /// Refuses what could not be put back as it was.
    pub(super) fn require_reversible(&self, root: &SysRoot, wanted: Option<&[u8]>) -> Result<(), StepError> {
        match self {
            Self::File { path, .. } => {
                file::replacement_obstacle(root, path).map_or(Ok(()), |why| Err(self.write_error(wanted, why)))
            }
            _ => Ok(()),
        }
    }

    /// When a file was modified, in nanoseconds since 1970; none where there is none, and of other things.
    pub(super) fn modified(&self, root: &SysRoot) -> Option<i64> {
        let Self::File { path, .. } = self else { return None };
        // What cannot be read has no time that could be put back.
        file::modified(&root.path(path).ok()?).ok()
    }

    /// Gives a file the time at which it was modified before.
    pub(super) fn set_modified(&self, root: &SysRoot, modified: Option<i64>) -> Result<(), StepError> {
        let (Self::File { path, .. }, Some(modified)) = (self, modified) else { return Ok(()) };
        file::set_modified(&root.path(path)?, modified).map_err(|error| self.write_error(None, error.to_string()))
    }

    /// Whether it is so already.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_in_state(&self, root: &SysRoot, wanted: Option<&[u8]>) -> Result<bool, StepError> {
        Ok(self.is_same(self.state(root)?.as_deref(), wanted))
    }

    /// Whether two states are the same one.
    pub(super) fn is_same(&self, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
        match (self, one, other) {
            (Self::Setting { .. }, Some(one), Some(other)) => {
                let value = |bytes: &[u8]| selected_option(String::from_utf8_lossy(bytes).trim()).to_owned();
                value(one) == value(other)
            }
            (_, one, other) => one == other,
        }
    }

    /// Makes it so. Commands keep `lock` open, and with it locked, for as long as they run.
    pub(super) fn set(&self, root: &SysRoot, state: Option<&[u8]>, lock: &File) -> Result<(), StepError> {
        let failed = |why: String| self.write_error(state, why);
        let io = |error: std::io::Error| failed(error.to_string());
        match self {
            Self::Setting { path } => {
                file::write_setting(root, &root.path(path)?, state.unwrap_or_default()).map_err(io)
            }
            Self::File { path, mode } => {
                let full = root.path(path)?;
                file::replace(&full, *mode, state).map_err(|error| failed(file::describe_error(path, &full, &error)))
            }
            Self::Command { name, write, .. } => command::set(name, write, state.unwrap_or_default(), lock),
            Self::Group { path, files } => match state {
                None => group::remove(&root.path(path)?).map_err(io),
                Some(lines) => {
                    group::make(root, path, files, &String::from_utf8_lossy(lines)).map_err(io)?;
                    match group::state(root, path, files)? {
                        now if now.as_deref() == state => Ok(()),
                        now => {
                            let now = String::from_utf8_lossy(now.as_deref().unwrap_or_default()).into_owned();
                            Err(failed(format!("the kernel made `{}` of it", now.trim().replace('\n', ", "))))
                        }
                    }
                }
            },
            Self::MoveThreads { from, to } => {
                let (from, to) = (root.path(from)?, root.path(to)?);
                let (from, to) = if state.is_some() { (from, to) } else { (to, from) };
                group::move_threads(root, &from, &to).map_err(io)
            }
        }
    }

    /// Sees that a setting holds what was written, which the kernel may have rounded or cut: other steps look themselves.
    pub(super) fn verify_state(&self, root: &SysRoot, state: Option<&[u8]>) -> Result<(), StepError> {
        let found = match self {
            Self::Setting { .. } => self.state(root)?,
            _ => return Ok(()),
        };
        match self.is_same(found.as_deref(), state) {
            true => Ok(()),
            false => {
                let found = String::from_utf8_lossy(found.as_deref().unwrap_or_default()).trim().to_owned();
                Err(self.write_error(state, format!("it holds `{found}`")))
            }
        }
    }

    fn write_error(&self, state: Option<&[u8]>, why: String) -> StepError {
        let value = String::from_utf8_lossy(state.unwrap_or_default()).trim().replace('\n', ", ");
        StepError::Write { what: self.description(), value, why }
    }

    /// Takes away what somebody who was killed has left beside it.
    pub(super) fn remove_temporary(&self, root: &SysRoot) {
        let path = match self {
            Self::File { path, .. } => path,
            Self::Setting { path } if !root.is_real() => path,
            _ => return,
        };
        if let Ok(full) = root.path(path) {
            let _ = std::fs::remove_file(file::temporary_path(&full));
        }
    }
}
