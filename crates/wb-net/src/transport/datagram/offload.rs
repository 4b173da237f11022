//! Segmentation offload of UDP (GSO and GRO, udp(7)): one system call sends, or receives, several datagrams of one size,
//! and they pass the network stack as one.

use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::AsFd;

use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::net::SendFlags;
use socket2::Socket;

use crate::transport::sockopt;

/// The kernel's maximum number of datagrams in one that it segments (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 64;

/// The largest payload of all of them together: the maximum of one IPv6 datagram.
const MAX_BYTES: usize = 65_487;

#[derive(Debug)]
pub(super) struct SegmentationOffload {
    receiver: UdpSocketState,
    /// The size of the segments into which the kernel divides sent data; 0 if it does not.
    segment: usize,
    /// The data that was received in one system call, and the part of it that is not yet returned.
    received: Box<[u8]>,
    unread: std::ops::Range<usize>,
    stride: usize,
}

impl SegmentationOffload {
    /// Enables it for a socket, which then never blocks.
    pub(super) fn enable(socket: &Socket) -> io::Result<Self> {
        let receiver = UdpSocketState::new(socket.into())?;
        set_segment(socket, 0)?;
        if receiver.gro_segments() == 1 {
            return Err(io::Error::new(ErrorKind::Unsupported, "the kernel has no GRO for UDP"));
        }
        let received = vec![0; 1 << 16].into_boxed_slice();
        Ok(Self { receiver, segment: 0, received, unread: 0..0, stride: 0 })
    }

    pub(super) fn send(&mut self, socket: &Socket, bytes: &[u8], flags: SendFlags) -> io::Result<()> {
        if self.segment > 0 && bytes.len() > self.segment {
            set_segment(socket, 0)?;
            self.segment = 0;
        }
        rustix::net::send(socket, bytes, flags)?;
        Ok(())
    }

    /// Sends datagrams of one size; returns how many.
    pub(super) fn send_many(
        &mut self,
        socket: &Socket,
        bytes: &[u8],
        size: usize,
        flags: SendFlags,
    ) -> io::Result<usize> {
        if self.segment != size {
            set_segment(socket, size)?;
            self.segment = size;
        }
        let count = (bytes.len() / size).min(MAX_SEGMENTS).min(MAX_BYTES / size).max(1);
        match rustix::net::send(socket, &bytes[..count * size], flags) {
            Ok(_) => Ok(count),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::MSGSIZE) => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("datagrams of {size} bytes cannot be segmented on this path: they exceed its MTU"),
            )),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn receive(&mut self, socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() {
            let mut meta = [RecvMeta::default()];
            self.receiver.recv(socket.into(), &mut [IoSliceMut::new(&mut self.received)], &mut meta)?;
            self.unread = 0..meta[0].len;
            self.stride = meta[0].stride.max(1);
        }
        let length = self.unread.len().min(self.stride);
        let datagram = &self.received[self.unread.start..self.unread.start + length];
        self.unread.start += length;
        let length = length.min(into.len());
        into[..length].copy_from_slice(&datagram[..length]);
        Ok(length)
    }
}

fn set_segment(socket: &Socket, size: usize) -> io::Result<()> {
    let unsupported = |_| io::Error::new(ErrorKind::Unsupported, "the kernel has no GSO for UDP");
    sockopt::set(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, &(size as libc::c_int)).map_err(unsupported)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn pair() -> (Socket, Socket) {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
        near.connect(far.local_addr().expect("bound")).expect("connected");
        far.connect(near.local_addr().expect("bound")).expect("connected");
        (near.into(), far.into())
    }

    #[test]
    fn datagrams_that_were_sent_together_arrive_one_by_one() {
        let (near, far) = pair();
        let mut sender = SegmentationOffload::enable(&near).expect("this kernel has it");
        let mut receiver = SegmentationOffload::enable(&far).expect("this kernel has it");
        let bytes: Vec<u8> = (0..100).flat_map(|datagram| [datagram; 1000]).collect();
        let mut sent = 0;
        while sent < 100 {
            sent += sender.send_many(&near, &bytes[sent * 1000..], 1000, SendFlags::empty()).expect("it fits");
        }
        sender.send(&near, &[200; 1500], SendFlags::empty()).expect("it fits");
        let mut buffer = [0; 2000];
        for expected in 0..100 {
            let length = receiver.receive(&far, &mut buffer).expect("it was sent");
            assert_eq!((length, buffer[0], buffer[999]), (1000, expected, expected));
        }
        assert_eq!((receiver.receive(&far, &mut buffer).expect("the last"), buffer[1499]), (1500, 200));
        assert_eq!(receiver.receive(&far, &mut buffer).expect_err("no more").kind(), ErrorKind::WouldBlock);
    }
}
