//! Managed resources: objects whose state can be changed and restored.

mod command;
mod file;
mod group;

use std::fs::File;

use serde::{Deserialize, Serialize};

use crate::environment::memory::selected_option;
use crate::{SysError, SysRoot};

/// An object whose state can be changed and restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ManagedResource {
    /// A kernel setting: a file with one value. A reboot resets it.
    Setting {
        /// Path of the file.
        path: String,
    },
    /// A regular file. It survives a reboot.
    File {
        /// Path of the file.
        path: String,
        /// Permissions of a new file; an existing file keeps its own.
        mode: u32,
    },
    /// A state that commands (without a shell) set and print. A reboot resets it.
    Command {
        /// Name of the state, in a word or two.
        name: String,
        /// Command that prints the state, in any number of lines; equal states print the same.
        read: Vec<String>,
        /// Command that sets the state; `{}` in a word is replaced by the state.
        write: Vec<String>,
    },
    /// A control group that is created; its members move to the parent group when it is removed. Its state is one line
    /// for each of the files. A reboot removes it.
    Group {
        /// Folder of the group.
        path: String,
        /// Files in it that are set, in the order that the kernel requires.
        files: Vec<String>,
    },
    /// All threads of a version 1 control group, except kernel threads, are moved to another group. A reboot resets
    /// it.
    MoveThreads {
        /// Folder of the source group.
        from: String,
        /// Folder of the destination group.
        to: String,
    },
}

/// Why an object cannot be changed, as far as can be determined by reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// This process is not privileged.
    NotRoot,
    /// Another reason, as a clause.
    Other(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotRoot => f.write_str("permission denied: requires root"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

/// An error while reading or setting the state of a resource.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    /// The state cannot be read.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The state cannot be set.
    #[error("cannot set `{what}` to `{value}`: {cause}")]
    Write { what: String, value: String, cause: String },
    #[error("`{what}` was restored, but not all settings that were reset with it: {failed}")]
    Dependents {
        /// Name of the changed resource.
        what: String,
        /// The settings with their actual and expected values and the causes.
        failed: String,
    },
    #[error("{name}: {reason}")]
    Command {
        /// Name of the state that it reads or sets.
        name: String,
        /// Its exit status and standard error.
        reason: String,
    },
}

impl ManagedResource {
    /// The state after threads have been moved.
    pub const MOVED: &str = "moved";

    /// Creates a resource for a kernel setting.
    pub fn setting(path: impl Into<String>) -> Self {
        Self::Setting { path: path.into() }
    }

    /// Short description for output.
    pub fn description(&self) -> String {
        match self {
            Self::Setting { path } | Self::File { path, .. } | Self::Group { path, .. } => path.clone(),
            Self::Command { name, .. } => name.clone(),
            Self::MoveThreads { from, .. } => format!("threads in {from}"),
        }
    }

    /// Whether a reboot resets it.
    pub fn is_volatile(&self) -> bool {
        !matches!(self, Self::File { .. })
    }

    /// Reads the current state, to be restored later; for a setting of a fake root all bytes of the file. None where a
    /// file or group does not exist.
    pub(super) fn state(&self, root: &SysRoot) -> Result<Option<Vec<u8>>, ResourceError> {
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

    /// Why it cannot be changed, as far as can be determined by reading; no change is attempted.
    pub fn refusal(&self, root: &SysRoot) -> Option<Refusal> {
        match self {
            Self::Setting { path } => file::refusal(root, path),
            Self::File { path, .. } => {
                let obstacle = file::replacement_obstacle(root, path).or_else(|| file::folder_obstacle(root, path));
                obstacle.map(Refusal::Other)
            }
            Self::Command { .. } => file::root_refusal(root),
            Self::Group { path, .. } => {
                let parent = path.rsplit_once('/').map_or("/", |(parent, _)| parent);
                // The permissions of its folder are not meaningful.
                file::root_refusal(root).or_else(|| file::refusal(root, &format!("{parent}/cgroup.procs")))
            }
            Self::MoveThreads { from, .. } => file::refusal(root, &format!("{from}/tasks")),
        }
    }

    /// Fails for an object that could not be restored exactly.
    pub(super) fn require_reversible(&self, root: &SysRoot, target: Option<&[u8]>) -> Result<(), ResourceError> {
        match self {
            Self::File { path, .. } => {
                file::replacement_obstacle(root, path).map_or(Ok(()), |reason| Err(self.write_error(target, reason)))
            }
            _ => Ok(()),
        }
    }

    /// The modification time of a file, in nanoseconds since 1970; None where it does not exist, and for other resources.
    pub(super) fn modified(&self, root: &SysRoot) -> Option<i64> {
        let Self::File { path, .. } = self else { return None };
        // An unreadable file has no modification time to restore.
        file::modified(&root.path(path).ok()?).ok()
    }

    /// Restores the modification time of a file.
    pub(super) fn set_modified(&self, root: &SysRoot, modified: Option<i64>) -> Result<(), ResourceError> {
        let (Self::File { path, .. }, Some(modified)) = (self, modified) else { return Ok(()) };
        file::set_modified(&root.path(path)?, modified).map_err(|error| self.write_error(None, error.to_string()))
    }

    /// Whether the object is in this state already.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_in_state(&self, root: &SysRoot, target: Option<&[u8]>) -> Result<bool, ResourceError> {
        Ok(self.is_same(self.state(root)?.as_deref(), target))
    }

    /// Whether two states are equal.
    pub(super) fn is_same(&self, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
        match (self, one, other) {
            (Self::Setting { .. }, Some(one), Some(other)) => {
                let value = |bytes: &[u8]| selected_option(String::from_utf8_lossy(bytes).trim()).to_owned();
                value(one) == value(other)
            }
            (_, one, other) => one == other,
        }
    }

    /// Sets the state. Commands inherit `lock` and hold it for as long as they run.
    pub(super) fn set(&self, root: &SysRoot, state: Option<&[u8]>, lock: &File) -> Result<(), ResourceError> {
        let failed = |reason: String| self.write_error(state, reason);
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
                            Err(failed(format!("the kernel set it to `{}`", now.trim().replace('\n', ", "))))
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

    /// Verifies that a setting has the written value, which the kernel may have rounded; other resources verify themselves.
    pub(super) fn verify_state(&self, root: &SysRoot, state: Option<&[u8]>) -> Result<(), ResourceError> {
        let found = match self {
            Self::Setting { .. } => self.state(root)?,
            _ => return Ok(()),
        };
        if self.is_same(found.as_deref(), state) {
            Ok(())
        } else {
            let found = String::from_utf8_lossy(found.as_deref().unwrap_or_default()).trim().to_owned();
            Err(self.write_error(state, format!("its value is `{found}`")))
        }
    }

    fn write_error(&self, state: Option<&[u8]>, reason: String) -> ResourceError {
        let value = String::from_utf8_lossy(state.unwrap_or_default()).trim().replace('\n', ", ");
        ResourceError::Write { what: self.description(), value, cause: reason }
    }

    /// Removes the temporary file of a process that was killed.
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
