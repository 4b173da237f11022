//! Scripts of the user's that set a machine up: carried to it, run there once, and gone with what they started.

use std::path::{Path, PathBuf};

use wb_agent::{Command, Worker, WorkerError};
use wb_model::secrets::mask_arguments;
use wb_model::{Bytes, Nanos, Sha256};

use crate::controller::{last_lines, log};

/// The longest that a script may be.
const MAX_SCRIPT_SIZE: Bytes = Bytes(16 << 20);
/// The most that is kept of what it says.
const MAX_OUTPUT: Bytes = Bytes(64 << 20);

/// A script, read from a file of this machine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its file here.
    pub path: PathBuf,
    arguments: Vec<String>,
    text: Vec<u8>,
}

/// Why something is no script.
#[derive(Debug, thiserror::Error)]
pub enum ReadScriptError {
    /// It cannot be read.
    #[error("the script {} cannot be read: {source}", path.display())]
    Unreadable {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is too long.
    #[error("the script {} has {length} bytes, and {MAX_SCRIPT_SIZE} are the most", path.display())]
    TooLong {
        /// Its file.
        path: PathBuf,
        /// What it has.
        length: usize,
    },
    /// What was given is no file and no words.
    #[error("`{given}` is no script: a file is expected, and arguments after it if need be")]
    Empty {
        /// What was given.
        given: String,
    },
}

/// A script that ran.
#[derive(Debug)]
pub struct ScriptOutput {
    /// What went wrong, if anything.
    pub result: Result<(), ScriptError>,
    /// What it said.
    pub log: Vec<u8>,
    /// How long it ran.
    pub elapsed: Nanos,
}

/// Why a script did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It says so, or was ended.
    #[error("{script}: {how}")]
    Failed {
        /// Which.
        script: String,
        /// How it ended, and the last that it said.
        how: String,
    },
    /// Its worker could not run it.
    #[error("{script}: {source}")]
    Worker {
        /// Which.
        script: String,
        /// Why.
        source: WorkerError,
    },
}

impl Script {
    /// Reads a script as it is given: a file, or a file and arguments as a shell divides them.
    ///
    /// # Errors
    /// When there is none.
    pub fn read(given: &str) -> Result<Self, ReadScriptError> {
        let (path, arguments) = match Path::new(given) {
            file if file.is_file() => (file.to_owned(), Vec::new()),
            _ => {
                let mut words = shell_words::split(given).unwrap_or_default().into_iter();
                let file = words.next().ok_or_else(|| ReadScriptError::Empty { given: given.to_owned() })?;
                (PathBuf::from(file), words.collect())
            }
        };
        let text = std::fs::read(&path).map_err(|source| ReadScriptError::Unreadable { path: path.clone(), source })?;
        match text.len() {
            length if length as u64 > MAX_SCRIPT_SIZE.0 => Err(ReadScriptError::TooLong { path, length }),
            _ => Ok(Self { path, arguments, text }),
        }
    }

    /// A script that installs packages with dnf: names, files of the machine's, or URLs.
    pub fn install_packages(packages: &[String]) -> Self {
        let text = "#!/bin/sh\nexec dnf install -y --nobest --skip-broken \"$@\"\n";
        Self { path: PathBuf::from("dnf-install"), arguments: packages.to_vec(), text: text.into() }
    }

    /// The hash of its text and its arguments: what tells it from another.
    pub fn sha256(&self) -> Sha256 {
        let mut all = self.text.clone();
        for argument in &self.arguments {
            all.push(0);
            all.extend(argument.as_bytes());
        }
        Sha256::of(&all)
    }

    /// Its file's name.
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(|| "script".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Runs it on a worker, up to a limit. What it started and left running ends with it.
    pub async fn run(&self, worker: &Worker, limit: Nanos) -> ScriptOutput {
        let script = self.name();
        let shown = mask_arguments([script.clone()].into_iter().chain(self.arguments.clone()));
        let what = shell_words::join(shown);
        match self.run_to_end(worker, limit).await {
            Ok(finished) => {
                let said = [&finished.stderr, &finished.stdout].map(|stream| last_lines(stream));
                let said = said.into_iter().find(|said| !said.is_empty());
                let how =
                    said.map_or_else(|| finished.ending.to_string(), |said| format!("{}: {said}", finished.ending));
                ScriptOutput {
                    result: if finished.ending.is_success() {
                        Ok(())
                    } else {
                        Err(ScriptError::Failed { script, how })
                    },
                    log: log(&what, &finished.ending, &finished.stdout, &finished.stderr),
                    elapsed: finished.elapsed(),
                }
            }
            Err(source) => ScriptOutput {
                log: format!("{what}\n{source}\n").into_bytes(),
                result: Err(ScriptError::Worker { script, source }),
                elapsed: Nanos(0),
            },
        }
    }

    async fn run_to_end(&self, worker: &Worker, limit: Nanos) -> Result<wb_agent::ProcessOutput, WorkerError> {
        let group = worker.new_group().await?;
        let file = format!("{}/{}", group.folder(), self.name());
        worker.put(&file, &self.text, 0o700).await?;
        // Its interpreter is called here: the folder may be where nothing can be executed.
        let argv = interpreter(&self.text).into_iter().chain([file]).chain(self.arguments.iter().cloned());
        let command = Command::new(argv).env("WEIGHBRIDGE_WORKER", worker.name().as_str()).output_limit(MAX_OUTPUT);
        let finished = group.spawn(command).await?.wait(Some(limit)).await?;
        group.teardown().await?;
        Ok(finished)
    }
}

/// What runs a script: its first line after `#!` names a program and one argument, as the kernel takes it; sh otherwise.
fn interpreter(text: &[u8]) -> Vec<String> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let Some(named) = line.strip_prefix("#!").map(str::trim).filter(|named| !named.is_empty()) else {
        return vec!["sh".to_owned()];
    };
    let (program, argument) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    [program].into_iter().chain(argument).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_what_runs_a_script() {
        assert_eq!(interpreter(b"#!/usr/bin/env python3\nprint()"), ["/usr/bin/env", "python3"]);
        assert_eq!(interpreter(b"#! /bin/sh -e x\n"), ["/bin/sh", "-e x"]);
        for plain in [&b"echo hello"[..], b"", b"#!\n", b"\xff\xfe"] {
            assert_eq!(interpreter(plain), ["sh"]);
        }
    }

    #[test]
    fn a_script_is_told_from_another_by_its_text_and_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set up.sh");
        std::fs::write(&path, "echo 1\n").unwrap();
        let plain = Script::read(path.to_str().unwrap()).unwrap();
        let with = Script::read(&format!("'{}' 1", path.display())).unwrap();
        assert_eq!((plain.name(), with.arguments.len()), ("set up.sh".to_owned(), 1));
        assert_ne!(plain.sha256(), with.sha256());
        assert!(matches!(Script::read("nosuch.sh"), Err(ReadScriptError::Unreadable { .. })));
        assert!(matches!(Script::read(" "), Err(ReadScriptError::Empty { .. })));
    }
}
