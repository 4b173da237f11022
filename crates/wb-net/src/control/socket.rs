//! TCP options of every control connection.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A peer that vanishes silently is noticed after 15 s of silence and 3 probes 5 s apart
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5)).with_retries(3);

pub(super) fn configure(stream: &TcpStream) -> io::Result<()> {
    // Control messages are short and urgent.
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&KEEPALIVE)
}
