//! The protocol `/perf/1.0.0` over one stream.

use std::{
    io,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::{Stream, StreamProtocol};
use tokio::time::{self, MissedTickBehavior};

pub(crate) const PROTOCOL: StreamProtocol = StreamProtocol::new("/perf/1.0.0");

const BUFFER: usize = 64 * 1024;
static PAYLOAD: [u8; BUFFER] = [0; BUFFER];

/// What a dialer asks for that ends the transfer itself.
const UNLIMITED: u64 = u64::MAX;

/// What ends a transfer.
#[derive(Clone, Copy)]
pub(crate) enum Amount {
    /// The bytes in each direction.
    Bytes { send: u64, receive: u64 },
    /// The time.
    Time(FixedTime),
}

/// A transfer in one direction for a fixed time.
#[derive(Clone, Copy)]
pub(crate) struct FixedTime {
    pub(crate) direction: Direction,
    pub(crate) duration: Duration,
    /// The time between two reports.
    pub(crate) interval: Duration,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Direction {
    Upload,
    Download,
}

/// Bytes of payload that were moved so far, and when the first one arrived.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) first: Option<Instant>,
}

/// Carries out a transfer; `report` is told from time to time what one of a fixed time has moved.
pub(crate) async fn request(
    stream: &mut Stream,
    amount: Amount,
    counts: &mut Counts,
    report: impl Fn(&Counts),
) -> io::Result<()> {
    match amount {
        Amount::Bytes { send, receive } => request_bytes(stream, send, receive, counts).await,
        Amount::Time(time) => request_timed(stream, time, counts, report).await,
    }
}

/// Sends the header and the payload, and reads the answer to its end.
async fn request_bytes(stream: &mut Stream, bytes: u64, requested: u64, counts: &mut Counts) -> io::Result<()> {
    stream.write_all(&requested.to_be_bytes()).await?;
    send(stream, bytes, counts).await?;
    stream.close().await?;
    receive(stream, counts).await?;
    if counts.received == requested {
        Ok(())
    } else {
        Err(io::Error::other(format!("received {} of {requested} bytes", counts.received)))
    }
}

/// Sends payload until the time is over and waits for the end, or leaves what it asked for as soon as the time is over.
async fn request_timed(
    stream: &mut Stream,
    time: FixedTime,
    counts: &mut Counts,
    report: impl Fn(&Counts),
) -> io::Result<()> {
    let FixedTime { direction, duration, interval } = time;
    let begin = time::Instant::now();
    let end = time::sleep_until(begin + duration);
    tokio::pin!(end);
    let mut ticks = time::interval_at(begin + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let requested = if direction == Direction::Upload { 0 } else { UNLIMITED };
    stream.write_all(&requested.to_be_bytes()).await?;
    if direction == Direction::Download {
        stream.close().await?;
    }
    let mut buffer = vec![0; BUFFER];
    loop {
        let moved = async {
            match direction {
                Direction::Upload => stream.write(&PAYLOAD).await,
                Direction::Download => stream.read(&mut buffer).await,
            }
        };
        // Neither reading nor writing loses anything when it is left.
        tokio::select! {
            biased;
            () = &mut end => break,
            _ = ticks.tick() => report(counts),
            moved = moved => match (moved?, direction) {
                (0, _) => return Err(io::Error::other("the transfer ended before its time")),
                (written, Direction::Upload) => counts.sent += written as u64,
                (read, Direction::Download) => {
                    counts.received += read as u64;
                    counts.first.get_or_insert_with(Instant::now);
                }
            },
        }
    }
    report(counts);
    if direction == Direction::Upload {
        stream.close().await?;
        receive(stream, counts).await?;
    }
    Ok(())
}

/// Reads a request to its end and answers it.
pub(crate) async fn answer(stream: &mut Stream, counts: &mut Counts) -> io::Result<()> {
    let mut header = [0; 8];
    stream.read_exact(&mut header).await?;
    receive(stream, counts).await?;
    match u64::from_be_bytes(header) {
        UNLIMITED => {
            send_unlimited(stream, counts).await;
            Ok(())
        }
        requested => {
            send(stream, requested, counts).await?;
            stream.close().await
        }
    }
}

/// Sends until the dialer takes no more, which is the regular end.
async fn send_unlimited(stream: &mut Stream, counts: &mut Counts) {
    while let Ok(written) = stream.write(&PAYLOAD).await
        && written > 0
    {
        counts.sent += written as u64;
    }
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
