//! Hashes of programs in the user's cache, so that one is computed once for each binary and not for each run.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use wb_model::Sha256;
use wb_sys::contained_file;

/// Longer than the time within which a file can change twice with the same time stamp.
const MIN_AGE: Duration = Duration::from_secs(2);

/// The hash of a file, and what identifies its content: whoever changes it changes the time of its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct HashedFile {
    device: u64,
    inode: u64,
    size: u64,
    /// Time of the last change of its status: seconds and nanoseconds.
    changed: (i64, i64),
    sha256: Sha256,
}

impl HashedFile {
    fn new(file: &fs::Metadata, sha256: Sha256) -> Self {
        let changed = (file.ctime(), file.ctime_nsec());
        Self { device: file.dev(), inode: file.ino(), size: file.size(), changed, sha256 }
    }
}

/// The hash of an executable: that in the cache (a folder and the name of a file) if it is of this file, otherwise the
/// computed one, which is cached if that is possible.
pub(crate) fn hash(executable: File, cache: Option<(&Path, &str)>) -> io::Result<Sha256> {
    let metadata = executable.metadata()?;
    if let Some(hash) = cache.and_then(|(folder, name)| read(folder, name, &metadata)) {
        return Ok(hash);
    }
    let hash = Sha256::of_reader(executable)?;
    // A clock before 1970 caches nothing.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
    if let Some((folder, name)) = cache
        && now - metadata.ctime() >= MIN_AGE.as_secs() as i64
    {
        // Without the cache, the next run computes it again.
        let _ = write(folder, name, &HashedFile::new(&metadata, hash.clone()));
    }
    Ok(hash)
}

/// The cached hash of this file; only the user can have written it. Without one, whatever the reason, it is computed.
fn read(folder: &Path, name: &str, executable: &fs::Metadata) -> Option<Sha256> {
    const MAX_LENGTH: u64 = 1 << 12;
    let file = contained_file::open(folder, Path::new(name)).ok()?;
    let cached = file.metadata().ok()?;
    let is_own = cached.uid() == rustix::process::geteuid().as_raw() && cached.mode() & 0o022 == 0;
    if !is_own {
        return None;
    }
    let text = contained_file::read_limited(file, MAX_LENGTH).ok()?;
    let cached: HashedFile = serde_json::from_slice(&text).ok()?;
    (cached == HashedFile::new(executable, cached.sha256.clone())).then_some(cached.sha256)
}

fn write(folder: &Path, name: &str, hashed: &HashedFile) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    fs::write(&temporary, serde_json::to_vec(hashed)?)?;
    fs::rename(&temporary, folder.join(name)).inspect_err(|_| {
        // What is left is overwritten by the next process of this number.
        let _ = fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "hash.json";

    #[test]
    fn a_hash_is_of_the_file_as_it_is() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, cache) = (folder.path().join("program"), cache.path().join("weighbridge"));
        let hash = || hash(File::open(&path).unwrap(), Some((&cache, FILE))).unwrap();
        fs::write(&path, "one").unwrap();
        assert_eq!(hash(), Sha256::digest(b"one"));
        assert!(!cache.exists(), "it changed a moment ago");
        // A cached hash is believed, whatever it is, as long as the file is the same.
        let other = Sha256::digest(b"other");
        write(&cache, FILE, &HashedFile::new(&fs::metadata(&path).unwrap(), other.clone())).unwrap();
        assert_eq!(hash(), other);
        // Same length and name.
        fs::write(&path, "two").unwrap();
        assert_eq!(hash(), Sha256::digest(b"two"));
    }

    #[test]
    fn what_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = folder.path().join("program");
        fs::write(&path, "one").unwrap();
        let other = HashedFile::new(&fs::metadata(&path).unwrap(), Sha256::digest(b"other"));
        write(cache.path(), FILE, &other).unwrap();
        let hash = || hash(File::open(&path).unwrap(), Some((cache.path(), FILE))).unwrap();
        assert_eq!(hash(), Sha256::digest(b"other"));
        fs::set_permissions(cache.path().join(FILE), fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(hash(), Sha256::digest(b"one"));
        for garbage in ["", "{", "[1]", "{\"device\":1}"] {
            fs::write(cache.path().join(FILE), garbage).unwrap();
            assert_eq!(hash(), Sha256::digest(b"one"), "{garbage}");
        }
    }
}
