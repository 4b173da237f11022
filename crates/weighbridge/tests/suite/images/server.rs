//! A server of one file, which does wrong what it is told to do wrong.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What it does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Gives what is asked for.
    Well,
    /// Hangs up after so many bytes.
    Cuts(usize),
    /// Says nothing more after so many bytes.
    Stalls(usize),
    /// Gives all of it whatever part is asked for.
    KnowsNoParts,
    /// Answers with this status.
    Refuses(u16),
    /// Says that there is so much of it.
    Promises(u64),
}

/// Serves until the process of the test ends.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    content: Vec<u8>,
    /// The manner of the next requests; the last one stays.
    manners: Vec<Manner>,
    /// From which byte each request asked.
    asked: Vec<usize>,
}

impl Server {
    pub(crate) fn new(content: &[u8], manners: &[Manner]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { content: content.to_vec(), manners: manners.to_vec(), asked: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let served = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                // A client that hangs up is what some tests are about.
                std::thread::spawn(move || drop(answer(stream, &served)));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/images/disk.img", self.address)
    }

    /// From which byte each request asked, in order.
    pub(crate) fn asked(&self) -> Vec<usize> {
        self.state.lock().unwrap().asked.clone()
    }
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let from = asked_from(&stream)?;
    let (content, manner) = {
        let mut state = state.lock().unwrap();
        state.asked.push(from);
        let manner = if state.manners.len() > 1 { state.manners.remove(0) } else { state.manners[0] };
        (state.content.clone(), manner)
    };
    let from = if manner == Manner::KnowsNoParts { 0 } else { from };
    let (status, length) = match manner {
        Manner::Refuses(status) => (status, 0),
        Manner::Promises(length) => (200, length),
        _ => (if from > 0 { 206 } else { 200 }, (content.len() - from) as u64),
    };
    let range = format!("content-range: bytes {from}-{}/{}\r\n", content.len() - 1, content.len());
    let range = if status == 206 { &range } else { "" };
    write!(stream, "HTTP/1.1 {status} As asked\r\ncontent-length: {length}\r\nconnection: close\r\n{range}\r\n")?;
    let body = match manner {
        Manner::Refuses(_) => &[],
        Manner::Cuts(most) | Manner::Stalls(most) => &content[from..content.len().min(from + most)],
        _ => &content[from..],
    };
    stream.write_all(body)?;
    if let Manner::Stalls(_) = manner {
        // Until the other side has had enough.
        let mut reader = BufReader::new(stream);
        while reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty()) {
            reader.consume(1);
        }
    }
    Ok(())
}

/// From which byte a request asks.
fn asked_from(stream: &TcpStream) -> std::io::Result<usize> {
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
