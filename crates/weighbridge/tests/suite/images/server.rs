//! An HTTP server of one file, with configurable misbehaviour.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How the server responds to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Sends what is requested.
    Normal,
    /// Closes the connection after this many bytes.
    Disconnect(usize),
    /// Stalls after this many bytes.
    Stall(usize),
    /// Sends the whole file whatever range is requested.
    NoRanges,
    Status(u16),
    AnnouncedLength(u64),
}

/// A server that runs until the test process ends.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    content: Vec<u8>,
    /// Behaviour for the next requests; the last one is repeated.
    manners: Vec<Behaviour>,
    /// First requested byte of each request.
    requested_offsets: Vec<usize>,
}

impl Server {
    pub(crate) fn new(content: &[u8], manners: &[Behaviour]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { content: content.to_vec(), manners: manners.to_vec(), requested_offsets: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let served = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                // Some tests close the connection, so errors are expected.
                std::thread::spawn(move || drop(answer(stream, &served)));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/images/disk.img", self.address)
    }

    /// First requested byte of each request, in order.
    pub(crate) fn requested_offsets(&self) -> Vec<usize> {
        self.state.lock().unwrap().requested_offsets.clone()
    }
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let from = range_start(&stream)?;
    let (content, manner) = {
        let mut state = state.lock().unwrap();
        state.requested_offsets.push(from);
        let manner = if state.manners.len() > 1 { state.manners.remove(0) } else { state.manners[0] };
        (state.content.clone(), manner)
    };
    let from = if manner == Behaviour::NoRanges { 0 } else { from };
    let (status, length) = match manner {
        Behaviour::Status(status) => (status, 0),
        Behaviour::AnnouncedLength(length) => (200, length),
        _ => (if from > 0 { 206 } else { 200 }, (content.len() - from) as u64),
    };
    let range = format!("content-range: bytes {from}-{}/{}\r\n", content.len() - 1, content.len());
    let range = if status == 206 { &range } else { "" };
    write!(stream, "HTTP/1.1 {status} As asked\r\ncontent-length: {length}\r\nconnection: close\r\n{range}\r\n")?;
    let body = match manner {
        Behaviour::Status(_) => &[],
        Behaviour::Disconnect(most) | Behaviour::Stall(most) => &content[from..content.len().min(from + most)],
        _ => &content[from..],
    };
    stream.write_all(body)?;
    if let Behaviour::Stall(_) = manner {
        // Until the client closes the connection.
        let mut reader = BufReader::new(stream);
        while reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty()) {
            reader.consume(1);
        }
    }
    Ok(())
}

/// First byte that a request asks for.
fn range_start(stream: &TcpStream) -> std::io::Result<usize> {
    let mut from = 0;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap();
        }
    }
    Ok(from)
}
