//! Emulated virtual machines (QEMU without KVM) with Debian's cloud kernel, for tests of features that the running
//! kernel may lack: SCTP, vsock, kernel TLS, the controllers of cgroup v2.
//!
//! [`run_script`] runs a script in a machine without a disk, and without a network but its loopback. [`SshGuest`] is a
//! machine with systemd, disks and an ssh server, of an image that `wb-profile` builds. Both are discarded afterwards.

#![forbid(unsafe_code)]

mod command;
mod initramfs;
mod kernel;
mod machine;
mod ssh_guest;

use std::path::Path;

pub use command::GuestError;
pub use ssh_guest::{GuestConfig, GuestDisk, SshGuest, built_image};

/// A script to run in a virtual machine, with its files and kernel modules.
#[derive(Clone, Copy, Debug)]
pub struct GuestScript<'a> {
    /// Kernel modules to load first, with their dependencies.
    pub modules: &'a [&'a str],
    /// Files to copy from this machine, with their paths in the guest (`bin/mine`). Programs must be statically linked.
    pub files: &'a [(&'a Path, &'a str)],
    /// A shell script that runs as root.
    pub script: &'a str,
}

/// Output and exit status of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOutput {
    /// The script's standard output and standard error.
    pub output: String,
    pub status: i32,
}

/// Starts a machine, runs the script in it, and waits for its end, at most five minutes. The kernel is downloaded from
/// Debian's archive once and cached in `cache`, one folder per version. If the machine ends before the script, the
/// error has the last lines of its console.
pub fn run_script(errand: &GuestScript<'_>, cache: &Path) -> Result<ScriptOutput, GuestError> {
    let kernel = kernel::fetch(cache)?;
    let folder =
        tempfile::tempdir().map_err(|error| GuestError::file("create", Path::new("a temporary folder"), error))?;
    let initramfs = initramfs::build(errand, &kernel, folder.path())?;
    machine::run(&kernel, &initramfs, folder.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "starts an emulated machine"]
    fn script_runs_with_its_modules_and_returns_its_status() {
        let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
        let script = "cat /proc/net/sctp/snmp | head -n 1; echo done; exit 7";
        let outcome = match run_script(&GuestScript { modules: &["sctp"], files: &[], script }, &cache) {
            Err(missing @ GuestError::Missing { .. }) => return wb_test_skip::skip!("a script in a guest: {missing}"),
            outcome => outcome.expect("a machine"),
        };
        let lines: Vec<_> = outcome.output.lines().collect();
        assert!(lines[0].starts_with("SctpCurrEstab"), "{lines:?}");
        assert_eq!((lines[1], outcome.status), ("done", 7));
    }
}
