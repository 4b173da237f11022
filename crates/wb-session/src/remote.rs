//! Runs the agent's program on other machines.

use std::path::{Path, PathBuf};

use wb_agent::{Command, ProcessOutput, Worker, WorkerError};
use wb_model::{Bytes, Nanos};

use crate::error::SessionError;

/// Time limit for a command on a machine.
const COMMAND_TIMEOUT: Nanos = Nanos(600_000_000_000);
const MAX_OUTPUT: Bytes = Bytes(64 << 20);

/// A command-line argument for another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteArgument {
    /// Passed as it is.
    Plain(String),
    /// A local file, which is uploaded first.
    File(PathBuf),
}

impl RemoteArgument {
    pub fn plain(word: &str) -> Self {
        Self::Plain(word.to_owned())
    }
}

/// Uploads the files and runs the agent's program on a machine to completion. The inner result is that of the machine;
/// the outer one fails if a local file cannot be read.
pub async fn upload_and_run(
    worker: &Worker,
    words: &[RemoteArgument],
) -> Result<Result<ProcessOutput, WorkerError>, SessionError> {
    let mut files = Vec::new();
    for word in words {
        if let RemoteArgument::File(path) = word {
            let bytes = std::fs::read(path).map_err(SessionError::file("read", path))?;
            files.push((path.as_path(), bytes));
        }
    }
    Ok(spawn_and_wait(worker, words, &files).await)
}

async fn spawn_and_wait(
    worker: &Worker,
    words: &[RemoteArgument],
    files: &[(&Path, Vec<u8>)],
) -> Result<ProcessOutput, WorkerError> {
    let group = worker.new_group().await?;
    let remote_path = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{name}", group.folder())
    };
    for (path, bytes) in files {
        worker.put(&remote_path(path), bytes, 0o600).await?;
    }
    let words = words.iter().map(|word| match word {
        RemoteArgument::Plain(word) => word.clone(),
        RemoteArgument::File(path) => remote_path(path),
    });
    let argv = [worker.program().to_owned()].into_iter().chain(words);
    let finished = group.spawn(Command::new(argv).output_limit(MAX_OUTPUT)).await?.wait(Some(COMMAND_TIMEOUT)).await?;
    group.close().await?;
    Ok(finished)
}
