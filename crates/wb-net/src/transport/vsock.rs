//! vsock (linux/vm_sockets.h): the context ID of this machine, and the size of a socket's buffer.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use socket2::Socket;

use super::sockopt;

/// The context ID of the loopback, through which a machine reaches itself.
pub(super) const LOOPBACK_CID: u32 = libc::VMADDR_CID_LOCAL;

const SO_VM_SOCKETS_BUFFER_SIZE: libc::c_int = 0;
const SO_VM_SOCKETS_BUFFER_MAX_SIZE: libc::c_int = 2;
const IOCTL_VM_SOCKETS_GET_LOCAL_CID: libc::Ioctl = 0x7b9;

/// Sets the size of the single buffer, that of the receiving side, and its limit.
pub(super) fn set_buffer_size(socket: &Socket, bytes: u32) -> io::Result<()> {
    let bytes = u64::from(bytes);
    sockopt::set(socket.as_fd(), libc::AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &bytes)?;
    Ok(sockopt::set(socket.as_fd(), libc::AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &bytes)?)
}

/// The size of the buffer in bytes.
pub(super) fn buffer_size(socket: BorrowedFd<'_>) -> Result<u64, Errno> {
    sockopt::get(socket, libc::AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, 0)
}

/// The context ID of this machine; that of the loopback if it has no other.
pub(super) fn local_cid_or_loopback() -> u32 {
    match local_cid() {
        Ok(cid) if cid != libc::VMADDR_CID_ANY => cid,
        _ => LOOPBACK_CID,
    }
}

#[allow(unsafe_code)]
fn local_cid() -> io::Result<u32> {
    let device = File::open("/dev/vsock")?;
    let mut cid = 0_u32;
    // SAFETY: the kernel writes one 32-bit integer.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), IOCTL_VM_SOCKETS_GET_LOCAL_CID, &raw mut cid) };
    if result == 0 { Ok(cid) } else { Err(io::Error::last_os_error()) }
}
