//! Files that contain a secret: only their owner may read them.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Longer than any token or key; a longer file was named by mistake
const MAX_SECRET_LEN: u64 = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "`{path}` is accessible to other users (mode {mode:04o}): run `chmod 600 {path}`, and replace the secret if \
         others may have read it",
        path = path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error("`{}` is longer than {MAX_SECRET_LEN} bytes: expected a file with a token or key", path.display())]
    TooLong { path: PathBuf },
    #[error("cannot write `{}`: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, SecretFileError> {
    let unreadable = |source| SecretFileError::Unreadable { path: path.into(), source };
    let file = File::open(path).map_err(unreadable)?;
    // From the open descriptor: the path may name another file a moment later.
    let mode = file.metadata().map_err(unreadable)?.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretFileError::Exposed { path: path.into(), mode });
    }
    let mut secret = Vec::new();
    file.take(MAX_SECRET_LEN + 1).read_to_end(&mut secret).map_err(unreadable)?;
    if secret.len() as u64 > MAX_SECRET_LEN {
        return Err(SecretFileError::TooLong { path: path.into() });
    }
    Ok(secret)
}

/// Creates a secret file atomically; `false` when another process created it first
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
    // The secret remains under its final name; a draft that was not published must not remain.
    let _ = fs::remove_file(&draft);
    written.map_err(unwritable)
}

/// A unique name, also among threads and after a crash that left a draft behind
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.draft", RandomState::new().build_hasher().finish()));
    name.into()
}

/// Links instead of renaming, so that a key created meanwhile is never replaced
fn link_into_place(draft: &Path, path: &Path, folder: &Path) -> io::Result<bool> {
    match fs::hard_link(draft, path) {
        Ok(()) => File::open(folder)?.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
