//! A machine in software (QEMU without KVM) with Debian's cloud kernel, for tests of what the kernel at hand may
//! lack: SCTP, vsock, TLS in the kernel. It lives in memory, has no disk and no network but its loopback, and is gone
//! when its errand is done.

mod command;
mod initramfs;
mod kernel;
mod machine;

use std::path::Path;

pub use command::GuestError;

/// What a machine is started for.
#[derive(Clone, Copy, Debug)]
pub struct Errand<'a> {
    /// Kernel modules to load before, with what they need.
    pub modules: &'a [&'a str],
    /// Files of this machine (programs among them have to be static), and where each is in the guest: `bin/mine`.
    pub files: &'a [(&'a Path, &'a str)],
    /// What a shell is to do, as root.
    pub script: &'a str,
}

/// How an errand ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the script printed, on both its streams.
    pub output: String,
    /// The script's exit code.
    pub status: i32,
}

/// Starts a machine, lets it do its errand, and waits for its end, five minutes at most.
///
/// The kernel is fetched from Debian's archive once and kept in `cache`, one folder a version.
///
/// # Errors
/// A tool that is missing, the archive that cannot be reached, a module that this kernel has not, a machine that ends
/// without having done its errand (with the end of what its console said).
pub fn carry_out(errand: &Errand<'_>, cache: &Path) -> Result<Outcome, GuestError> {
    let kernel = kernel::fetch(cache)?;
    let folder = tempfile::tempdir().map_err(|why| GuestError::file("make", Path::new("a temporary folder"), why))?;
    let initramfs = initramfs::build(errand, &kernel, folder.path())?;
    machine::run(&kernel, &initramfs, folder.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "starts a machine in software"]
    fn a_script_is_done_with_its_modules_and_its_end_is_told() {
        let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
        let script = "cat /proc/net/sctp/snmp | head -n 1; echo done; exit 7";
        let outcome = match carry_out(&Errand { modules: &["sctp"], files: &[], script }, &cache) {
            Err(missing @ GuestError::Missing { .. }) => return println!("SKIPPED: a script in a guest: {missing}"),
            outcome => outcome.expect("a machine"),
        };
        let lines: Vec<_> = outcome.output.lines().collect();
        assert!(lines[0].starts_with("SctpCurrEstab"), "{lines:?}");
        assert_eq!((lines[1], outcome.status), ("done", 7));
    }
}
