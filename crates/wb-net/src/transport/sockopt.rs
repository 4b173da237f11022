//! Socket options and control messages that no library provides.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::SendFlags;

/// Sets an option. The value has the kernel's memory layout.
#[allow(unsafe_code)]
pub(super) fn set<T: Copy>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> Result<(), Errno> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of a value that outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Reads an option of integers in the kernel's memory layout; bytes that the kernel does not fill stay unchanged.
#[allow(unsafe_code)]
pub(super) fn get<T: Copy>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> Result<T, Errno> {
    let mut value = value;
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes no more than `length` bytes of a value for which any bytes are valid.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value) } else { Err(last_errno()) }
}

/// Sends bytes with control messages, which have the kernel's memory layout and this length.
#[allow(unsafe_code)]
pub(super) fn send_with_control<T>(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    control: &T,
    length: usize,
    flags: SendFlags,
) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: the structure is all numbers and pointers, for which zero is valid; those that are set point to values
    // that outlive the call, and the kernel only reads them.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = std::ptr::from_ref(control).cast_mut().cast();
        message.msg_controllen = length.min(size_of::<T>()) as _;
        libc::sendmsg(socket.as_raw_fd(), &raw const message, flags.bits() as libc::c_int)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn an_option_is_set_and_an_unknown_one_is_rejected() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32).expect("it exists");
        assert_eq!(get(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 0_i32), Ok(1));
        assert!(socket.tcp_nodelay().expect("it can be read"));
        assert_eq!(set(socket.as_fd(), libc::IPPROTO_TCP, 10_000, &1_i32), Err(Errno::NOPROTOOPT));
    }
}
