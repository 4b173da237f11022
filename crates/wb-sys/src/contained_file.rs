//! Reading of files below a folder that somebody else may have written, such as a run that was sent by mail: nothing
//! outside of the folder is opened, and nothing but regular files.
//!
//! A device, a FIFO or a link in such a folder is not opened at all, since opening may already block or have an effect.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Checks that a path is relative and has no `..`, so that it is below any folder unless links lead out of it.
pub fn require_relative(path: &Path) -> io::Result<()> {
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside && !path.as_os_str().is_empty() {
        Ok(())
    } else {
        Err(invalid("expected a relative path without `..`"))
    }
}

/// Opens a regular file below `root`, whose path is relative to it. Links are followed as long as they stay below
/// `root`; on kernels before 5.6, which cannot guarantee that, none is followed.
pub fn open(root: &Path, path: &Path) -> io::Result<File> {
    open_by(root, path, resolve)
}

/// Reads a file as [`open`] opens it; fails if it is larger than `limit` bytes.
pub fn read(root: &Path, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_limited(open(root, path)?, limit)
}

/// The metadata of a file that [`open`] would open.
pub fn metadata(root: &Path, path: &Path) -> io::Result<Metadata> {
    require_relative(path)?;
    let root = open_root(root)?;
    require_regular(&File::from(resolve(&root, path, OFlags::PATH)?))
}

/// Fails if the file is larger than `limit` bytes.
pub fn read_limited(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let too_large = || io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes"));
    // A run folder may come from somebody else.
    if length > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // It may grow meanwhile.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

type Resolve = fn(&OwnedFd, &Path, OFlags) -> io::Result<OwnedFd>;

fn open_by(root: &Path, path: &Path, resolve: Resolve) -> io::Result<File> {
    require_relative(path)?;
    let root = open_root(root)?;
    require_regular(&File::from(resolve(&root, path, OFlags::PATH)?))?;
    let file = File::from(resolve(&root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?);
    // It may have been replaced since.
    require_regular(&file)?;
    Ok(file)
}

/// The folder itself is named by the user, so it may be a link.
fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    Ok(rustix::fs::openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn require_regular(file: &File) -> io::Result<Metadata> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok(metadata)
    } else if metadata.is_dir() {
        Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder"))
    } else {
        Err(invalid("it is not a regular file"))
    }
}

fn resolve(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    loop {
        return match rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), beneath) {
            Ok(file) => Ok(file),
            // A concurrent rename anywhere prevents the kernel from being sure.
            Err(Errno::AGAIN) => continue,
            // Kernels before 5.6, and filters of system calls that do not know it.
            Err(Errno::NOSYS | Errno::PERM) => walk(root, path, flags),
            Err(Errno::XDEV) => Err(invalid("a link leads out of the folder")),
            Err(error) => Err(error.into()),
        };
    }
}

/// Opens a path one component at a time and follows no link.
fn walk(root: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let open = |folder: &OwnedFd, name: &Path, flags: OFlags| {
        let opened = rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        match opened {
            Err(Errno::LOOP) => Err(invalid("a part of its path is a link")),
            opened => opened.map_err(io::Error::from),
        }
    };
    let mut folder = root.as_fd().try_clone_to_owned()?;
    let parents = path.parent().unwrap_or(Path::new(""));
    for part in parents.components() {
        let next = open(&folder, Path::new(part.as_os_str()), OFlags::PATH)?;
        // With `O_PATH` the link itself is opened.
        if File::from(next.try_clone()?).metadata()?.is_symlink() {
            return Err(invalid("a part of its path is a link"));
        }
        folder = next;
    }
    let name = path.file_name().map_or_else(PathBuf::new, PathBuf::from);
    open(&folder, &name, flags)
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with one of each kind of file, whose regular file is `a/file`.
    fn planted() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("run/a")).unwrap();
        fs::write(at("outside"), "secret").unwrap();
        fs::write(at("run/a/file"), "text").unwrap();
        symlink("file", at("run/a/link-inside")).unwrap();
        symlink("a", at("run/folder-inside")).unwrap();
        symlink("../../outside", at("run/a/link-outside")).unwrap();
        symlink("/dev/zero", at("run/a/device")).unwrap();
        symlink("/proc/self/root/etc/passwd", at("run/a/magic")).unwrap();
        symlink("/", at("run/slash")).unwrap();
        symlink("loop", at("run/loop")).unwrap();
        rustix::fs::mknodat(CWD, at("run/a/fifo"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        folder
    }

    const REFUSED: [&str; 14] = [
        "",
        "/dev/zero",
        "/etc/passwd",
        "..",
        "../outside",
        "a/../../outside",
        "a/../a/file",
        "a",
        "a/fifo",
        "a/link-outside",
        "a/device",
        "a/magic",
        "slash/etc/passwd",
        "loop",
    ];

    #[test]
    fn only_regular_files_below_the_folder_are_opened() {
        let folder = planted();
        let run = folder.path().join("run");
        for resolve in [resolve as Resolve, walk] {
            let open = |path: &str| open_by(&run, Path::new(path), resolve);
            assert_eq!(io::read_to_string(open("a/file").unwrap()).unwrap(), "text");
            for path in REFUSED {
                open(path).expect_err(path);
            }
            assert_eq!(open("a/none").unwrap_err().kind(), ErrorKind::NotFound);
        }
        for path in ["a/link-inside", "folder-inside/file"] {
            assert!(open(&run, Path::new(path)).is_ok(), "{path}");
            open_by(&run, Path::new(path), walk).expect_err("no link is followed without the kernel's guarantee");
        }
        for path in REFUSED {
            metadata(&run, Path::new(path)).expect_err(path);
        }
    }

    #[test]
    fn no_more_than_the_limit_is_read() {
        let folder = planted();
        let run = folder.path().join("run");
        assert_eq!(read(&run, Path::new("a/file"), 4).unwrap(), b"text");
        assert_eq!(read(&run, Path::new("a/file"), 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        File::create(run.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&run, Path::new("sparse"), 1 << 20).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
