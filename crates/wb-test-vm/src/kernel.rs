use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::command::{GuestError, output};

/// The metapackage that depends on the newest kernel.
const METAPACKAGE: &str = "linux-image-cloud-amd64";

pub(crate) struct Kernel {
    /// Its release: `6.1.0-31-cloud-amd64`.
    pub(crate) version: String,
    /// The folder of its unpacked package.
    pub(crate) root: PathBuf,
}

impl Kernel {
    pub(crate) fn image(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.version))
    }
}

/// Downloads Debian's newest cloud kernel from its archive, unless it is in `cache`.
pub(crate) fn fetch(cache: &Path) -> Result<Kernel, GuestError> {
    let version = newest_version()?;
    let kernel = Kernel { root: cache.join(&version), version };
    if kernel.root.is_dir() {
        return Ok(kernel);
    }
    fs::create_dir_all(cache).map_err(|error| GuestError::file("create", cache, error))?;
    // Unpack in a temporary folder and then rename, so that a folder with a version's name is always complete.
    let temporary =
        tempfile::tempdir_in(cache).map_err(|error| GuestError::file("create a folder in", cache, error))?;
    let package = format!("linux-image-{}", kernel.version);
    output("apt-get", |command| _ = command.current_dir(temporary.path()).args(["download", "--quiet", &package]))?;
    let archive = only_file(temporary.path())?;
    let root = temporary.path().join("root");
    output("dpkg-deb", |command| _ = command.arg("--extract").arg(&archive).arg(&root))?;
    output("depmod", |command| _ = command.arg("--basedir").arg(&root).arg(&kernel.version))?;
    match fs::rename(&root, &kernel.root) {
        // Another test fetched it meanwhile.
        Err(_) if kernel.root.is_dir() => Ok(kernel),
        renamed => renamed.map(|()| kernel).map_err(|error| GuestError::file("rename", &root, error)),
    }
}

fn newest_version() -> Result<String, GuestError> {
    let depends = output("apt-cache", |command| _ = command.args(["depends", "--no-recommends", METAPACKAGE]))?;
    let version = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    version.map(str::to_owned).ok_or_else(|| GuestError::Failed {
        program: "apt-cache depends".to_owned(),
        output: format!("{METAPACKAGE} depends on no kernel; refresh the package lists with `apt-get update`"),
    })
}

fn only_file(folder: &Path) -> Result<PathBuf, GuestError> {
    let read = |error| GuestError::file("read", folder, error);
    match fs::read_dir(folder).map_err(read)?.next() {
        Some(entry) => Ok(entry.map_err(read)?.path()),
        None => Err(read(std::io::ErrorKind::NotFound.into())),
    }
}
