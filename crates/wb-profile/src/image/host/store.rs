//! The store of images on this machine. Only complete entries have their final names, and one process at a time creates
//! one.
//!
//! ```text
//! images/NAME/            an entry: its files, and entry.json that describes them
//! images/.NAME.part/      an entry under construction; renamed when it is complete
//! images/.NAME.lock       exists while a process creates, uses or removes the entry
//! ```

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wb_model::Bytes;
use wb_sys::atomic_file::sync_folder;
use wb_sys::file_lock::open_private;
use wb_sys::{AtomicFile, FileLock, LockError, trusted_path, user_folders};

use crate::image::request::{CACHE_VARIABLE, ImageProgress};
use crate::image::{BaseImage, GuestBoot, ImageFailure};

use super::ProgressWriter;

pub(super) struct ImageStore(PathBuf);

/// The content of an entry's `entry.json`. Paths are relative to its folder, except for files of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct EntryRecord {
    pub(super) base: BaseImage,
    /// Size and time of the image's file when it was hashed: while they are unchanged, the hash is valid.
    pub(super) fingerprint: FileFingerprint,
    pub(super) created: jiff::Timestamp,
    pub(super) last_used: jiff::Timestamp,
}

/// Size and modification time of a file, to detect changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileFingerprint {
    size: Bytes,
    changed_ns: i128,
}

/// Exclusive lock of an entry, released when dropped.
pub(super) struct EntryLock {
    path: PathBuf,
    _lock: FileLock,
}

const RECORD: &str = "entry.json";

impl ImageStore {
    /// The store, whether it exists or not: `$WEIGHBRIDGE_CACHE/images`, for root `/var/cache/weighbridge/images`, for
    /// other users `${XDG_CACHE_HOME:-~/.cache}/weighbridge/images`. Fails if another user can change it: what was
    /// verified when it was stored would not be what guests boot.
    pub(super) fn find() -> Result<Self, ImageFailure> {
        let cache = match user_folders::variable(CACHE_VARIABLE) {
            Some(cache) => Some(cache),
            None if rustix::process::geteuid().is_root() => Some(PathBuf::from("/var/cache/weighbridge")),
            None => user_folders::cache(),
        };
        let no_home = || ImageFailure::File { path: "~/.cache".to_owned(), why: "HOME is not set".to_owned() };
        let store = Self(cache.ok_or_else(no_home)?.join("images"));
        if store.0.exists() {
            store.require_trusted()?;
        }
        Ok(store)
    }

    fn require_trusted(&self) -> Result<(), ImageFailure> {
        trusted_path::require_private(&self.0).map_err(|reason| ImageFailure::UntrustedStore {
            folder: self.0.display().to_string(),
            reason: reason.to_string(),
        })
    }

    pub(super) fn open() -> Result<Self, ImageFailure> {
        let folder = Self::find()?;
        make_folder(&folder.0)?;
        folder.require_trusted()?;
        Ok(folder)
    }

    /// Removes the folder and its parent if they are empty; otherwise the system refuses.
    pub(super) fn remove_if_empty(&self) {
        let _ = fs::remove_dir(&self.0).and_then(|()| self.0.parent().map_or(Ok(()), fs::remove_dir));
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn entry_path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn partial_path(&self, name: &str) -> PathBuf {
        self.0.join(format!(".{name}.part"))
    }

    pub(super) fn lock_file(&self, name: &str) -> PathBuf {
        self.0.join(format!(".{name}.lock"))
    }

    /// The record of an entry if it is complete: its files exist and are unchanged.
    pub(super) fn complete_entry(&self, name: &str) -> Option<EntryRecord> {
        let record = self.record(name)?;
        let boot = match &record.base.boot {
            GuestBoot::Disk => Vec::new(),
            GuestBoot::Kernel { kernel, initrd, .. } => vec![kernel, initrd],
        };
        let exists = boot.into_iter().all(|file| Path::new(file).is_file());
        (exists && FileFingerprint::read(Path::new(&record.base.path)).ok()? == record.fingerprint).then_some(record)
    }

    /// The record of an entry, with absolute paths.
    pub(super) fn record(&self, name: &str) -> Option<EntryRecord> {
        let folder = self.entry_path(name);
        let mut record: EntryRecord = serde_json::from_slice(&fs::read(folder.join(RECORD)).ok()?).ok()?;
        let resolve = |path: &mut String| *path = folder.join(&*path).display().to_string();
        resolve(&mut record.base.path);
        if let GuestBoot::Kernel { kernel, initrd, .. } = &mut record.base.boot {
            resolve(kernel);
            resolve(initrd);
        }
        Some(record)
    }

    /// Records that an entry is used, and returns its image. Requires its lock.
    pub(super) fn mark_used(&self, name: &str, _: &EntryLock) -> Result<Option<BaseImage>, ImageFailure> {
        let Some(record) = self.complete_entry(name) else { return Ok(None) };
        let path = self.entry_path(name).join(RECORD);
        // Reread the record as stored, with its relative paths.
        let stored = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<EntryRecord>(&bytes).ok());
        if let Some(stored) = stored {
            write_atomically(&path, &EntryRecord { last_used: jiff::Timestamp::now(), ..stored })?;
        }
        Ok(Some(record.base))
    }

    /// Renames a complete entry under construction to its final name. `base` has paths relative to it.
    pub(super) fn finish(&self, name: &str, base: BaseImage, lock: &EntryLock) -> Result<BaseImage, ImageFailure> {
        let (part, entry) = (self.partial_path(name), self.entry_path(name));
        let image = part.join(&base.path);
        let file = File::open(&image).map_err(|error| ImageFailure::file(&image, &error))?;
        file.sync_all().map_err(|error| ImageFailure::file(&image, &error))?;
        let now = jiff::Timestamp::now();
        let seen = FileFingerprint::read(&image).map_err(|error| ImageFailure::file(&image, &error))?;
        write_atomically(&part.join(RECORD), &EntryRecord { base, fingerprint: seen, created: now, last_used: now })?;
        remove_all(&entry)?;
        fs::rename(&part, &entry).map_err(|error| ImageFailure::file(&entry, &error))?;
        sync_folder(&self.0).map_err(|error| ImageFailure::file(&self.0, &error))?;
        let gone = || ImageFailure::Missing { path: entry.display().to_string() };
        self.mark_used(name, lock)?.ok_or_else(gone)
    }

    /// Locks an entry, waiting for its current holder.
    pub(super) fn lock(&self, name: &str, writer: &mut ProgressWriter) -> Result<EntryLock, ImageFailure> {
        let path = self.lock_file(name);
        match FileLock::acquire(&path, || open_private(&path), || writer.report(ImageProgress::Waiting)) {
            Ok(lock) => Ok(EntryLock { path, _lock: lock }),
            Err(error) => Err(ImageFailure::file(&path, &error.into())),
        }
    }

    /// None if the entry is locked.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<EntryLock>, ImageFailure> {
        let path = self.lock_file(name);
        match FileLock::try_acquire(&path, || open_private(&path)) {
            Ok(lock) => Ok(Some(EntryLock { path, _lock: lock })),
            Err(LockError::Held(_)) => Ok(None),
            Err(error) => Err(ImageFailure::file(&path, &error.into())),
        }
    }
}

impl Drop for EntryLock {
    fn drop(&mut self) {
        // Still locked, so nobody can have created another file of this name.
        let _ = fs::remove_file(&self.path);
    }
}

impl FileFingerprint {
    pub(super) fn read(path: &Path) -> std::io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let changed_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Ok(Self { size: Bytes(metadata.len()), changed_ns })
    }
}

/// Creates a folder that everybody may read, whatever the umask: guests run as another user.
pub(super) fn make_folder(path: &Path) -> Result<(), ImageFailure> {
    let failed = |error: std::io::Error| ImageFailure::file(path, &error);
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(0o755).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(failed),
        // Another process created it first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Removes a file or a folder, if it exists.
pub(super) fn remove_all(path: &Path) -> Result<(), ImageFailure> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ImageFailure::file(path, &error)),
        _ => Ok(()),
    }
}

fn write_atomically(path: &Path, record: &EntryRecord) -> Result<(), ImageFailure> {
    let write = || {
        let text = serde_json::to_string_pretty(record)? + "\n";
        let file = AtomicFile::create(path, path.with_extension("new"), 0o644)?;
        file.set_mode(0o644)?;
        file.persist(text.as_bytes())
    };
    write().map_err(|error| ImageFailure::file(path, &error))
}
