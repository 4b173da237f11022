//! Things that can be changed and put back.

use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::environment::memory::chosen;
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
        /// The permissions of one that is made.
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
    /// A command failed.
    #[error("`{command}`: {why}")]
    Command {
        /// The command.
        command: String,
        /// What it said.
        why: String,
    },
}

impl Step {
    /// A setting.
    pub fn setting(path: impl Into<String>) -> Self {
        Self::Setting { path: path.into() }
    }

    /// What it is, for people.
    pub fn what(&self) -> String {
        match self {
            Self::Setting { path } | Self::File { path, .. } => path.clone(),
            Self::Command { name, .. } => name.clone(),
        }
    }

    /// Whether a reboot puts it back.
    pub fn is_volatile(&self) -> bool {
        !matches!(self, Self::File { .. })
    }

    /// What is there, to be put back one day: of a made root every byte, since no kernel stands behind its settings.
    /// None where a file is not there.
    pub(super) fn state(&self, root: &SysRoot) -> Result<Option<Vec<u8>>, StepError> {
        match self {
            Self::Setting { path } if root.is_real() => Ok(Some(chosen(&root.text(path)?).to_owned().into_bytes())),
            Self::Setting { path } => Ok(Some(root.bytes(path)?)),
            Self::File { path, .. } => match root.bytes(path) {
                Err(SysError::Missing { .. }) => Ok(None),
                other => Ok(Some(other?)),
            },
            Self::Command { read, .. } => run(read).map(Some),
        }
    }

    /// Whether it is so already.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn holds(&self, root: &SysRoot, wanted: Option<&[u8]>) -> Result<bool, StepError> {
        Ok(self.is_same(self.state(root)?.as_deref(), wanted))
    }

    /// Whether two states are the same one.
    pub(super) fn is_same(&self, one: Option<&[u8]>, other: Option<&[u8]>) -> bool {
        match (self, one, other) {
            (Self::Setting { .. }, Some(one), Some(other)) => {
                let value = |bytes: &[u8]| chosen(String::from_utf8_lossy(bytes).trim()).to_owned();
                value(one) == value(other)
            }
            (_, one, other) => one == other,
        }
    }

    /// Makes it so.
    pub(super) fn set(&self, root: &SysRoot, state: Option<&[u8]>) -> Result<(), StepError> {
        let failed = |what: &str, error: io::Error| StepError::Write {
            what: what.to_owned(),
            value: String::from_utf8_lossy(state.unwrap_or_default()).trim().to_owned(),
            why: error.to_string(),
        };
        match self {
            Self::Setting { path } => {
                let full = root.path(path)?;
                // One write: the kernel takes each as a value of its own.
                let write = || {
                    fs::OpenOptions::new()
                        .write(true)
                        .truncate(!root.is_real())
                        .open(&full)?
                        .write_all(state.unwrap_or_default())
                };
                write().map_err(|error| failed(path, error))
            }
            Self::File { path, mode } => {
                let full = root.path(path)?;
                let write = || match state {
                    None => fs::remove_file(&full),
                    Some(bytes) => {
                        use std::os::unix::fs::OpenOptionsExt;
                        let beside = full.with_extension("weighbridge-new");
                        let mut file =
                            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(*mode).open(&beside)?;
                        file.write_all(bytes)?;
                        file.sync_all()?;
                        fs::rename(&beside, &full)
                    }
                };
                write().map_err(|error| failed(path, error))
            }
            Self::Command { write, .. } => {
                let value = String::from_utf8_lossy(state.unwrap_or_default()).trim().to_owned();
                let words: Vec<String> = write.iter().map(|word| word.replace("{}", &value)).collect();
                run(&words).map(drop)
            }
        }
    }
}

fn run(words: &[String]) -> Result<Vec<u8>, StepError> {
    let failed = |why: String| StepError::Command { command: words.join(" "), why };
    let (program, arguments) = words.split_first().ok_or_else(|| failed("there is no command".to_owned()))?;
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))),
    }
}
