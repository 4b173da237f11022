//! The raw ceiling of a path: how fast one TCP connection moves bytes and answers, without any protocol on it.
//!
//! What an implementation of a protocol reports cannot be better. One process serves, another measures, where and as
//! the two sides of the implementation run. Plain blocking sockets; a connection proves with a token that it belongs
//! to the measurement.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Environment variable with the token of both sides; command lines are readable by all users.
pub const TOKEN_VARIABLE: &str = "WEIGHBRIDGE_CEILING_TOKEN";

/// Sizes of writes and reads, one connection each; the fastest counts. On loopback, one size may be five times as fast
/// as another, and as itself over the next connection.
const BLOCKS: [usize; 4] = [16 << 10, 32 << 10, 64 << 10, 256 << 10];
/// Largest size that a server takes part in.
const MAX_BLOCK: usize = 1 << 20;
/// What a connection begins with, after the token: the request, the bytes of a transfer (u64), and of a block (u32).
const HEAD: usize = 1 + size_of::<u64>() + size_of::<u32>();
/// Bytes of one transfer: so few that some transfers are not interrupted even on a busy machine. The windows of a
/// connection have grown with the first.
const TRANSFER: u64 = 4 << 20;
/// Largest transfer that a server takes part in.
const MAX_TRANSFER: u64 = 1 << 32;
/// Transfers over each connection: at least this many, and more until this time has passed; the fastest counts.
const MIN_TRANSFERS: usize = 8;
const CONNECTION_TIME: Duration = Duration::from_millis(30);
/// Number of round trips of one byte, of each kind of echo.
const ROUND_TRIPS: usize = 200;
/// Longest wait for a peer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection is for; the byte after the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Request {
    Upload = b'u',
    Download = b'd',
    Echo = b'e',
    /// An echo whose sides poll for data instead of sleeping until it comes.
    PollingEcho = b'p',
}

/// The best that a TCP connection did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ceiling {
    /// Bytes per second from the measuring side to the other.
    pub upload: f64,
    /// Bytes per second in the other direction.
    pub download: f64,
    /// The shortest round trip of one byte in seconds, sleeping or polling: waking up may take longer than the rest.
    pub min_round_trip: f64,
    /// The median round trip of sides that sleep, in seconds.
    pub median_round_trip: f64,
    /// The median rate as a share of the best: little on a busy machine, where the best may be too low as well.
    pub steadiness: f64,
}

#[derive(Debug, Clone, Copy)]
struct TransferTimes {
    shortest: Duration,
    median: Duration,
}

/// Serves connections, each on a thread of its own, until the process ends. A connection ends with its peer.
pub fn serve(listener: &TcpListener, token: &str) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept()?;
        let token = token.to_owned();
        std::thread::spawn(move || {
            // A stranger, or a measuring side that went away: the measuring side reports what it sees.
            let _ = answer(stream, &token);
        });
    }
}

fn answer(mut stream: TcpStream, token: &str) -> io::Result<()> {
    prepare(&stream)?;
    let mut head = vec![0; token.len()];
    stream.read_exact(&mut head)?;
    if head != token.as_bytes() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "wrong token"));
    }
    let mut request = [0; HEAD];
    stream.read_exact(&mut request)?;
    let (kind, sizes) = (request[0], &request[1..]);
    let (bytes, block) = sizes.split_at(size_of::<u64>());
    let bytes = u64::from_be_bytes(bytes.try_into().map_err(io::Error::other)?).min(MAX_TRANSFER);
    let block = u32::from_be_bytes(block.try_into().map_err(io::Error::other)?);
    let mut block = vec![0; (block as usize).clamp(1, MAX_BLOCK)];
    match kind {
        b'u' => loop {
            receive(&mut stream, bytes, &mut block)?;
            stream.write_all(&[0])?;
        },
        b'd' => loop {
            stream.read_exact(&mut [0])?;
            send(&mut stream, bytes, &block)?;
        },
        b'p' => loop {
            poll_byte(&mut stream)?;
            stream.write_all(&[0])?;
        },
        _ => loop {
            stream.read_exact(&mut [0])?;
            stream.write_all(&[0])?;
        },
    }
}

/// Reads a byte without sleeping; whatever else wants to run on the same CPU may.
fn poll_byte(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let begin = Instant::now();
    loop {
        match stream.read(&mut [0]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock && begin.elapsed() < TIMEOUT => {
                std::thread::yield_now()
            }
            Err(error) => return Err(error),
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))
}

fn send(stream: &mut TcpStream, bytes: u64, block: &[u8]) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let size = left.min(block.len() as u64) as usize;
        stream.write_all(&block[..size])?;
        left -= size as u64;
    }
    Ok(())
}

fn receive(stream: &mut TcpStream, bytes: u64, block: &mut [u8]) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        let size = left.min(block.len() as u64) as usize;
        match stream.read(&mut block[..size])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => left -= read as u64,
        }
    }
    Ok(())
}

pub fn measure(address: &str, token: &str) -> io::Result<Ceiling> {
    let open = |request: Request, block: usize| -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        prepare(&stream)?;
        let mut head = token.as_bytes().to_vec();
        head.push(request as u8);
        head.extend(TRANSFER.to_be_bytes());
        head.extend((block as u32).to_be_bytes());
        stream.write_all(&head)?;
        Ok(stream)
    };
    let upload = fastest(|block| {
        let mut stream = open(Request::Upload, block.len())?;
        time_transfers(|| {
            send(&mut stream, TRANSFER, block)?;
            stream.read_exact(&mut [0])
        })
    })?;
    let download = fastest(|block| {
        let mut stream = open(Request::Download, block.len())?;
        time_transfers(|| {
            stream.write_all(&[0])?;
            receive(&mut stream, TRANSFER, block)
        })
    })?;
    let trips = time_round_trips(open(Request::Echo, 1)?, |stream| stream.read_exact(&mut [0]))?;
    let polled = time_round_trips(open(Request::PollingEcho, 1)?, poll_byte)?;
    Ok(Ceiling {
        upload: TRANSFER as f64 / upload.shortest.as_secs_f64(),
        download: TRANSFER as f64 / download.shortest.as_secs_f64(),
        min_round_trip: trips[0].min(polled[0]).as_secs_f64(),
        median_round_trip: trips[ROUND_TRIPS / 2].as_secs_f64(),
        steadiness: upload.steadiness().min(download.steadiness()),
    })
}

/// The times of the connection with the shortest transfer, of one connection for each size of block.
fn fastest(mut time: impl FnMut(&mut [u8]) -> io::Result<TransferTimes>) -> io::Result<TransferTimes> {
    let times = BLOCKS.map(|size| time(&mut vec![0; size]));
    let times = times.into_iter().collect::<io::Result<Vec<_>>>()?;
    times.into_iter().min_by_key(|times| times.shortest).ok_or_else(|| io::Error::other("no transfer"))
}

/// Times round trips of one byte, from the shortest to the longest.
fn time_round_trips(
    mut stream: TcpStream,
    mut receive: impl FnMut(&mut TcpStream) -> io::Result<()>,
) -> io::Result<[Duration; ROUND_TRIPS]> {
    let mut trips = [Duration::ZERO; ROUND_TRIPS];
    for trip in &mut trips {
        let begin = Instant::now();
        stream.write_all(&[0])?;
        receive(&mut stream)?;
        *trip = begin.elapsed();
    }
    trips.sort_unstable();
    Ok(trips)
}

fn time_transfers(mut transfer: impl FnMut() -> io::Result<()>) -> io::Result<TransferTimes> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < MIN_TRANSFERS || begin.elapsed() < CONNECTION_TIME {
        let start = Instant::now();
        transfer()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(TransferTimes { shortest: times[0], median: times[times.len() / 2] })
}

impl TransferTimes {
    fn steadiness(&self) -> f64 {
        self.shortest.as_secs_f64() / self.median.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(token: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || serve(&listener, token));
        address
    }

    #[test]
    fn both_directions_and_round_trips_are_measured() {
        let ceiling = measure(&server("secret"), "secret").unwrap();
        assert!(ceiling.steadiness > 0.0 && ceiling.steadiness <= 1.0, "{ceiling:?}");
        assert!(ceiling.upload > 0.0 && ceiling.download > 0.0, "{ceiling:?}");
        assert!(ceiling.min_round_trip > 0.0 && ceiling.min_round_trip <= ceiling.median_round_trip, "{ceiling:?}");
    }

    #[test]
    fn sides_that_do_not_sleep_answer_on_one_cpu_too() {
        let stream = |address: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            prepare(&stream).unwrap();
            stream.write_all(&[b"secret".as_slice(), b"p", &[0; HEAD - 1]].concat()).unwrap();
            stream
        };
        let mut all = rustix::thread::sched_getaffinity(None).unwrap();
        let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
        all.clear();
        all.set(first);
        // This thread is one of the test alone, and its server inherits the CPU.
        rustix::thread::sched_setaffinity(None, &all).unwrap();
        let trips = time_round_trips(stream(&server("secret")), poll_byte).unwrap();
        assert!(trips[0] > Duration::ZERO && trips[0] < Duration::from_millis(100), "{:?}", trips[0]);
    }

    #[test]
    fn the_fastest_size_of_block_counts() {
        let mut sizes = Vec::new();
        let times = fastest(|block| {
            sizes.push(block.len());
            let shortest = Duration::from_micros(if block.len() == BLOCKS[2] { 500 } else { 2500 });
            Ok(TransferTimes { shortest, median: 2 * shortest })
        });
        assert_eq!((sizes.as_slice(), times.unwrap().shortest), (BLOCKS.as_slice(), Duration::from_micros(500)));
    }

    #[test]
    fn a_transfer_is_of_all_its_bytes_whatever_a_block_holds() {
        for size in [0_u32, 1, 4097, MAX_BLOCK as u32 + 1, u32::MAX] {
            let mut stream = TcpStream::connect(server("secret")).unwrap();
            let head = [b"secret".as_slice(), b"d", &10_001_u64.to_be_bytes(), &size.to_be_bytes(), &[0]].concat();
            stream.write_all(&head).unwrap();
            receive(&mut stream, 10_001, &mut [0; 100]).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
            assert!(stream.read(&mut [0]).is_err(), "more than the request, with blocks of {size}");
        }
    }

    #[test]
    fn a_stranger_gets_no_answer() {
        let error = measure(&server("secret"), "strang").unwrap_err();
        let kinds = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}
