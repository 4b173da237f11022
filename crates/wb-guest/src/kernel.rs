//! Debian's cloud kernel, from its archive.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::command::{GuestError, output};

/// The package that names the newest.
const NEWEST: &str = "linux-image-cloud-amd64";

/// A kernel that was fetched.
pub(crate) struct Kernel {
    /// As it names itself: `6.1.0-31-cloud-amd64`.
    pub(crate) version: String,
    /// Its package, unpacked.
    pub(crate) root: PathBuf,
}

impl Kernel {
    pub(crate) fn image(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.version))
    }
}

/// The newest kernel of the archive, from `cache` when it is there.
pub(crate) fn fetch(cache: &Path) -> Result<Kernel, GuestError> {
    let version = newest()?;
    let kernel = Kernel { root: cache.join(&version), version };
    if kernel.root.is_dir() {
        return Ok(kernel);
    }
    fs::create_dir_all(cache).map_err(|why| GuestError::file("make", cache, why))?;
    // Unpacked beside and then named, so that what bears a version's name is whole.
    let beside = tempfile::tempdir_in(cache).map_err(|why| GuestError::file("make a folder in", cache, why))?;
    let package = format!("linux-image-{}", kernel.version);
    output("apt-get", |command| _ = command.current_dir(beside.path()).args(["download", "--quiet", &package]))?;
    let archive = only_file(beside.path())?;
    let root = beside.path().join("root");
    output("dpkg-deb", |command| _ = command.arg("--extract").arg(&archive).arg(&root))?;
    output("depmod", |command| _ = command.arg("--basedir").arg(&root).arg(&kernel.version))?;
    match fs::rename(&root, &kernel.root) {
        // Another test fetched it meanwhile.
        Err(_) if kernel.root.is_dir() => Ok(kernel),
        moved => moved.map(|()| kernel).map_err(|why| GuestError::file("keep", &root, why)),
    }
}

/// What the newest is called.
fn newest() -> Result<String, GuestError> {
    let depends = output("apt-cache", |command| _ = command.args(["depends", "--no-recommends", NEWEST]))?;
    let version = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    version.map(str::to_owned).ok_or_else(|| GuestError::Failed {
        program: "apt-cache depends".to_owned(),
        why: format!("{NEWEST} depends on no kernel; `apt-get update` reads the archive's lists anew"),
    })
}

fn only_file(folder: &Path) -> Result<PathBuf, GuestError> {
    let read = |why| GuestError::file("read", folder, why);
    match fs::read_dir(folder).map_err(read)?.next() {
        Some(entry) => Ok(entry.map_err(read)?.path()),
        None => Err(read(std::io::ErrorKind::NotFound.into())),
    }
}
