//! The files of the undo log.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file::{AtomicFile, sync_folder};
use crate::{SysRoot, UntrustedPath, trusted_path};

use super::log::UndoError;
use super::record::LogRecord;
use super::resource::ResourceError;

/// The folder of the undo log.
const FOLDER: &str = "/var/lib/weighbridge/undo";

/// The newest supported format.
const FORMAT: u32 = 1;

/// The first line of a log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    #[serde(rename = "weighbridge-undo-log")]
    format: u32,
}

/// Mode of the log, which contains the previous contents of files.
const LOG_MODE: u32 = 0o600;

/// Mode of the file of owners: all users need to know that a machine is changed and must not be measured.
const OWNERS_MODE: u32 = 0o644;

/// The folder of a machine's undo log.
#[derive(Debug)]
pub(super) struct LogFolder {
    folder: PathBuf,
}

impl LogFolder {
    /// Locates the folder without creating it.
    pub(super) fn locate(root: &SysRoot) -> Result<Self, UndoError> {
        Ok(Self { folder: root.path(FOLDER).map_err(ResourceError::from)? })
    }

    /// Creates the folder if necessary, and verifies that no other user can change it.
    pub(super) fn create(root: &SysRoot) -> Result<Self, UndoError> {
        let store = Self::locate(root)?;
        let mut builder = fs::DirBuilder::new();
        let created = builder.recursive(true).mode(0o755).create(&store.folder);
        created.map_err(io_error("create", &store.folder))?;
        require_trusted(&store.folder)?;
        Ok(store)
    }

    /// Whether any of its folders exists: a process may have been killed between creating, or removing, both.
    pub(super) fn exists(&self) -> bool {
        self.folder.exists() || self.folder.parent().is_some_and(Path::exists)
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log.jsonl")
    }

    /// Reads the records that were written completely.
    pub(super) fn lines(&self) -> Result<Vec<LogRecord>, UndoError> {
        let path = self.log();
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(io_error("read", &path))?,
        };
        let display = || path.display().to_string();
        let complete = &bytes[..complete_length(&bytes)];
        let mut lines = complete.split_inclusive(|byte| *byte == b'\n');
        match lines.next().map(serde_json::from_slice::<Header>) {
            Some(Ok(Header { format: FORMAT })) => {}
            Some(Ok(Header { format })) => {
                return Err(UndoError::UnsupportedFormat { path: display(), format, known: FORMAT });
            }
            // The writer was killed while it wrote the header: nothing was changed.
            None if header().as_bytes().starts_with(&bytes) => return Ok(Vec::new()),
            _ => return Err(UndoError::Foreign { path: display() }),
        }
        let parse = |(line, text): (usize, &[u8])| {
            let damaged =
                |error: serde_json::Error| UndoError::Damaged { path: display(), line, reason: error.to_string() };
            serde_json::from_slice(text).map_err(damaged)
        };
        (2..).zip(lines).map(parse).collect()
    }

    /// Truncates a partial last line: its record was never synced, and no change followed it.
    pub(super) fn truncate_partial_line(&self) -> Result<(), UndoError> {
        let path = self.log();
        let truncate = || {
            let bytes = match fs::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => other?,
            };
            let complete = complete_length(&bytes);
            if complete == bytes.len() {
                Ok(())
            } else {
                OpenOptions::new().write(true).open(&path)?.set_len(complete as u64)
            }
        };
        truncate().map_err(io_error("repair", &path))
    }

    /// Appends a record and syncs it to disk. If it cannot be written completely, no part of it remains.
    pub(super) fn append(&self, line: &LogRecord) -> Result<(), UndoError> {
        let path = self.log();
        let text = serde_json::to_string(line).map_err(io::Error::from).map_err(io_error("write", &path))?;
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).mode(LOG_MODE).open(&path)?;
            let length = file.metadata()?.len();
            let header = if length == 0 { header() } else { String::new() };
            let written = file.write_all(format!("{header}{text}\n").as_bytes()).and_then(|()| file.sync_all());
            if written.is_err() {
                file.set_len(length)?;
            }
            written?;
            self.sync_folders(length == 0)
        };
        write().map_err(io_error("write", &path))
    }

    /// Syncs the folder, and its parents where they may be new.
    fn sync_folders(&self, new: bool) -> io::Result<()> {
        let mut folders = self.folder.ancestors().take(if new { 3 } else { 1 });
        folders.try_for_each(sync_folder)
    }

    /// Reads the owners of changes, readable by any user; empty where the file does not exist.
    pub(super) fn owners(&self) -> Result<Vec<String>, UndoError> {
        let path = self.owners_file();
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            text => Ok(text.map_err(io_error("read", &path))?.lines().map(str::to_owned).collect()),
        }
    }

    /// Writes the owners of changes.
    pub(super) fn set_owners(&self, owners: &BTreeSet<&str>) -> Result<(), UndoError> {
        let path = self.owners_file();
        if owners.iter().copied().eq(self.owners()?) {
            return Ok(());
        }
        let text: String = owners.iter().map(|owner| format!("{owner}\n")).collect();
        let write = || {
            let file = AtomicFile::create(&path, path.with_extension("new"), OWNERS_MODE)?;
            file.set_mode(OWNERS_MODE)?;
            file.persist(text.as_bytes())
        };
        write().map_err(io_error("write", &path))
    }

    /// Removes the file of owners, and an unfinished one left by a killed process.
    pub(super) fn remove_owners(&self) -> Result<(), UndoError> {
        let path = self.owners_file();
        for path in [path.with_extension("new"), path] {
            remove_if_exists(&path)?;
        }
        Ok(())
    }

    fn owners_file(&self) -> PathBuf {
        self.folder.join("owners")
    }

    /// Removes the folders if they are empty; the system refuses otherwise.
    pub(super) fn remove_if_empty(&self) {
        let _ = fs::remove_dir(&self.folder).and_then(|()| self.folder.parent().map_or(Ok(()), fs::remove_dir));
    }

    /// Removes the log.
    pub(super) fn remove(&self) -> Result<(), UndoError> {
        remove_if_exists(&self.log())
    }
}

fn remove_if_exists(path: &Path) -> Result<(), UndoError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", path)(error)),
        _ => Ok(()),
    }
}

fn header() -> String {
    format!("{{\"weighbridge-undo-log\":{FORMAT}}}\n")
}

/// The length of the complete lines of a log, in bytes.
fn complete_length(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1)
}

/// Verifies that no other user can change the folder, because the log is executed with this user's privileges.
fn require_trusted(folder: &Path) -> Result<(), UndoError> {
    let metadata = fs::symlink_metadata(folder).map_err(io_error("read", folder))?;
    let uid = rustix::process::geteuid().as_raw();
    // Without root, the missing permission is the only relevant message.
    if metadata.uid() == 0 && uid != 0 {
        return Err(io_error("write", folder)(io::ErrorKind::PermissionDenied.into()));
    }
    if metadata.is_symlink() {
        Err(UntrustedPath::NotAFolder { path: folder.to_owned() }.into())
    } else {
        Ok(trusted_path::require_private(folder)?)
    }
}

pub(super) fn io_error(operation: &'static str, path: &Path) -> impl Fn(io::Error) -> UndoError + use<> {
    let path = path.display().to_string();
    move |source| UndoError::Io { operation, path: path.clone(), source }
}
