//! Datagram transport over two connected sockets: UDP and UNIX.

mod offload;

use std::array;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{MMsgHdr, SendAncillaryBuffer, sendmmsg};
use socket2::Socket;

use self::offload::SegmentationOffload;
use super::{CloseMode, Transport, receive_flags, send_flags};
use wb_net_profile::Message;

/// Maximum number of datagrams per system call.
const MAX_BATCH: usize = 64;

/// A connected datagram socket. The kernel drops datagrams from other addresses.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: Socket,
    offload: Option<Box<SegmentationOffload>>,
}

impl DatagramSocket {
    pub fn new(socket: Socket) -> Self {
        Self { socket, offload: None }
    }

    /// Creates one whose datagrams the kernel segments on sending (GSO) and coalesces on receiving (GRO). Fails if the
    /// kernel does not support it.
    pub fn with_offload(socket: Socket) -> io::Result<Self> {
        let offload = Some(Box::new(SegmentationOffload::enable(&socket)?));
        Ok(Self { socket, offload })
    }
}

impl Transport for DatagramSocket {
    #[inline]
    fn send(&mut self, bytes: &[u8], message: &Message) -> io::Result<usize> {
        let flags = send_flags(message);
        match &mut self.offload {
            Some(offload) => offload.send(&self.socket, bytes, flags).map(|()| bytes.len()),
            None => Ok(rustix::net::send(&self.socket, bytes, flags)?),
        }
    }

    fn send_many(&mut self, bytes: &[u8], size: usize, message: &Message) -> io::Result<usize> {
        let flags = send_flags(message);
        if let Some(offload) = &mut self.offload {
            return offload.send_many(&self.socket, bytes, size, flags);
        }
        // On the stack, to avoid allocation during the measurement; what does not fit is sent by the next call.
        let mut control_buffers: [SendAncillaryBuffer<'_, '_, '_>; MAX_BATCH] =
            array::from_fn(|_| SendAncillaryBuffer::default());
        let slices: [[IoSlice<'_>; 1]; MAX_BATCH] =
            array::from_fn(|n| [IoSlice::new(bytes.get(n * size..(n + 1) * size).unwrap_or_default())]);
        let mut index = 0..;
        let mut headers = control_buffers.each_mut().map(|control| {
            let i = index.next().unwrap_or(0);
            MMsgHdr::new(&slices[i], control)
        });
        let count = (bytes.len() / size).min(MAX_BATCH);
        Ok(sendmmsg(&self.socket, &mut headers[..count], flags)?)
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8], message: &Message) -> io::Result<usize> {
        if let Some(offload) = &mut self.offload {
            return offload.receive(&self.socket, into);
        }
        Ok(rustix::net::recv(&self.socket, into, receive_flags(message))?.0)
    }

    fn close(&mut self, _: CloseMode) -> io::Result<()> {
        Ok(())
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
