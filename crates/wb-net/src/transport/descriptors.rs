//! Receives file descriptors with the bytes that they accompany (SCM_RIGHTS, unix(7)).

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};

/// Receives bytes, none at the end, and at most two descriptors that came with them.
pub(crate) fn receive_with_descriptors(socket: impl AsFd, into: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(into)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let messages = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors = messages.flatten().collect();
    // There is room for what our processes send, so that a descriptor is lost only where this process may open no more.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MFILE.into());
    }
    Ok((received.bytes, descriptors))
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::unix::net::UnixStream;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    // Blamed the sender: "a connection without its descriptor", "a request without two descriptors".
    #[test]
    fn a_descriptor_that_cannot_be_received_is_an_error_of_the_limit() {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(9))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        // By its alignment, room for two has room for a few.
        let descriptors = [near.as_fd(); 9];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&near, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::NOSIGNAL).expect("sent");
        let error = receive_with_descriptors(&far, &mut [0]).expect_err("there is room for a few");
        assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
    }
}
