//! Kernel TLS (its documentation: networking/tls): the keys are installed on a socket, which from then on encrypts what
//! is written to it.
//!
//! The kernel does not update keys. AES-GCM keys are safe for 2^24.5 records; the data sent here is not secret, so
//! longer connections are not ended.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustls::ConnectionTrafficSecrets;
use socket2::Socket;

use super::super::certificate::to_io_error;
use super::super::sockopt::{send_with_control, set};
use super::records::TlsSession;

/// Types of TLS records (RFC 8446, section 5.1).
const ALERT: u8 = 21;

/// The contents of the alert that closes a connection: warning, close_notify.
const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// The version number of TLS 1.3.
const VERSION: u16 = 0x0304;

/// Checks whether this machine's kernel supports kTLS, before a connection depends on it.
pub(in crate::transport) fn check_support(socket: &Socket) -> io::Result<()> {
    match attach_ulp(socket.as_fd()) {
        // Supported; the kernel only requires a connected socket.
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(error) => Err(unsupported(error)),
    }
}

pub(super) fn offload(socket: BorrowedFd<'_>, session: TlsSession) -> io::Result<()> {
    let secrets = match session {
        TlsSession::Connector(session) => session.dangerous_into_kernel_connection().map(|(secrets, _)| secrets),
        TlsSession::Acceptor(session) => session.dangerous_into_kernel_connection().map(|(secrets, _)| secrets),
    };
    let secrets = secrets.map_err(|error| to_io_error(&error))?;
    attach_ulp(socket).map_err(unsupported)?;
    for (direction, keys) in [(libc::TLS_TX, secrets.tx), (libc::TLS_RX, secrets.rx)] {
        CryptoInfo::new(keys)?.install(socket, direction)?;
    }
    Ok(())
}

/// Receives decrypted bytes; 0 after a close_notify alert.
pub(super) fn receive(socket: &Socket, into: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    match rustix::net::recv(socket, &mut *into, flags) {
        Ok((0, _)) => Err(super::truncated_error()),
        // The kernel returns records without data only to a recvmsg(2) with room for their type.
        Err(Errno::IO) => match receive_record(socket.as_fd(), into, flags)? {
            (ALERT, CLOSE_NOTIFY_LENGTH) if into[..CLOSE_NOTIFY_LENGTH] == CLOSE_NOTIFY => Ok(0),
            (kind, _) => {
                let message = format!("unexpected TLS record of type {kind} from the peer");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
        },
        result => Ok(result?.0),
    }
}

const CLOSE_NOTIFY_LENGTH: usize = CLOSE_NOTIFY.len();

fn unsupported(error: Errno) -> io::Error {
    let message =
        format!("engine=ktls: kernel TLS is not available ({error}): run `modprobe tls`, or remove `engine=`");
    io::Error::new(io::ErrorKind::Unsupported, message)
}

enum CryptoInfo {
    Aes128(libc::tls12_crypto_info_aes_gcm_128),
    Aes256(libc::tls12_crypto_info_aes_gcm_256),
    ChaCha(libc::tls12_crypto_info_chacha20_poly1305),
}

impl CryptoInfo {
    fn new((sequence, secrets): (u64, ConnectionTrafficSecrets)) -> io::Result<Self> {
        let info = |cipher_type| libc::tls_crypto_info { version: VERSION, cipher_type };
        let rec_seq = sequence.to_be_bytes();
        Ok(match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => Self::Aes128(libc::tls12_crypto_info_aes_gcm_128 {
                info: info(libc::TLS_CIPHER_AES_GCM_128),
                salt: to_array(&iv.as_ref()[..4])?,
                iv: to_array(&iv.as_ref()[4..])?,
                key: to_array(key.as_ref())?,
                rec_seq,
            }),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => Self::Aes256(libc::tls12_crypto_info_aes_gcm_256 {
                info: info(libc::TLS_CIPHER_AES_GCM_256),
                salt: to_array(&iv.as_ref()[..4])?,
                iv: to_array(&iv.as_ref()[4..])?,
                key: to_array(key.as_ref())?,
                rec_seq,
            }),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                Self::ChaCha(libc::tls12_crypto_info_chacha20_poly1305 {
                    info: info(libc::TLS_CIPHER_CHACHA20_POLY1305),
                    salt: [],
                    iv: to_array(iv.as_ref())?,
                    key: to_array(key.as_ref())?,
                    rec_seq,
                })
            }
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "kernel TLS does not support this cipher")),
        })
    }

    fn install(&self, socket: BorrowedFd<'_>, direction: libc::c_int) -> io::Result<()> {
        let (cipher, result) = match self {
            Self::Aes128(keys) => ("AES-128-GCM", set(socket, libc::SOL_TLS, direction, keys)),
            Self::Aes256(keys) => ("AES-256-GCM", set(socket, libc::SOL_TLS, direction, keys)),
            Self::ChaCha(keys) => ("ChaCha20-Poly1305", set(socket, libc::SOL_TLS, direction, keys)),
        };
        result.map_err(|error| match error {
            Errno::NOENT => {
                let message = format!(
                    "engine=ktls: the kernel does not support {cipher}: load the crypto module that provides it"
                );
                io::Error::new(io::ErrorKind::Unsupported, message)
            }
            error => error.into(),
        })
    }
}

fn to_array<const N: usize>(bytes: &[u8]) -> io::Result<[u8; N]> {
    bytes
        .try_into()
        .map_err(|_| io::Error::other(format!("invalid TLS key of {} bytes: expected {N} bytes", bytes.len())))
}

fn attach_ulp(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")
}

/// A control message of one byte, in the kernel's layout (`CMSG_SPACE(1)`).
#[repr(C)]
struct ControlMessage {
    header: libc::cmsghdr,
    kind: u8,
}

/// `CMSG_LEN(1)`
const CONTROL_LENGTH: usize = size_of::<libc::cmsghdr>() + 1;

pub(super) fn send_close_notify(socket: BorrowedFd<'_>) -> io::Result<()> {
    let header = libc::cmsghdr {
        cmsg_len: CONTROL_LENGTH as _,
        cmsg_level: libc::SOL_TLS,
        cmsg_type: libc::TLS_SET_RECORD_TYPE,
    };
    let control = ControlMessage { header, kind: ALERT };
    send_with_control(socket, &CLOSE_NOTIFY, &control, CONTROL_LENGTH, SendFlags::NOSIGNAL).map(drop)
}

/// Receives a record of any type; returns its type and length.
#[allow(unsafe_code)]
fn receive_record(socket: BorrowedFd<'_>, into: &mut [u8], flags: RecvFlags) -> io::Result<(u8, usize)> {
    let header = libc::cmsghdr { cmsg_len: 0, cmsg_level: 0, cmsg_type: 0 };
    let mut control = ControlMessage { header, kind: 0 };
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: the structure is all numbers and pointers, for which zero is valid; those that are set point to values
    // that outlive the call, and the kernel writes into them no more than their lengths.
    let received = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<ControlMessage>() as _;
        libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags.bits() as libc::c_int)
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let has_type = control.header.cmsg_level == libc::SOL_TLS && control.header.cmsg_type == libc::TLS_GET_RECORD_TYPE;
    if has_type {
        Ok((control.kind, received))
    } else {
        Err(io::Error::other("the kernel returned no TLS record type"))
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn structures_have_the_sizes_of_linux_tls_h() {
        assert_eq!(size_of::<libc::tls12_crypto_info_aes_gcm_128>(), 4 + 8 + 16 + 4 + 8);
        assert_eq!(size_of::<libc::tls12_crypto_info_aes_gcm_256>(), 4 + 8 + 32 + 4 + 8);
        assert_eq!(size_of::<libc::tls12_crypto_info_chacha20_poly1305>(), 4 + 12 + 32 + 8);
        // SAFETY: these compute lengths.
        let (space, length) = unsafe { (libc::CMSG_SPACE(1), libc::CMSG_LEN(1)) };
        assert_eq!(size_of::<ControlMessage>(), space as usize);
        assert_eq!(CONTROL_LENGTH, length as usize);
        assert_eq!(std::mem::offset_of!(ControlMessage, kind), CONTROL_LENGTH - 1);
    }

    #[test]
    fn missing_kernel_tls_is_distinguished_from_a_missing_connection() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        if let Err(error) = check_support(&socket) {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("modprobe tls"), "{error}");
        }
    }
}
