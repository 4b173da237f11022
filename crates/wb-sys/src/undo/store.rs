//! Where the log lies, and how lines reach the disk.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SysRoot;

use super::log::UndoError;
use super::record::LogRecord;
use super::step::StepError;

/// Where the log of a machine is.
const FOLDER: &str = "/var/lib/weighbridge/undo";

/// The newest format that is known.
const FORMAT: u32 = 1;

/// The first line of a log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    #[serde(rename = "weighbridge-undo-log")]
    format: u32,
}

/// It has what files held before, which is not for everybody.
const LOG_MODE: u32 = 0o600;

/// For whom a machine is changed is for everybody: others must not measure it.
const OWNERS_MODE: u32 = 0o644;

/// The folder of a machine's log.
#[derive(Debug)]
pub(super) struct LogFolder {
    folder: PathBuf,
}

impl LogFolder {
    /// Where it would be; nothing is made.
    pub(super) fn locate(root: &SysRoot) -> Result<Self, UndoError> {
        Ok(Self { folder: root.path(FOLDER).map_err(StepError::from)? })
    }

    /// Makes the folder where there is none, and sees that nobody else can write into it.
    pub(super) fn create(root: &SysRoot) -> Result<Self, UndoError> {
        let store = Self::locate(root)?;
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o755).create(&store.folder);
        made.map_err(io_error("make", &store.folder))?;
        for folder in [&store.folder, store.folder.parent().unwrap_or(&store.folder)] {
            require_trusted(folder)?;
        }
        Ok(store)
    }

    /// Whether there is any of its folders: somebody may have been killed between making, or removing, one and the other.
    pub(super) fn exists(&self) -> bool {
        self.folder.exists() || self.folder.parent().is_some_and(Path::exists)
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log.jsonl")
    }

    /// The lines that were written whole.
    pub(super) fn lines(&self) -> Result<Vec<LogRecord>, UndoError> {
        let path = self.log();
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(io_error("read", &path))?,
        };
        let shown = || path.display().to_string();
        let whole = &bytes[..complete_length(&bytes)];
        let mut lines = whole.split_inclusive(|byte| *byte == b'\n');
        match lines.next().map(serde_json::from_slice::<Header>) {
            Some(Ok(Header { format: FORMAT })) => {}
            Some(Ok(Header { format })) => {
                return Err(UndoError::UnsupportedFormat { path: shown(), format, known: FORMAT });
            }
            // Killed while the first line was written: nothing was changed.
            None if header().as_bytes().starts_with(&bytes) => return Ok(Vec::new()),
            _ => return Err(UndoError::Foreign { path: shown() }),
        }
        let parse = |(line, text): (usize, &[u8])| {
            let damaged = |error: serde_json::Error| UndoError::Damaged { path: shown(), line, why: error.to_string() };
            serde_json::from_slice(text).map_err(damaged)
        };
        (2..).zip(lines).map(parse).collect()
    }

    /// Cuts off the beginning of a line that never reached the device, and after which nothing was changed.
    pub(super) fn truncate_partial_line(&self) -> Result<(), UndoError> {
        let path = self.log();
        let cut = || {
            let bytes = match fs::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => other?,
            };
            let whole = complete_length(&bytes);
            if whole == bytes.len() {
                Ok(())
            } else {
                OpenOptions::new().write(true).open(&path)?.set_len(whole as u64)
            }
        };
        cut().map_err(io_error("mend", &path))
    }

    /// Adds a line, which has reached the device when this returns. Where it cannot be written whole, none of it stays.
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

    /// The folder's own entries, and those of the folders above where they may be new.
    fn sync_folders(&self, new: bool) -> io::Result<()> {
        let mut folders = self.folder.ancestors().take(if new { 3 } else { 1 });
        folders.try_for_each(|folder| File::open(folder)?.sync_all())
    }

    /// For whom the machine is changed, which every user may know; nobody where that is not written down.
    pub(super) fn owners(&self) -> Result<Vec<String>, UndoError> {
        let path = self.owners_file();
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            text => Ok(text.map_err(io_error("read", &path))?.lines().map(str::to_owned).collect()),
        }
    }

    /// Writes down for whom the machine is changed.
    pub(super) fn set_owners(&self, owners: &BTreeSet<&str>) -> Result<(), UndoError> {
        let path = self.owners_file();
        if owners.iter().copied().eq(self.owners()?) {
            return Ok(());
        }
        let text: String = owners.iter().map(|owner| format!("{owner}\n")).collect();
        let new = path.with_extension("new");
        let write = || {
            fs::write(&new, text)?;
            // Whatever the umask.
            fs::set_permissions(&new, fs::Permissions::from_mode(OWNERS_MODE))?;
            fs::rename(&new, &path)
        };
        write().map_err(io_error("write", &path)).inspect_err(|_| {
            // What cannot be removed either is removed by whoever opens the log next.
            let _ = fs::remove_file(&new);
        })
    }

    /// Removes what says for whom the machine is changed, also the unfinished one of somebody who was killed.
    pub(super) fn remove_owners(&self) -> Result<(), UndoError> {
        let path = self.owners_file();
        for path in [path.with_extension("new"), path] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error("remove", &path)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    fn owners_file(&self) -> PathBuf {
        self.folder.join("owners")
    }

    /// Removes the folders, where they hold nothing: else the system refuses to.
    pub(super) fn remove_if_empty(&self) {
        let _ = fs::remove_dir(&self.folder).and_then(|()| self.folder.parent().map_or(Ok(()), fs::remove_dir));
    }

    /// Removes the log.
    pub(super) fn remove(&self) -> Result<(), UndoError> {
        let path = self.log();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path)(error)),
            _ => Ok(()),
        }
    }
}

fn header() -> String {
    format!("{{\"weighbridge-undo-log\":{FORMAT}}}\n")
}

/// How much of a log is whole lines.
fn complete_length(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// What the log says is carried out with all rights, so that nobody else may have a hand in it.
fn require_trusted(folder: &Path) -> Result<(), UndoError> {
    let untrusted = |why: String| Err(UndoError::Untrusted { path: folder.display().to_string(), why });
    let metadata = fs::symlink_metadata(folder).map_err(io_error("read", folder))?;
    let me = rustix::process::geteuid().as_raw();
    match metadata.permissions().mode() {
        _ if !metadata.is_dir() => untrusted("is no folder".to_owned()),
        // Not root: that is all there is to say.
        _ if metadata.uid() == 0 && me != 0 => Err(io_error("write", folder)(io::ErrorKind::PermissionDenied.into())),
        _ if metadata.uid() != me => untrusted(format!("belongs to user {}", metadata.uid())),
        mode if mode & 0o022 != 0 => untrusted(format!("can be written to by others (mode {:o})", mode & 0o7777)),
        _ => Ok(()),
    }
}

pub(super) fn io_error(what: &'static str, path: &Path) -> impl Fn(io::Error) -> UndoError + use<> {
    let path = path.display().to_string();
    move |source| UndoError::Io { what, path: path.clone(), source }
}
