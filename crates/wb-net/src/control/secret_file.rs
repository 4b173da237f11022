//! Files that hold a secret: only their owner may read them.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Longer than any token or key; a file that is longer was named by mistake
const LONGEST: u64 = 64 * 1024;

/// Why a file with a secret was not used
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// It cannot be read
    #[error("`{}` cannot be read: {source}", path.display())]
    Unreadable {
        /// The file
        path: PathBuf,
        /// Why
        source: io::Error,
    },
    /// Others can read it
    #[error(
        "`{path}` can be used by others than its owner (mode {mode:04o}), so it may be no secret: `chmod 600 {path}`, \
         or make a new one if others could have read it",
        path = path.display()
    )]
    Exposed {
        /// The file
        path: PathBuf,
        /// Its permissions
        mode: u32,
    },
    /// It is longer than a secret
    #[error("`{}` is longer than {LONGEST} bytes, so it holds no token or key: name another file", path.display())]
    TooLong {
        /// The file
        path: PathBuf,
    },
    /// It cannot be written
    #[error("`{}` cannot be written: {source}", path.display())]
    Unwritable {
        /// The file
        path: PathBuf,
        /// Why
        source: io::Error,
    },
}

/// What a secret file holds
pub(super) fn read(path: &Path) -> Result<Vec<u8>, SecretFileError> {
    let unreadable = |source| SecretFileError::Unreadable { path: path.into(), source };
    let file = File::open(path).map_err(unreadable)?;
    // Asked of the open file: the name may mean another one a moment later.
    let mode = file.metadata().map_err(unreadable)?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretFileError::Exposed { path: path.into(), mode });
    }
    let mut secret = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut secret).map_err(unreadable)?;
    if secret.len() as u64 > LONGEST {
        return Err(SecretFileError::TooLong { path: path.into() });
    }
    Ok(secret)
}

/// Make a secret file in one step; `false` when somebody else made it first
pub(super) fn create(path: &Path, secret: &[u8]) -> Result<bool, SecretFileError> {
    let unwritable = |source| SecretFileError::Unwritable { path: path.into(), source };
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable)?;
    let draft = temporary_path(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(unwritable)?;
    let written =
        file.write_all(secret).and_then(|()| file.sync_all()).and_then(|()| link_into_place(&draft, path, folder));
    // Under its final name it stays; a draft that was never published must not.
    let _ = fs::remove_file(&draft);
    written.map_err(unwritable)
}

/// A name of our own, also among threads and beside what a crash left behind
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.draft", RandomState::new().build_hasher().finish()));
    name.into()
}

/// A link, not a rename: it never replaces a key that appeared meanwhile
fn link_into_place(draft: &Path, path: &Path, folder: &Path) -> io::Result<bool> {
    match fs::hard_link(draft, path) {
        Ok(()) => File::open(folder)?.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
