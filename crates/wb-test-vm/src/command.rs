//! Runs external programs, and the errors of this crate.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use thiserror::Error;
use wb_profile::image::ImageFailure;

/// Error in preparing or running a virtual machine.
#[derive(Debug, Error)]
pub enum GuestError {
    #[error("`{program}` is not installed (Debian: {package})")]
    Missing {
        program: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    #[error("`{program}` failed: {output}")]
    Failed { program: String, output: String },
    #[error("cannot {operation} {}: {source}", path.display())]
    File {
        /// The attempted operation, as a verb.
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot build an image: {0}")]
    NoImage(ImageFailure),
    #[error("the machine ended before its program finished; its console ends:\n{console}")]
    ScriptNotFinished {
        /// The last lines of its console.
        console: String,
    },
}

impl GuestError {
    pub(crate) fn file(operation: &'static str, path: &Path, source: io::Error) -> Self {
        GuestError::File { operation, path: path.to_owned(), source }
    }

    pub(crate) fn failed(program: &str, reason: impl std::fmt::Display) -> Self {
        GuestError::Failed { program: program.to_owned(), output: reason.to_string() }
    }
}

const PACKAGES: [(&str, &str); 12] = [
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("dpkg-deb", "dpkg"),
    ("depmod", "kmod"),
    ("modprobe", "kmod"),
    ("cpio", "cpio"),
    ("busybox", "busybox-static"),
    ("qemu-img", "qemu-utils"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("setpriv", "util-linux"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
];

/// Folders of system programs that a user's PATH may not contain.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

pub(crate) fn find(program: &'static str) -> Result<PathBuf, GuestError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file()).ok_or_else(|| {
        let package = PACKAGES.iter().find(|(name, _)| *name == program).map_or(program, |(_, package)| package);
        GuestError::Missing { program, package }
    })
}

pub(crate) fn output(program: &'static str, configure: impl FnOnce(&mut Command)) -> Result<String, GuestError> {
    let mut command = Command::new(find(program)?);
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    configure(&mut command);
    let failed = |reason: String| GuestError::Failed { program: program.to_owned(), output: reason };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end())));
    }
    String::from_utf8(output.stdout).map_err(|error| failed(error.to_string()))
}
