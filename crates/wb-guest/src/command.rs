//! Other programs, and what can go wrong with them.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use thiserror::Error;

/// Why a machine could not do its errand.
#[derive(Debug, Error)]
pub enum GuestError {
    /// A program is not installed.
    #[error("`{program}` is not installed (Debian: {package})")]
    Missing {
        /// Its name.
        program: &'static str,
        /// The package that brings it.
        package: &'static str,
    },
    /// A program failed.
    #[error("`{program}` failed: {why}")]
    Failed {
        /// Its name.
        program: String,
        /// What it said.
        why: String,
    },
    /// A file or folder could not be used.
    #[error("could not {what} {}: {why}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The machine ended, or had to be ended, before its errand was done.
    #[error("the machine ended without having done its errand; the end of its console:\n{console}")]
    Unfinished {
        /// The last lines.
        console: String,
    },
}

impl GuestError {
    /// What a file operation ended with.
    pub(crate) fn file(what: &'static str, path: &Path, why: io::Error) -> Self {
        GuestError::File { what, path: path.to_owned(), why }
    }
}

/// The packages of the programs that are used here.
const PACKAGES: [(&str, &str); 8] = [
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("dpkg-deb", "dpkg"),
    ("depmod", "kmod"),
    ("modprobe", "kmod"),
    ("cpio", "cpio"),
    ("busybox", "busybox-static"),
    ("qemu-system-x86_64", "qemu-system-x86"),
];

/// Where system programs are that a user's PATH leaves out.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Where a program is.
pub(crate) fn find(program: &'static str) -> Result<PathBuf, GuestError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|found| found.is_file()).ok_or_else(|| {
        let package = PACKAGES.iter().find(|(name, _)| *name == program).map_or(program, |(_, package)| package);
        GuestError::Missing { program, package }
    })
}

/// What a program prints, when it ends well.
pub(crate) fn output(program: &'static str, ready: impl FnOnce(&mut Command)) -> Result<String, GuestError> {
    let mut command = Command::new(find(program)?);
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    ready(&mut command);
    let failed = |why: String| GuestError::Failed { program: program.to_owned(), why };
    let output = command.output().map_err(|why| failed(why.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end())));
    }
    String::from_utf8(output.stdout).map_err(|why| failed(why.to_string()))
}
