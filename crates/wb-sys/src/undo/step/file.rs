//! Files: the kernel's settings, and whole ones.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::SysRoot;

use super::Refusal;

/// Writes a value in one go: the kernel takes each as a value of its own, whole or not at all. In a made root that is
/// putting a file in another's place.
pub(super) fn write_setting(root: &SysRoot, full: &Path, value: &[u8]) -> io::Result<()> {
    if !root.is_real() {
        fs::metadata(full)?;
        return replace(full, 0o644, Some(value));
    }
    OpenOptions::new().write(true).open(full)?.write_all(value)
}

/// Puts a file in the place of another at once, or takes it away.
pub(super) fn replace(full: &Path, mode: u32, bytes: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = bytes else { return fs::remove_file(full) };
    let beside = beside(full);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    match fs::metadata(full) {
        Ok(old) => {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
            file.set_permissions(old.permissions())?;
        }
        // Exactly these, whatever the umask.
        Err(_) => file.set_permissions(Permissions::from_mode(mode))?,
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, full)
}

/// Why a file was not put there.
pub(super) fn why_not(path: &str, full: &Path, error: &io::Error) -> String {
    let folder = Path::new(path).parent().filter(|_| full.parent().is_some_and(|folder| !folder.exists()));
    match folder {
        Some(folder) => format!("there is no folder `{}`", folder.display()),
        None => error.to_string(),
    }
}

/// Where a file is written before it takes the other's place.
pub(super) fn beside(full: &Path) -> PathBuf {
    let mut name = full.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".weighbridge-new");
    full.with_file_name(name)
}

/// Why a file cannot be written to.
pub(super) fn refusal(root: &SysRoot, path: &str) -> Option<Refusal> {
    let other = |why: String| Some(Refusal::Other(why));
    let full = match root.path(path) {
        Ok(full) => full,
        Err(error) => return other(error.to_string()),
    };
    let metadata = match fs::metadata(&full) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return other(format!("`{path}` is not there")),
        Err(error) => return other(format!("`{path}`: {error}")),
        Ok(metadata) => metadata,
    };
    // Root may open anything; what the kernel does not take has nobody's permission to write.
    if metadata.permissions().mode() & 0o222 == 0 {
        return other(format!("the kernel shows `{path}` and takes no value for it"));
    }
    match access(&full, Access::WRITE_OK) {
        Ok(()) => None,
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
            only_root(root).or_else(|| other(format!("`{path}` may not be written")))
        }
        Err(rustix::io::Errno::ROFS) => other(format!("`{path}` is on a file system that is mounted read-only")),
        Err(error) => other(format!("`{path}`: {}", io::Error::from(error))),
    }
}

/// Why whoever is not root cannot do something.
pub(super) fn only_root(root: &SysRoot) -> Option<Refusal> {
    let refused = root.is_real() && !rustix::process::geteuid().is_root();
    refused.then_some(Refusal::NotRoot)
}
