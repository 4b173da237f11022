//! Options of sockets that no library offers.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::io::Errno;

/// Sets one. The value is laid out as the kernel has it.
#[allow(unsafe_code)]
pub(super) fn set<T: Copy>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> Result<(), Errno> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of a value that outlives the call.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) };
    if set == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Asks for one, whose value is all numbers, laid out as the kernel has it; what the kernel does not fill stays.
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
    let got = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
    if got == 0 { Ok(value) } else { Err(last_errno()) }
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
    fn an_option_is_set_and_one_that_does_not_exist_is_refused() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        set(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32).expect("it exists");
        assert_eq!(get(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 0_i32), Ok(1));
        assert!(socket.tcp_nodelay().expect("it can be asked"));
        assert_eq!(set(socket.as_fd(), libc::IPPROTO_TCP, 10_000, &1_i32), Err(Errno::NOPROTOOPT));
    }
}
