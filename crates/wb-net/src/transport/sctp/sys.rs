//! Definitions from linux/sctp.h; no library provides all of them.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::super::sockopt::{get, set};

const LEVEL: libc::c_int = libc::IPPROTO_SCTP;
const SCTP_RTOINFO: libc::c_int = 0;
const SCTP_INITMSG: libc::c_int = 2;
const SCTP_NODELAY: libc::c_int = 3;
const SCTP_PEER_ADDR_PARAMS: libc::c_int = 9;
const SCTP_MAXSEG: libc::c_int = 13;
const SCTP_STATUS: libc::c_int = 14;
const SCTP_DELAYED_SACK: libc::c_int = 16;
const SCTP_MAX_BURST: libc::c_int = 20;
const SCTP_REMOTE_UDP_ENCAPS_PORT: libc::c_int = 36;

/// Types of control messages.
const SCTP_SNDINFO: libc::c_int = 2;
const SCTP_PRINFO: libc::c_int = 5;

const SCTP_UNORDERED: u16 = 1;

const SPP_HB_ENABLE: u32 = 1 << 0;
const SPP_PMTUD_DISABLE: u32 = 1 << 4;

/// Size of `struct sctp_status`.
const STATUS_LENGTH: usize = 176;

pub(super) fn is_associated(socket: BorrowedFd<'_>) -> bool {
    get(socket, LEVEL, SCTP_STATUS, [0_u8; STATUS_LENGTH]) != Err(Errno::INVAL)
}

/// `struct sctp_rtoinfo`, in milliseconds; 0 leaves a value unchanged.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RtoInfo {
    pub(super) association: i32,
    pub(super) initial: u32,
    pub(super) max: u32,
    pub(super) min: u32,
}

impl RtoInfo {
    pub(super) fn set(self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        set(socket, LEVEL, SCTP_RTOINFO, &self)
    }
}

/// `struct sctp_sack_info`; 0 leaves a value unchanged.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SackInfo {
    pub(super) association: i32,
    pub(super) delay: u32,
    pub(super) frequency: u32,
}

impl SackInfo {
    pub(super) fn set(self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        set(socket, LEVEL, SCTP_DELAYED_SACK, &self)
    }
}

/// `struct sctp_assoc_value`
#[repr(C)]
#[derive(Clone, Copy)]
struct AssociationValue {
    association: i32,
    value: u32,
}

pub(super) fn set_max_burst(socket: BorrowedFd<'_>, value: u32) -> Result<(), Errno> {
    set(socket, LEVEL, SCTP_MAX_BURST, &AssociationValue { association: 0, value })
}

pub(super) fn set_max_fragment(socket: BorrowedFd<'_>, value: u32) -> Result<(), Errno> {
    set(socket, LEVEL, SCTP_MAXSEG, &AssociationValue { association: 0, value })
}

pub(super) fn set_no_delay(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    set(socket, LEVEL, SCTP_NODELAY, &1_i32)
}

/// `struct sctp_initmsg`; 0 leaves a value unchanged.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct InitMessage {
    out_streams: u16,
    in_streams: u16,
    attempts: u16,
    timeout: u16,
}

impl InitMessage {
    pub(super) fn new(in_streams: u16, out_streams: u16) -> Self {
        Self { out_streams, in_streams, attempts: 0, timeout: 0 }
    }

    pub(super) fn set(self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        set(socket, LEVEL, SCTP_INITMSG, &self)
    }
}

/// A zeroed `struct sockaddr_storage`, which stands for every address.
const ANY_ADDRESS: [u8; 128] = [0; 128];

/// `struct sctp_paddrparams`, which is packed, but padded to a multiple of four bytes.
#[repr(C, packed)]
#[derive(Clone, Copy)]
pub(super) struct PathParameters {
    association: i32,
    address: [u8; 128],
    heartbeat: u32,
    retransmissions: u16,
    mtu: u32,
    sack_delay: u32,
    flags: u32,
    flow_label: u32,
    dscp: u8,
    end: u8,
}

impl PathParameters {
    pub(super) fn new(heartbeat: Option<u32>, mtu: Option<u32>) -> Self {
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        // A fixed path MTU requires path MTU discovery to be disabled.
        let flags = flag(heartbeat.is_some(), SPP_HB_ENABLE) | flag(mtu.is_some(), SPP_PMTUD_DISABLE);
        Self {
            association: 0,
            address: ANY_ADDRESS,
            heartbeat: heartbeat.unwrap_or(0),
            retransmissions: 0,
            mtu: mtu.unwrap_or(0),
            sack_delay: 0,
            flags,
            flow_label: 0,
            dscp: 0,
            end: 0,
        }
    }

    pub(super) fn set(self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        set(socket, LEVEL, SCTP_PEER_ADDR_PARAMS, &self)
    }
}

/// `struct sctp_udpencaps`. To receive encapsulated packets the kernel also needs net.sctp.udp_port.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Encapsulation {
    association: i32,
    /// Padding: the address is aligned to eight bytes.
    before: [u8; 4],
    address: [u8; 128],
    /// In network byte order.
    port: [u8; 2],
    end: [u8; 6],
}

impl Encapsulation {
    pub(super) fn new(port: u16) -> Self {
        Self { association: 0, before: [0; 4], address: ANY_ADDRESS, port: port.to_be_bytes(), end: [0; 6] }
    }

    pub(super) fn set(self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        set(socket, LEVEL, SCTP_REMOTE_UDP_ENCAPS_PORT, &self)
    }
}

#[repr(u16)]
#[derive(Clone, Copy)]
pub(super) enum ReliabilityPolicy {
    /// `SCTP_PR_SCTP_NONE`
    Never = 0,
    /// `SCTP_PR_SCTP_TTL`
    Lifetime = 0x10,
    /// `SCTP_PR_SCTP_RTX`
    Retransmissions = 0x20,
    /// `SCTP_PR_SCTP_PRIO`
    Priority = 0x30,
}

/// `struct sctp_sndinfo`
#[repr(C)]
struct SendInfo {
    stream: u16,
    flags: u16,
    payload: u32,
    context: u32,
    association: i32,
}

/// `struct sctp_prinfo`
#[repr(C)]
struct ReliabilityInfo {
    policy: u16,
    value: u32,
}

/// Both structures as consecutive control messages.
#[repr(C)]
pub(super) struct ControlMessages {
    send_header: libc::cmsghdr,
    send: SendInfo,
    reliability_header: libc::cmsghdr,
    reliability: ReliabilityInfo,
}

impl ControlMessages {
    pub(super) fn new(stream: u16, unordered: bool, policy: ReliabilityPolicy, value: u32) -> Self {
        let header = |length: usize, kind| libc::cmsghdr {
            cmsg_len: (size_of::<libc::cmsghdr>() + length) as _,
            cmsg_level: LEVEL,
            cmsg_type: kind,
        };
        let flags = if unordered { SCTP_UNORDERED } else { 0 };
        Self {
            send_header: header(size_of::<SendInfo>(), SCTP_SNDINFO),
            send: SendInfo { stream, flags, payload: 0, context: 0, association: 0 },
            reliability_header: header(size_of::<ReliabilityInfo>(), SCTP_PRINFO),
            reliability: ReliabilityInfo { policy: policy as u16, value },
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn structures_have_the_layout_of_linux_sctp_h() {
        assert_eq!(size_of::<RtoInfo>(), 16);
        assert_eq!(size_of::<SackInfo>(), 12);
        assert_eq!(size_of::<AssociationValue>(), 8);
        assert_eq!(size_of::<InitMessage>(), 8);
        assert_eq!(size_of::<PathParameters>(), 156);
        assert_eq!(offset_of!(PathParameters, address), 4);
        assert_eq!(offset_of!(PathParameters, heartbeat), 132);
        assert_eq!(offset_of!(PathParameters, mtu), 138);
        assert_eq!(offset_of!(PathParameters, flags), 146);
        assert_eq!(offset_of!(PathParameters, dscp), 154);
        assert_eq!(size_of::<Encapsulation>(), 144);
        assert_eq!(offset_of!(Encapsulation, address), 8);
        assert_eq!(offset_of!(Encapsulation, port), 136);
        assert_eq!(size_of::<SendInfo>(), 16);
        assert_eq!(size_of::<ReliabilityInfo>(), 8);
    }

    #[test]
    fn control_messages_are_laid_out_for_cmsg_nxthdr() {
        // SAFETY: these compute lengths.
        let (send, reliability, length) = unsafe { (libc::CMSG_SPACE(16), libc::CMSG_SPACE(8), libc::CMSG_LEN(16)) };
        assert_eq!(size_of::<ControlMessages>(), (send + reliability) as usize);
        assert_eq!(offset_of!(ControlMessages, reliability_header), send as usize);
        assert_eq!(
            ControlMessages::new(3, true, ReliabilityPolicy::Lifetime, 50).send_header.cmsg_len,
            length as usize
        );
    }
}
