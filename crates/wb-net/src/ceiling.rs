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

/// Size of each write and read.
const BLOCK: usize = 64 << 10;
/// Bytes of one transfer: so few that some transfers are not interrupted even on a busy machine. All are made over one
/// connection, whose windows have grown with the first.
const TRANSFER: u64 = 4 << 20;
/// Largest transfer that a server takes part in.
const MAX_TRANSFER: u64 = 1 << 32;
/// Transfers in each direction: at least this many, and more until this time has passed; the fastest counts.
const MIN_TRANSFERS: usize = 8;
const DIRECTION_TIME: Duration = Duration::from_millis(80);
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
    /// An echo whose sides look for data again and again, and do not sleep until it comes.
    PollingEcho = b'p',
}

/// The best that a TCP connection did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ceiling {
    /// Bytes per second from the measuring side to the other.
    pub upload: f64,
    /// Bytes per second from the other side.
    pub download: f64,
    /// The shortest round trip of one byte, in seconds, of sides that sleep until it comes and of such that do not: waking
    /// up may take longer than all the rest.
    pub min_round_trip: f64,
    /// The median round trip of sides that sleep, in seconds.
    pub median_round_trip: f64,
    /// The median rate as a share of the best: little on a busy machine, where the best may be too low as well.
    pub steadiness: f64,
}

/// Times of the transfers in one direction.
struct TransferTimes {
    shortest: Duration,
    median: Duration,
}

/// Serves connections, each on a thread of its own, until the process ends. A connection ends with its peer.
///
/// # Errors
/// If a connection cannot be accepted.
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
    let mut request = [0; 9];
    stream.read_exact(&mut request)?;
    let bytes = u64::from_be_bytes(request[1..].try_into().map_err(io::Error::other)?).min(MAX_TRANSFER);
    match request[0] {
        b'u' => loop {
            receive(&mut stream, bytes)?;
            stream.write_all(&[0])?;
        },
        b'd' => loop {
            receive(&mut stream, 1)?;
            send(&mut stream, bytes)?;
        },
        b'p' => loop {
            poll_byte(&mut stream)?;
            stream.write_all(&[0])?;
        },
        _ => loop {
            receive(&mut stream, 1)?;
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

fn send(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let block = [0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        let size = left.min(BLOCK as u64) as usize;
        stream.write_all(&block[..size])?;
        left -= size as u64;
    }
    Ok(())
}

fn receive(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let mut block = [0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        let size = left.min(BLOCK as u64) as usize;
        match stream.read(&mut block[..size])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => left -= read as u64,
        }
    }
    Ok(())
}

/// Measures with the server at this address.
///
/// # Errors
/// If the server cannot be reached, or ends early.
pub fn measure(address: &str, token: &str) -> io::Result<Ceiling> {
    let open = |request: Request, bytes: u64| -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        prepare(&stream)?;
        let mut head = token.as_bytes().to_vec();
        head.push(request as u8);
        head.extend(bytes.to_be_bytes());
        stream.write_all(&head)?;
        Ok(stream)
    };
    let mut stream = open(Request::Upload, TRANSFER)?;
    let upload = time_transfers(|| {
        send(&mut stream, TRANSFER)?;
        receive(&mut stream, 1)
    })?;
    let mut stream = open(Request::Download, TRANSFER)?;
    let download = time_transfers(|| {
        stream.write_all(&[0])?;
        receive(&mut stream, TRANSFER)
    })?;
    let trips = time_round_trips(open(Request::Echo, 0)?, |stream| receive(stream, 1))?;
    let polled = time_round_trips(open(Request::PollingEcho, 0)?, poll_byte)?;
    Ok(Ceiling {
        upload: TRANSFER as f64 / upload.shortest.as_secs_f64(),
        download: TRANSFER as f64 / download.shortest.as_secs_f64(),
        min_round_trip: trips[0].min(polled[0]).as_secs_f64(),
        median_round_trip: trips[ROUND_TRIPS / 2].as_secs_f64(),
        steadiness: upload.steadiness().min(download.steadiness()),
    })
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

/// Times several transfers.
fn time_transfers(mut transfer: impl FnMut() -> io::Result<()>) -> io::Result<TransferTimes> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < MIN_TRANSFERS || begin.elapsed() < DIRECTION_TIME {
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
            stream.write_all(&[b"secret".as_slice(), b"p", &[0; 8]].concat()).unwrap();
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
    fn a_stranger_gets_no_answer() {
        let error = measure(&server("secret"), "strang").unwrap_err();
        let kinds = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}
