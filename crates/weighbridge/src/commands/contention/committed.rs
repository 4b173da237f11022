//! The file of committed parameters on a machine, as an item that can be removed.

use std::path::Path;

use wb_agent::{Command, Worker, WorkerError};
use wb_contention::parameters::ParametersFile;
use wb_model::{Bytes, Nanos};

use super::request::DIR;

/// Time limit of a command that finds or removes the file.
const LIMIT: Nanos = Nanos(60_000_000_000);

pub(crate) struct CommittedParameters {
    pub(crate) path: String,
    pub(crate) size: Bytes,
    /// When it was last written, in seconds since 1970.
    pub(crate) written_s: u64,
}

/// What a machine's folder of the benches holds.
pub(crate) enum ParametersSearch {
    Found(CommittedParameters),
    Absent,
    /// The folder, which the user may not look into.
    Unreadable(String),
}

impl CommittedParameters {
    /// Searches for them in the folder of the benches, an absolute path or none for the default.
    pub(crate) async fn find(worker: &Worker, folder: Option<&Path>) -> Result<ParametersSearch, WorkerError> {
        let folder = folder.unwrap_or(Path::new(DIR));
        let path = ParametersFile::in_folder(folder).path().display().to_string();
        // Messages are only known in the C locale.
        let argv = ["env", "LC_ALL=C", "stat", "-c", "%s %Y", "--", &path].map(str::to_owned);
        let found = worker.run(Command::new(argv), LIMIT).await?;
        let [output, errors] = [&found.stdout, &found.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        Ok(match parse_stat(&output) {
            Some((size, written_s)) => ParametersSearch::Found(Self { path, size, written_s }),
            None if errors.contains("Permission denied") => ParametersSearch::Unreadable(folder.display().to_string()),
            None => ParametersSearch::Absent,
        })
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

/// Size and modification time from `stat -c "%s %Y"`.
fn parse_stat(output: &str) -> Option<(Bytes, u64)> {
    let (size, time) = output.trim().split_once(' ')?;
    Some((Bytes(size.parse().ok()?), time.parse().ok()?))
}
