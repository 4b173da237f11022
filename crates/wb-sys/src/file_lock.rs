//! Locks on files (flock): the kernel releases them with their holder, however it ends.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::OFlags;

/// A lock on a file, released when this is dropped or its process ends.
///
/// It is unlocked, not only closed: a child that another thread has just forked inherits the descriptor until it calls
/// execve, and would hold the lock as long.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another holder has locked it. The open file is returned, so that the holder's record can be read.
    #[error("locked by another holder")]
    Held(File),
    #[error(transparent)]
    Open(io::Error),
    /// The lock failed for another reason than a holder.
    #[error(transparent)]
    Lock(io::Error),
}

impl From<LockError> for io::Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held(_) => io::ErrorKind::WouldBlock.into(),
            LockError::Open(error) | LockError::Lock(error) => error,
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If it failed, closing the file would unlock it.
        let _ = self.file.unlock();
    }
}

impl FileLock {
    /// Locks the file at `path` without waiting. `open` opens it, and may create it; it is called again where a
    /// previous holder has removed the file in between, because a lock on a removed file locks nothing.
    pub fn try_acquire(path: &Path, open: impl FnMut() -> io::Result<File>) -> Result<Self, LockError> {
        try_lock(path, open).map(|file| Self { file })
    }

    /// Locks an open file together with other shared holders, without waiting.
    pub fn try_share(file: File) -> Result<Self, LockError> {
        match file.try_lock_shared() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Held(file)),
            Err(TryLockError::Error(error)) => Err(LockError::Lock(error)),
        }
    }

    /// Locks the file at `path`, waiting for its holder; `waiting` is called before each wait, `open` as in
    /// [`Self::try_acquire`].
    pub fn acquire(
        path: &Path,
        mut open: impl FnMut() -> io::Result<File>,
        mut waiting: impl FnMut(),
    ) -> Result<Self, LockError> {
        loop {
            let file = match Self::try_acquire(path, &mut open) {
                Err(LockError::Held(file)) => file,
                other => return other,
            };
            waiting();
            file.lock().map_err(LockError::Lock)?;
            if is_file_at(&file, path).map_err(LockError::Lock)? {
                return Ok(Self { file });
            }
        }
    }

    /// The locked file, for the holder's record.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Locks the file at `path` like [`FileLock::try_acquire`], but until the returned file is closed here and in every
/// process that inherits its descriptor.
pub fn try_lock(path: &Path, mut open: impl FnMut() -> io::Result<File>) -> Result<File, LockError> {
    loop {
        let file = open().map_err(LockError::Open)?;
        match file.try_lock() {
            Ok(()) if is_file_at(&file, path).map_err(LockError::Lock)? => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(file)),
            Err(TryLockError::Error(error)) => return Err(LockError::Lock(error)),
        }
    }
}

/// Opens the file of a lock for reading and writing, and creates it if necessary; a symbolic link is refused. Only
/// those who may write to its folder can open it, since whoever can open a file can lock it.
pub fn open_private(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = File::options();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(OWNER).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    let folder = fs::metadata(path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")))?;
    // In a sticky folder everybody writes, each to his own files.
    let is_groups = folder.mode() & 0o1020 == 0o020;
    let mode = if is_groups { OWNER | GROUP } else { OWNER };
    let user = rustix::process::geteuid();
    // A file of others is left as it is, one of another version or of a process that was killed right here is corrected.
    if found.uid() == user.as_raw() {
        if user.is_root() && folder.uid() != 0 && folder.mode() & 0o1000 == 0 {
            fchown(&file, Some(folder.uid()), Some(folder.gid()))?;
        }
        if found.mode() & 0o777 != mode {
            // Some file systems know no permissions, and locks are useful there all the same.
            let _ = file.set_permissions(Permissions::from_mode(mode));
        }
    }
    Ok(file)
}

const OWNER: u32 = 0o600;
const GROUP: u32 = 0o060;

/// Takes a shared lock for a moment: a holder must not try for the lock of a file that others can find.
pub fn is_locked(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

pub fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(is_same_file(&metadata, &file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::PathBuf;

    use super::*;

    fn lock_path() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        (folder, path)
    }

    fn create(path: &Path) -> io::Result<File> {
        File::options().write(true).create(true).truncate(false).open(path)
    }

    #[test]
    fn a_file_has_one_holder_until_its_lock_is_dropped() {
        let (_folder, path) = lock_path();
        let try_acquire = || FileLock::try_acquire(&path, || create(&path));
        let first = try_acquire().unwrap();
        assert!(matches!(try_acquire(), Err(LockError::Held(_))));
        assert!(is_locked(&File::open(&path).unwrap()));
        drop(first);
        assert!(!is_locked(&File::open(&path).unwrap()));
        assert!(try_acquire().is_ok());
    }

    // A child that another thread had just forked kept a lock that had been dropped.
    #[test]
    fn an_inherited_descriptor_holds_only_a_lock_that_is_meant_to_be_inherited() {
        let (_folder, path) = lock_path();
        let try_acquire = || FileLock::try_acquire(&path, || create(&path));
        let lock = try_acquire().unwrap();
        let inherited = lock.file().try_clone().unwrap();
        drop(lock);
        let shared = FileLock::try_share(create(&path).unwrap()).unwrap();
        let also_inherited = shared.file().try_clone().unwrap();
        drop(shared);
        assert!(try_acquire().is_ok());
        drop((inherited, also_inherited));

        let file = try_lock(&path, || create(&path)).unwrap();
        let inherited = file.try_clone().unwrap();
        drop(file);
        assert!(matches!(try_acquire(), Err(LockError::Held(_))));
        drop(inherited);
        assert!(try_acquire().is_ok());
    }

    #[test]
    fn a_file_that_was_removed_before_it_was_locked_is_opened_again() {
        let (_folder, path) = lock_path();
        let opened = Cell::new(0);
        let open = || {
            let file = create(&path)?;
            opened.set(opened.get() + 1);
            if opened.get() == 1 {
                fs::remove_file(&path)?;
            }
            Ok(file)
        };
        let lock = FileLock::try_acquire(&path, open).unwrap();
        assert_eq!(opened.get(), 2);
        assert!(is_same_file(&lock.file().metadata().unwrap(), &fs::metadata(&path).unwrap()));
    }

    #[test]
    fn a_waiting_process_locks_the_file_after_its_holder() {
        let (_folder, path) = lock_path();
        let holder = Cell::new(Some(FileLock::try_acquire(&path, || create(&path)).unwrap()));
        let waited = Cell::new(0);
        let waiting = || {
            waited.set(waited.get() + 1);
            drop(holder.take());
        };
        let lock = FileLock::acquire(&path, || create(&path), waiting).unwrap();
        assert_eq!(waited.get(), 1);
        assert!(is_locked(&File::open(&path).unwrap()));
        drop(lock);
    }

    #[test]
    fn only_those_who_may_write_to_the_folder_of_a_private_lock_may_lock_it() {
        let (folder, path) = lock_path();
        let mode = || fs::metadata(&path).unwrap().mode() & 0o7777;
        let set_mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for (folder_mode, expected) in
            [(0o755, 0o600), (0o775, 0o660), (0o2770, 0o660), (0o1777, 0o600), (0o700, 0o600)]
        {
            set_mode(folder.path(), folder_mode);
            let lock = FileLock::try_acquire(&path, || open_private(&path)).unwrap();
            assert_eq!(mode(), expected, "in a folder with mode {folder_mode:o}");
            drop(lock);
            // As an earlier version has left it.
            set_mode(&path, 0o644);
            drop(open_private(&path).unwrap());
            assert_eq!(mode(), expected, "in a folder with mode {folder_mode:o}");
            fs::remove_file(&path).unwrap();
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(65534), Some(65533)).unwrap();
            let metadata = open_private(&path).unwrap().metadata().unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (65534, 65533), "root does not lock out the owner");
            fs::remove_file(&path).unwrap();
        }
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(open_private(&path).is_err());
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_of_opening() {
        let missing = Path::new("/nosuch/lock");
        let error = FileLock::try_acquire(missing, || File::open(missing)).unwrap_err();
        assert!(matches!(&error, LockError::Open(error) if error.kind() == io::ErrorKind::NotFound));
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotFound);
    }
}
