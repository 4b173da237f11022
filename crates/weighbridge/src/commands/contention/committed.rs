//! The file of committed parameters on a machine, as an item that can be removed.

use std::path::Path;

use wb_agent::{Command, Worker, WorkerError};
use wb_contention::parameters::ParametersFile;
use wb_model::{Bytes, Nanos};

use super::request::DIR;

/// Time limit of a command that finds or removes the file.
const LIMIT: Nanos = Nanos(60_000_000_000);

/// Committed parameters of contention benches on a machine.
pub(crate) struct CommittedParameters {
    /// The path of their file.
    pub(crate) path: String,
    /// Its size.
    pub(crate) size: Bytes,
    /// When it was last written, in seconds since 1970.
    pub(crate) written_s: u64,
}

impl CommittedParameters {
    /// Finds them in the folder of the benches, an absolute path or none for the default; `None` if nothing is committed
    /// there, or the user may not look into it.
    pub(crate) async fn find(worker: &Worker, folder: Option<&Path>) -> Result<Option<Self>, WorkerError> {
        let file = ParametersFile::in_folder(folder.unwrap_or(Path::new(DIR)));
        let path = file.path().display().to_string();
        let found = worker.run(Command::new(["stat", "-c", "%s %Y", "--", &path].map(str::to_owned)), LIMIT).await?;
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        let fields =
            text.trim().split_once(' ').and_then(|(size, time)| Some((size.parse().ok()?, time.parse().ok()?)));
        Ok(fields.map(|(size, written_s)| Self { path, size: Bytes(size), written_s }))
    }

    /// Removes the file, and its folder if that is the default and empty. Returns why it could not be removed.
    pub(crate) async fn remove(&self, worker: &Worker) -> Result<Option<String>, WorkerError> {
        let script = r#"rm -- "$1" || exit; [ "${1%/*}" != "$2" ] || rmdir -- "$2" 2>/dev/null || true"#;
        let argv = ["sh", "-c", script, "sh", &self.path, DIR].map(str::to_owned);
        let ended = worker.run(Command::new(argv), LIMIT).await?;
        let reason = || String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        Ok((!ended.exit_reason.is_success()).then(reason))
    }
}
