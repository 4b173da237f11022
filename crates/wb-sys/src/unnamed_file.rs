//! Files without a name (O_TMPFILE), which get one when they are complete: if their process dies before, the kernel
//! frees them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, getxattr, linkat};
use rustix::io::Errno;

/// Creates a file without a name in the file system of `folder`, with the permissions `mode & !umask`. `None` where
/// such files are not supported, and without the folder: the caller reports that when it creates a named one.
pub(crate) fn create(folder: &Path, mode: u32) -> io::Result<Option<File>> {
    let opened = OpenOptions::new().read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder);
    match opened {
        Ok(file) => Ok((has_umask(folder) && descriptor_path(&file).exists()).then_some(file)),
        Err(error) => match Errno::from_io_error(&error) {
            // EISDIR and ENOENT are of kernels that do not know the flag, the others of file systems. ENOENT is also that of a
            // missing folder.
            Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Whether the umask applies to unnamed files: before Linux 6.0 only on file systems with access control lists. Those
/// answer with something else than EOPNOTSUPP: ENODATA without a default list, ERANGE with one.
fn has_umask(folder: &Path) -> bool {
    getxattr(folder, "system.posix_acl_default", &mut [0_u8; 1][..]) != Err(Errno::OPNOTSUPP)
}

/// Links the file at a path of the same file system. Fails with `AlreadyExists` if something is there.
pub(crate) fn link(file: &File, path: &Path) -> io::Result<()> {
    // By its descriptor alone (AT_EMPTY_PATH), only privileged processes may link it.
    Ok(linkat(CWD, descriptor_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_gets_a_name_that_does_not_exist() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut file) = create(folder.path(), 0o600).unwrap() else {
            wb_test_skip::skip!("the file system of {} has no unnamed files", folder.path().display());
            return;
        };
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let path = folder.path().join("a");
        link(&file, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(link(&file, &path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn unsupported_is_not_an_error_but_a_refusal_is() {
        // /proc has no files that can be created.
        assert!(create(Path::new("/proc/self"), 0o600).unwrap_or(None).is_none());
        let folder = tempfile::tempdir().unwrap();
        assert!(create(&folder.path().join("none"), 0o600).unwrap().is_none());
        fs::write(folder.path().join("file"), "").unwrap();
        let error = create(&folder.path().join("file"), 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
