//! Connections, and payload on them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub const BLOCK: [u8; 65536] = [0; 65536];

/// A limit of the rate of a transfer.
pub struct Pace {
    begin: Instant,
    /// Bytes per second; none: unlimited.
    rate: Option<f64>,
}

impl Pace {
    pub fn new(rate: Option<f64>) -> Self {
        Self { begin: Instant::now(), rate }
    }

    /// Waits until so many bytes may have been transferred.
    fn wait(&self, bytes: u64) {
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(bytes as f64 / rate);
            sleep(due.saturating_sub(self.begin.elapsed()));
        }
    }
}

/// A connection.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// An abstract name, which no file remains of.
pub fn unix_address(number: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weighbridge-endpoint-{number}"))
}

impl Stream {
    /// Connects to `HOST:PORT` or `unix:NUMBER`.
    pub fn connect(address: &str) -> io::Result<Self> {
        match address.strip_prefix("unix:") {
            Some(number) => {
                let number = number.parse().map_err(io::Error::other)?;
                Ok(Self::Unix(UnixStream::connect_addr(&unix_address(number)?)?))
            }
            None => Ok(Self::Tcp(TcpStream::connect(address)?)),
        }
    }

    pub fn close_for_writing(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    pub fn send(&mut self, count: u64, pace: &Pace) -> io::Result<u64> {
        let mut left = count;
        while left > 0 {
            let length = left.min(BLOCK.len() as u64);
            self.write_all(&BLOCK[..length as usize])?;
            left -= length;
            pace.wait(count - left);
        }
        Ok(count)
    }

    /// Sends until the peer takes no more, and counts.
    pub fn send_until_refused(&mut self) -> u64 {
        let mut count = 0;
        while let Ok(length) = self.write(&BLOCK) {
            count += length as u64;
        }
        count
    }

    /// Reads to the end, and counts.
    pub fn receive(&mut self, pace: &Pace) -> io::Result<u64> {
        let mut buffer = vec![0; BLOCK.len()];
        let mut count = 0;
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(count),
                length => count += length as u64,
            }
            pace.wait(count);
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error as JSON.
pub fn json_text(error: &io::Error) -> String {
    format!("\"{}\"", error.to_string().replace(['"', '\\'], "'"))
}

/// Ends this process without a chance to do anything about it.
pub fn kill_self() -> io::Result<()> {
    Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status()?;
    sleep(Duration::from_secs(60));
    Ok(())
}
