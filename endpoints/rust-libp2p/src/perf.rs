//! The protocol `/perf/1.0.0` over one stream.

use std::{io, time::Instant};

use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::{Stream, StreamProtocol};

pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/perf/1.0.0");

const BUFFER: usize = 64 * 1024;
static PAYLOAD: [u8; BUFFER] = [0; BUFFER];

/// How much a transfer moves in each direction.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) send: u64,
    pub(crate) receive: u64,
}

/// Bytes of payload that were moved so far, and when the first one arrived.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) first: Option<Instant>,
}

/// Sends the header and the payload, and reads the answer to its end.
pub(crate) async fn request(stream: &mut Stream, sizes: Sizes, counts: &mut Counts) -> io::Result<()> {
    stream.write_all(&sizes.receive.to_be_bytes()).await?;
    send(stream, sizes.send, counts).await?;
    stream.close().await?;
    receive(stream, counts).await?;
    if counts.received == sizes.receive {
        Ok(())
    } else {
        Err(io::Error::other(format!("received {} of {} bytes", counts.received, sizes.receive)))
    }
}

/// Reads a request to its end and answers it.
pub(crate) async fn answer(stream: &mut Stream, counts: &mut Counts) -> io::Result<()> {
    let mut header = [0; 8];
    stream.read_exact(&mut header).await?;
    receive(stream, counts).await?;
    send(stream, u64::from_be_bytes(header), counts).await?;
    stream.close().await
}

async fn send(stream: &mut Stream, bytes: u64, counts: &mut Counts) -> io::Result<()> {
    while counts.sent < bytes {
        let size = usize::try_from(bytes - counts.sent).map_or(BUFFER, |left| left.min(BUFFER));
        match stream.write(&PAYLOAD[..size]).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => counts.sent += written as u64,
        }
    }
    Ok(())
}

async fn receive(stream: &mut Stream, counts: &mut Counts) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            read => counts.received += read as u64,
        }
        counts.first.get_or_insert_with(Instant::now);
    }
}
