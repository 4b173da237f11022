//! Files: the kernel's settings, and whole ones.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, XattrFlags, access, fsetxattr, getxattr, listxattr};
use rustix::io::Errno;

use crate::SysRoot;
use crate::sys_root::MAX_FILE_SIZE;

use super::Refusal;

/// Where this program keeps what it notes of a machine.
const STATE_FOLDER: &str = "/var/lib/weighbridge";

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
    let beside = temporary_path(full);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
    match fs::metadata(full) {
        Ok(old) => {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
            file.set_permissions(old.permissions())?;
            copy_attributes(full, &file)?;
        }
        // Exactly these, whatever the umask.
        Err(_) => file.set_permissions(Permissions::from_mode(mode))?,
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, full)
}

/// Gives a file the extended attributes of another: its access control list and its label among them.
fn copy_attributes(from: &Path, to: &fs::File) -> io::Result<()> {
    let mut names = vec![0; MAX_ATTRIBUTE_SIZE];
    let length = match listxattr(from, &mut names[..]) {
        Err(Errno::NOTSUP) => return Ok(()),
        length => length?,
    };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; MAX_ATTRIBUTE_SIZE];
        let length = getxattr(from, name, &mut value[..])?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// The most bytes that the names of a file's attributes, or the value of one, can have (XATTR_LIST_MAX and XATTR_SIZE_MAX
/// of the kernel's limits.h).
const MAX_ATTRIBUTE_SIZE: usize = 65536;

/// When a file was modified, in nanoseconds since 1970.
pub(super) fn modified(full: &Path) -> io::Result<i64> {
    let metadata = fs::symlink_metadata(full)?;
    Ok(metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()))
}

/// Sets when a file was modified, in nanoseconds since 1970.
pub(super) fn set_modified(full: &Path, modified: i64) -> io::Result<()> {
    let time = std::time::Duration::from_nanos(modified.unsigned_abs());
    let epoch = std::time::SystemTime::UNIX_EPOCH;
    let time = if modified < 0 { epoch - time } else { epoch + time };
    fs::File::open(full)?.set_modified(time)
}

/// Why a file cannot be replaced and put back as it was; none where it can, or is not there.
pub(super) fn replacement_obstacle(root: &SysRoot, path: &str) -> Option<String> {
    if Path::new(path).starts_with(STATE_FOLDER) {
        return Some(format!("files below {STATE_FOLDER} belong to the undo log"));
    }
    // What cannot be looked at is refused when it is read.
    let full = root.path(path).ok()?;
    let metadata = fs::symlink_metadata(&full).ok()?;
    if metadata.is_symlink() {
        let target =
            fs::read_link(&full).map_or_else(|_| "another file".to_owned(), |to| format!("`{}`", to.display()));
        return Some(format!("symbolic link to {target}: name the file itself"));
    }
    if metadata.is_dir() {
        return Some("it is a folder".to_owned());
    }
    if !metadata.is_file() {
        return Some("not a regular file".to_owned());
    }
    if metadata.nlink() > 1 {
        return Some(format!("it has {} hard links, which replacing it would separate", metadata.nlink()));
    }
    (metadata.len() > MAX_FILE_SIZE)
        .then(|| format!("it has {} bytes, and at most {MAX_FILE_SIZE} can be saved", metadata.len()))
}

/// Why nothing can be put into the folder of a file; none where it can.
pub(super) fn folder_obstacle(root: &SysRoot, path: &str) -> Option<String> {
    let folder = Path::new(path).parent()?;
    // One that leads elsewhere is refused when it is written to.
    let full = root.path(folder).ok()?;
    match access(&full, Access::WRITE_OK) {
        Ok(()) => None,
        Err(Errno::NOENT | Errno::NOTDIR) => Some(format!("there is no folder `{}`", folder.display())),
        Err(_) => Some(format!("the folder `{}` cannot be written to", folder.display())),
    }
}

/// Why a file was not put there.
pub(super) fn describe_error(path: &str, full: &Path, error: &io::Error) -> String {
    let folder = Path::new(path).parent().filter(|_| full.parent().is_some_and(|folder| !folder.exists()));
    match folder {
        Some(folder) => format!("there is no folder `{}`", folder.display()),
        None => error.to_string(),
    }
}

/// Where a file is written before it takes the other's place.
pub(super) fn temporary_path(full: &Path) -> PathBuf {
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
        Err(Errno::ACCESS | Errno::PERM) => {
            root_refusal(root).or_else(|| other(format!("`{path}` may not be written")))
        }
        Err(Errno::ROFS) => other(format!("`{path}` is on a file system that is mounted read-only")),
        Err(error) => other(format!("`{path}`: {}", io::Error::from(error))),
    }
}

/// Why whoever is not root cannot do something.
pub(super) fn root_refusal(root: &SysRoot) -> Option<Refusal> {
    let refused = root.is_real() && !rustix::process::geteuid().is_root();
    refused.then_some(Refusal::NotRoot)
}
