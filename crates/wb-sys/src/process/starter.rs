//! The program through which processes are launched, and what it reports: see `starter/main.rs`.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, SealFlags, StatVfsMountFlags, fcntl_add_seals, fstatvfs, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

/// The starter's side of the socket.
#[path = "../../starter/message.rs"]
pub(super) mod message;

/// The program, compiled by `build.rs`.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/starter"));
/// The lowest descriptor of the program: the child replaces those of its streams and of the socket.
const FIRST_DESCRIPTOR: i32 = 16;

/// Returns the descriptor to execute the starter with.
///
/// # Errors
/// When neither memory nor a folder can hold a program that may be executed.
pub(super) fn starter() -> io::Result<BorrowedFd<'static>> {
    static STARTER: OnceLock<OwnedFd> = OnceLock::new();
    if STARTER.get().is_none() {
        let program = in_memory().or_else(|error| in_a_file().map_err(|_| error))?;
        // Another thread may have been faster; one descriptor is as good as the other.
        let _ = STARTER.set(fcntl_dupfd_cloexec(program, FIRST_DESCRIPTOR)?);
    }
    STARTER.get().map(AsFd::as_fd).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The program in memory, which nothing can change any more.
fn in_memory() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = match memfd_create(c"weighbridge-starter", flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know the flag: everything in memory may be executed.
        Err(Errno::INVAL) => memfd_create(c"weighbridge-starter", flags)?,
        memory => memory?,
    };
    let mut file = File::from(memory);
    file.write_all(PROGRAM)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

/// The program in a file without a name, where memory may not be executed (`vm.memfd_noexec`): in the folder of this
/// program, which was executed from there, or in that of temporary files.
fn in_a_file() -> io::Result<OwnedFd> {
    let own = env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let mut result = Err(io::ErrorKind::NotFound.into());
    for folder in own.into_iter().chain([env::temp_dir()]) {
        result = in_folder(&folder);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn in_folder(folder: &Path) -> io::Result<OwnedFd> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    if fstatvfs(&file)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    file.write_all(PROGRAM)?;
    file.as_file().set_permissions(PermissionsExt::from_mode(0o500))?;
    // A file that somebody has open for writing cannot be executed.
    let program = File::open(file.path())?;
    file.into_temp_path().close()?;
    Ok(program.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_starter_is_executable_wherever_it_is() {
        for program in [in_memory().unwrap(), in_a_file().unwrap()] {
            let path = format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd());
            // Without a socket, what it creates ends at once; it itself has done its part.
            assert!(Command::new(path).status().unwrap().success());
        }
    }

    #[test]
    fn nothing_can_change_the_starter_in_memory() {
        let mut file = File::from(in_memory().unwrap());
        assert_eq!(file.write(b"x").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    // What it needs would count as the memory of the workload.
    #[test]
    fn the_starter_is_far_smaller_than_a_small_workload() {
        assert!(PROGRAM.len() < 16 << 10, "{} bytes", PROGRAM.len());
    }
}
