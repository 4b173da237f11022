//! The folder of images on this machine: entries that are whole have their names, one is made by one process at a time.
//!
//! ```text
//! images/NAME/            an entry: its files, and entry.json that says what they are
//! images/.NAME.part/      what it is made in; renamed when it is whole
//! images/.NAME.lock       there while somebody makes, uses or removes it
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use crate::image::request::{CACHE_VARIABLE, ImageProgress};
use crate::image::{BaseImage, GuestBoot, ImageFailure};

use super::ProgressWriter;

/// The folder of images.
pub(super) struct ImageStore(PathBuf);

/// What `entry.json` says of an entry. Paths are relative to its folder, but for files of the user's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct EntryRecord {
    /// What it is.
    pub(super) base: BaseImage,
    /// The size and the time of the image's file when its hash was taken: as long as they are so, the hash is.
    pub(super) fingerprint: FileFingerprint,
    /// When it was made.
    pub(super) made: jiff::Timestamp,
    /// When it was last asked for.
    pub(super) used: jiff::Timestamp,
}

/// By what a file is seen to be unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileFingerprint {
    size: Bytes,
    changed_ns: i128,
}

/// Holds an entry alone, until it is dropped.
pub(super) struct EntryLock {
    path: PathBuf,
    _file: File,
}

const RECORD: &str = "entry.json";

impl ImageStore {
    /// The folder, there or not: `$WEIGHBRIDGE_CACHE/images`, for root `/var/cache/weighbridge/images`, for others
    /// `${XDG_CACHE_HOME:-~/.cache}/weighbridge/images`.
    pub(super) fn find() -> Result<Self, ImageFailure> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let own = || Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("weighbridge"));
        let place = match set(CACHE_VARIABLE) {
            Some(place) => Some(place),
            None if rustix::process::geteuid().is_root() => Some(PathBuf::from("/var/cache/weighbridge")),
            None => own(),
        };
        let nowhere = || ImageFailure::File { path: "~/.cache".to_owned(), why: "HOME is not set".to_owned() };
        Ok(Self(place.ok_or_else(nowhere)?.join("images")))
    }

    /// The folder, made where it is not there.
    pub(super) fn open() -> Result<Self, ImageFailure> {
        let folder = Self::find()?;
        make_folder(&folder.0)?;
        Ok(folder)
    }

    /// Removes it, and the folder above, where they hold nothing: else the system refuses to.
    pub(super) fn remove_if_empty(&self) {
        let _ = fs::remove_dir(&self.0).and_then(|()| self.0.parent().map_or(Ok(()), fs::remove_dir));
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Where an entry is.
    pub(super) fn entry_path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Where an entry is made.
    pub(super) fn partial_path(&self, name: &str) -> PathBuf {
        self.0.join(format!(".{name}.part"))
    }

    /// Where the lock of an entry is.
    pub(super) fn lock_file(&self, name: &str) -> PathBuf {
        self.0.join(format!(".{name}.lock"))
    }

    /// An entry, if it is whole: it says what it is, and its files are there as they were.
    pub(super) fn complete_entry(&self, name: &str) -> Option<EntryRecord> {
        let record = self.record(name)?;
        let boot = match &record.base.boot {
            GuestBoot::Disk => Vec::new(),
            GuestBoot::Kernel { kernel, initrd, .. } => vec![kernel, initrd],
        };
        let is_there = boot.into_iter().all(|file| Path::new(file).is_file());
        (is_there && FileFingerprint::of(Path::new(&record.base.path)).ok()? == record.fingerprint).then_some(record)
    }

    /// What an entry says of itself.
    pub(super) fn record(&self, name: &str) -> Option<EntryRecord> {
        let folder = self.entry_path(name);
        let mut record: EntryRecord = serde_json::from_slice(&fs::read(folder.join(RECORD)).ok()?).ok()?;
        let place = |path: &mut String| *path = folder.join(&*path).display().to_string();
        place(&mut record.base.path);
        if let GuestBoot::Kernel { kernel, initrd, .. } = &mut record.base.boot {
            place(kernel);
            place(initrd);
        }
        Some(record)
    }

    /// Notes that an entry was asked for, and tells what it is. Who holds the lock may do so.
    pub(super) fn touch(&self, name: &str, _: &EntryLock) -> Result<Option<BaseImage>, ImageFailure> {
        let Some(record) = self.complete_entry(name) else { return Ok(None) };
        let path = self.entry_path(name).join(RECORD);
        // As it was written, with its relative paths.
        let written = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<EntryRecord>(&bytes).ok());
        if let Some(written) = written {
            write_atomically(&path, &EntryRecord { used: jiff::Timestamp::now(), ..written })?;
        }
        Ok(Some(record.base))
    }

    /// Gives what was made in the part its name. `base` has paths relative to it.
    pub(super) fn finish(&self, name: &str, base: BaseImage, lock: &EntryLock) -> Result<BaseImage, ImageFailure> {
        let (part, entry) = (self.partial_path(name), self.entry_path(name));
        let image = part.join(&base.path);
        let file = File::open(&image).map_err(|error| ImageFailure::file(&image, &error))?;
        file.sync_all().map_err(|error| ImageFailure::file(&image, &error))?;
        let now = jiff::Timestamp::now();
        let seen = FileFingerprint::of(&image).map_err(|error| ImageFailure::file(&image, &error))?;
        write_atomically(&part.join(RECORD), &EntryRecord { base, fingerprint: seen, made: now, used: now })?;
        remove_all(&entry)?;
        fs::rename(&part, &entry).map_err(|error| ImageFailure::file(&entry, &error))?;
        let synced = File::open(&self.0).and_then(|folder| folder.sync_all());
        synced.map_err(|error| ImageFailure::file(&self.0, &error))?;
        let gone = || ImageFailure::Missing { path: entry.display().to_string() };
        self.touch(name, lock)?.ok_or_else(gone)
    }

    /// Holds an entry alone, after whoever holds it.
    pub(super) fn lock(&self, name: &str, teller: &mut ProgressWriter) -> Result<EntryLock, ImageFailure> {
        loop {
            let (path, file) = self.open_lock(name)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    teller.report(ImageProgress::Waiting);
                    file.lock().map_err(|error| ImageFailure::file(&path, &error))?;
                }
                Err(TryLockError::Error(error)) => return Err(ImageFailure::file(&path, &error)),
            }
            if is_same_file(&file, &path) {
                return Ok(EntryLock { path, _file: file });
            }
        }
    }

    /// Holds an entry alone, unless somebody else does.
    pub(super) fn try_lock(&self, name: &str) -> Result<Option<EntryLock>, ImageFailure> {
        let (path, file) = self.open_lock(name)?;
        let held = file.try_lock().is_ok() && is_same_file(&file, &path);
        // Made only when it is held: its end removes the file.
        Ok(held.then(|| EntryLock { path, _file: file }))
    }

    fn open_lock(&self, name: &str) -> Result<(PathBuf, File), ImageFailure> {
        let path = self.lock_file(name);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o644).open(&path);
        let file = file.map_err(|error| ImageFailure::file(&path, &error))?;
        Ok((path, file))
    }
}

/// Whether the file that is locked is the one that others will find: whoever held it before has removed it.
fn is_same_file(file: &File, path: &Path) -> bool {
    let same = |ours: fs::Metadata, theirs: fs::Metadata| (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino());
    file.metadata().and_then(|ours| Ok(same(ours, fs::metadata(path)?))).unwrap_or(false)
}

impl Drop for EntryLock {
    fn drop(&mut self) {
        // Still held: nobody can have taken another one of this name.
        let _ = fs::remove_file(&self.path);
    }
}

impl FileFingerprint {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        let of = fs::metadata(path)?;
        let changed_ns = i128::from(of.mtime()) * 1_000_000_000 + i128::from(of.mtime_nsec());
        Ok(Self { size: Bytes(of.len()), changed_ns })
    }
}

/// Makes a folder that everybody may read, whatever the umask: guests run as another user.
pub(super) fn make_folder(path: &Path) -> Result<(), ImageFailure> {
    let failed = |error: std::io::Error| ImageFailure::file(path, &error);
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_folder(above)?;
    }
    match DirBuilder::new().mode(0o755).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(failed),
        // Somebody else was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Removes a file or a folder, if it is there.
pub(super) fn remove_all(path: &Path) -> Result<(), ImageFailure> {
    let removed = match fs::symlink_metadata(path) {
        Ok(of) if of.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ImageFailure::file(path, &error)),
        _ => Ok(()),
    }
}

fn write_atomically(path: &Path, record: &EntryRecord) -> Result<(), ImageFailure> {
    let failed = |error: std::io::Error| ImageFailure::file(path, &error);
    let beside = path.with_extension("new");
    let mut text = serde_json::to_string_pretty(record).map_err(|error| failed(error.into()))?;
    text.push('\n');
    let mut file = File::create(&beside).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    file.set_permissions(Permissions::from_mode(0o644)).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}
