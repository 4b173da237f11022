//! What every control connection asks of TCP.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A peer that is gone without a word is noticed after 15 s of silence and 3 questions 5 s apart
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5)).with_retries(3);

pub(super) fn configure(stream: &TcpStream) -> io::Result<()> {
    // Control messages are short and wanted now.
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&KEEPALIVE)
}
