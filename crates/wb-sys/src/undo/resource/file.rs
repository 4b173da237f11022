//! Kernel settings and regular files.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, XattrFlags, access, fsetxattr, getxattr};
use rustix::io::Errno;

use crate::extended_attributes::{MAX_ATTRIBUTE_SIZE, attribute_names};
use crate::sys_root::MAX_FILE_SIZE;
use crate::{AtomicFile, SysRoot};

use super::Refusal;

/// The folder of this program's own state.
const STATE_FOLDER: &str = "/var/lib/weighbridge";

/// Writes a value in a single call, because the kernel treats each write as a complete value. In a fake root the file
/// is replaced.
pub(super) fn write_setting(root: &SysRoot, full: &Path, value: &[u8]) -> io::Result<()> {
    if !root.is_real() {
        fs::metadata(full)?;
        return replace(full, 0o644, Some(value));
    }
    OpenOptions::new().write(true).open(full)?.write_all(value)
}

/// Replaces a file atomically, or removes it.
pub(super) fn replace(full: &Path, mode: u32, bytes: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = bytes else { return fs::remove_file(full) };
    let new = AtomicFile::create(full, temporary_path(full), mode)?;
    match fs::metadata(full) {
        Ok(old) => {
            fchown(new.file(), Some(old.uid()), Some(old.gid()))?;
            new.file().set_permissions(old.permissions())?;
            copy_attributes(full, new.file())?;
        }
        Err(_) => new.set_mode(mode)?,
    }
    new.persist(bytes)
}

/// Copies the extended attributes of a file, including its access control list and security label.
fn copy_attributes(from: &Path, to: &fs::File) -> io::Result<()> {
    for name in attribute_names(from)? {
        let mut value = vec![0; MAX_ATTRIBUTE_SIZE];
        let length = getxattr(from, &name[..], &mut value[..])?;
        fsetxattr(to, &name[..], &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// The modification time of a file, in nanoseconds since 1970.
pub(super) fn modified(full: &Path) -> io::Result<i64> {
    let metadata = fs::symlink_metadata(full)?;
    Ok(metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()))
}

/// Sets the modification time of a file, in nanoseconds since 1970.
pub(super) fn set_modified(full: &Path, modified: i64) -> io::Result<()> {
    let time = std::time::Duration::from_nanos(modified.unsigned_abs());
    let epoch = std::time::SystemTime::UNIX_EPOCH;
    let time = if modified < 0 { epoch - time } else { epoch + time };
    fs::File::open(full)?.set_modified(time)
}

/// Why a file cannot be replaced and restored exactly; None where it can, or does not exist.
pub(super) fn replacement_obstacle(root: &SysRoot, path: &str) -> Option<String> {
    if Path::new(path).starts_with(STATE_FOLDER) {
        return Some(format!("files below {STATE_FOLDER} belong to the undo log"));
    }
    // A file without metadata is refused when it is read.
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
        .then(|| format!("it has {} bytes: at most {MAX_FILE_SIZE} bytes can be saved", metadata.len()))
}

/// Why no file can be created in the folder of a file; None where it can.
pub(super) fn folder_obstacle(root: &SysRoot, path: &str) -> Option<String> {
    let folder = Path::new(path).parent()?;
    // A folder outside of the root is refused when it is written to.
    let full = root.path(folder).ok()?;
    match access(&full, Access::WRITE_OK) {
        Ok(()) => None,
        Err(Errno::NOENT | Errno::NOTDIR) => Some(format!("no such folder: `{}`", folder.display())),
        Err(_) => Some(format!("the folder `{}` is not writable", folder.display())),
    }
}

/// Describes why a file could not be written.
pub(super) fn describe_error(path: &str, full: &Path, error: &io::Error) -> String {
    let folder = Path::new(path).parent().filter(|_| full.parent().is_some_and(|folder| !folder.exists()));
    match folder {
        Some(folder) => format!("no such folder: `{}`", folder.display()),
        None => error.to_string(),
    }
}

/// The path at which a new file is written before it replaces the other.
pub(super) fn temporary_path(full: &Path) -> PathBuf {
    let mut name = full.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".weighbridge-new");
    full.with_file_name(name)
}

/// Why a file cannot be written, from reading alone; None where it can.
pub(super) fn refusal(root: &SysRoot, path: &str) -> Option<Refusal> {
    let other = |reason: String| Some(Refusal::Other(reason));
    let full = match root.path(path) {
        Ok(full) => full,
        Err(error) => return other(error.to_string()),
    };
    let metadata = match fs::metadata(&full) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return other(format!("no such file: `{path}`")),
        Err(error) => return other(format!("`{path}`: {error}")),
        Ok(metadata) => metadata,
    };
    // Root may open any file; a file that the kernel does not accept writes to has no write permission for anybody.
    if metadata.permissions().mode() & 0o222 == 0 {
        return other(format!("the kernel provides `{path}` read-only"));
    }
    match access(&full, Access::WRITE_OK) {
        Ok(()) => None,
        Err(Errno::ACCESS | Errno::PERM) => {
            root_refusal(root).or_else(|| other(format!("permission denied: `{path}`")))
        }
        Err(Errno::ROFS) => other(format!("`{path}` is on a read-only file system")),
        Err(error) => other(format!("`{path}`: {}", io::Error::from(error))),
    }
}

/// A refusal if this process lacks root's privileges.
pub(super) fn root_refusal(root: &SysRoot) -> Option<Refusal> {
    let refused = root.is_real() && !rustix::process::geteuid().is_root();
    refused.then_some(Refusal::NotRoot)
}
