//! Runs a user's setup script once on a machine; the script and the processes it started are removed afterwards.

use std::path::{Path, PathBuf};

use wb_agent::{Command, Worker, WorkerError};
use wb_model::secrets::mask_arguments;
use wb_model::{Bytes, Nanos, Sha256};

use crate::controller::{last_lines, log};

const MAX_SCRIPT_SIZE: Bytes = Bytes(16 << 20);
/// Maximum size of what is kept of each of its output streams.
const MAX_OUTPUT: Bytes = Bytes(64 << 20);

/// A script read from a file on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub path: PathBuf,
    arguments: Vec<String>,
    text: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadScriptError {
    #[error("cannot read the script {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the script {} is too long: {length} bytes, at most {MAX_SCRIPT_SIZE} are allowed", path.display())]
    TooLong {
        path: PathBuf,
        /// In bytes.
        length: usize,
    },
    #[error("invalid script `{0}`: expected a file, optionally followed by arguments")]
    Empty(String),
}

#[derive(Debug)]
pub struct ScriptOutput {
    pub result: Result<(), ScriptError>,
    pub log: Vec<u8>,
    pub elapsed: Nanos,
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It failed or was killed.
    #[error("{script}: {message}")]
    Failed {
        script: String,
        /// How it ended, and its last output.
        message: String,
    },
    #[error("{script}: {source}")]
    Worker { script: String, source: WorkerError },
}

impl Script {
    /// Reads a script given as a file, or as a file and arguments quoted as for a shell.
    pub fn read(spec: &str) -> Result<Self, ReadScriptError> {
        let (path, arguments) = match Path::new(spec) {
            file if file.is_file() => (file.to_owned(), Vec::new()),
            _ => {
                let mut words = shell_words::split(spec).unwrap_or_default().into_iter();
                let file = words.next().ok_or_else(|| ReadScriptError::Empty(spec.to_owned()))?;
                (PathBuf::from(file), words.collect())
            }
        };
        let text = std::fs::read(&path).map_err(|source| ReadScriptError::Unreadable { path: path.clone(), source })?;
        match text.len() {
            length if length as u64 > MAX_SCRIPT_SIZE.0 => Err(ReadScriptError::TooLong { path, length }),
            _ => Ok(Self { path, arguments, text }),
        }
    }

    /// A script that installs packages with dnf, given as names, files on the machine, or URLs.
    pub fn install_packages(packages: &[String]) -> Self {
        let text = "#!/bin/sh\nexec dnf install -y --nobest --skip-broken \"$@\"\n";
        Self { path: PathBuf::from("dnf-install"), arguments: packages.to_vec(), text: text.into() }
    }

    /// Hash of its text and arguments.
    pub fn sha256(&self) -> Sha256 {
        let mut identity = self.text.clone();
        for argument in &self.arguments {
            identity.push(0);
            identity.extend(argument.as_bytes());
        }
        Sha256::digest(&identity)
    }

    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(|| "script".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Runs it on a worker, up to a limit. Processes that it leaves running are killed.
    pub async fn run(&self, worker: &Worker, limit: Nanos) -> ScriptOutput {
        let script = self.name();
        let arguments = mask_arguments([script.clone()].into_iter().chain(self.arguments.clone()));
        let title = shell_words::join(arguments);
        match self.run_to_end(worker, limit).await {
            Ok(finished) => {
                let output = [&finished.stderr, &finished.stdout].map(|stream| last_lines(stream));
                let output = output.into_iter().find(|output| !output.is_empty());
                let how = output.map_or_else(
                    || finished.exit_reason.to_string(),
                    |output| format!("{}: {output}", finished.exit_reason),
                );
                ScriptOutput {
                    result: if finished.exit_reason.is_success() {
                        Ok(())
                    } else {
                        Err(ScriptError::Failed { script, message: how })
                    },
                    log: log(&title, &finished.exit_reason, &finished.stdout, &finished.stderr),
                    elapsed: finished.elapsed(),
                }
            }
            Err(source) => ScriptOutput {
                log: format!("{title}\n{source}\n").into_bytes(),
                result: Err(ScriptError::Worker { script, source }),
                elapsed: Nanos(0),
            },
        }
    }

    async fn run_to_end(&self, worker: &Worker, limit: Nanos) -> Result<wb_agent::ProcessOutput, WorkerError> {
        let group = worker.new_group().await?;
        let file = format!("{}/{}", group.folder(), self.name());
        worker.put(&file, &self.text, 0o700).await?;
        // Call its interpreter explicitly: the folder may be mounted noexec.
        let argv = interpreter(&self.text).into_iter().chain([file]).chain(self.arguments.iter().cloned());
        let command =
            Command::new(argv).env("WEIGHBRIDGE_WORKER", worker.name().as_str()).output_limit(MAX_OUTPUT).cut_output();
        let finished = group.spawn(command).await?.wait(Some(limit)).await?;
        group.close().await?;
        Ok(finished)
    }
}

/// The interpreter of a script: the program and at most one argument after `#!`, as the kernel parses it; otherwise sh.
fn interpreter(text: &[u8]) -> Vec<String> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let Some(shebang) = line.strip_prefix("#!").map(str::trim).filter(|shebang| !shebang.is_empty()) else {
        return vec!["sh".to_owned()];
    };
    let (program, argument) = shebang.split_once(char::is_whitespace).unwrap_or((shebang, ""));
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    [program].into_iter().chain(argument).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_names_the_interpreter() {
        assert_eq!(interpreter(b"#!/usr/bin/env python3\nprint()"), ["/usr/bin/env", "python3"]);
        assert_eq!(interpreter(b"#! /bin/sh -e x\n"), ["/bin/sh", "-e x"]);
        for plain in [&b"echo hello"[..], b"", b"#!\n", b"\xff\xfe"] {
            assert_eq!(interpreter(plain), ["sh"]);
        }
    }

    #[test]
    fn script_is_identified_by_its_text_and_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set up.sh");
        std::fs::write(&path, "echo 1\n").unwrap();
        let plain = Script::read(path.to_str().unwrap()).unwrap();
        let with_arguments = Script::read(&format!("'{}' 1", path.display())).unwrap();
        assert_eq!((plain.name(), with_arguments.arguments.len()), ("set up.sh".to_owned(), 1));
        assert_ne!(plain.sha256(), with_arguments.sha256());
        assert!(matches!(Script::read("nosuch.sh"), Err(ReadScriptError::Unreadable { .. })));
        assert!(matches!(Script::read(" "), Err(ReadScriptError::Empty { .. })));
    }
}
