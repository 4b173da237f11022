//! Helpers for both ends of one link, without an engine.

use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use wb_net::language::{Endpoint, Protocol};
use wb_net::transport::Transport;
use wb_net::transport::address::HostAddress;
use wb_net::transport::link::{Announcement, LinkConfig, LinkEnd, LinkRole};
use wb_net::transport::listener::SharedListeners;

/// Creates a non-blocking end on the loopback interface.
pub fn end(endpoint: &Endpoint, part: LinkRole, repeated: bool) -> io::Result<LinkEnd> {
    let listeners = SharedListeners::new(None).expect("an event descriptor");
    // Shared listeners accept connections as long as this is alive: until the test's process ends.
    std::mem::forget(listeners.clone());
    LinkEnd::prepare(&LinkConfig {
        endpoint,
        role: part,
        local: loopback(endpoint),
        repeated,
        strands: 1,
        blocking: false,
        receive_timeout: None,
        listeners: &listeners,
    })
}

fn loopback(endpoint: &Endpoint) -> HostAddress {
    match endpoint.protocol {
        Protocol::Vsock => HostAddress::Vsock(1),
        _ => HostAddress::Ip(Ipv4Addr::LOCALHOST.into()),
    }
}

/// Creates both ends and exchanges their addresses; `change` may modify the acceptor's announcement.
pub fn link(
    endpoint: &Endpoint,
    repeated: bool,
    change: impl Fn(Announcement) -> Announcement,
) -> io::Result<(LinkEnd, LinkEnd)> {
    let mut connector = end(endpoint, LinkRole::Connector, repeated)?;
    let mut acceptor = end(endpoint, LinkRole::Acceptor, repeated)?;
    connector.set_peer(change(acceptor.announcement()), loopback(endpoint))?;
    acceptor.set_peer(connector.announcement(), loopback(endpoint))?;
    Ok((connector, acceptor))
}

pub type ConnectResult = io::Result<Box<dyn Transport>>;

/// Opens one connection; returns its result at both ends.
pub fn connect((connector, acceptor): &mut (LinkEnd, LinkEnd)) -> (ConnectResult, ConnectResult) {
    let mut connected: Option<ConnectResult> = None;
    let mut accepted: Option<ConnectResult> = None;
    let (mut connecting, mut accepting) = (Some(connector.connect().expect("it can begin")), None);
    let began = Instant::now();
    while (connected.is_none() || accepted.is_none()) && began.elapsed() < Duration::from_secs(2) {
        if let Some(transport) = connecting.take() {
            establish(transport, &mut connecting, &mut connected);
        }
        if accepted.is_none() && accepting.is_none() {
            accepting = acceptor.accept().ok();
        }
        if let Some(transport) = accepting.take() {
            establish(transport, &mut accepting, &mut accepted);
        }
    }
    let missing = || Err(ErrorKind::TimedOut.into());
    (connected.unwrap_or_else(missing), accepted.unwrap_or_else(missing))
}

fn establish(
    mut transport: Box<dyn Transport>,
    pending: &mut Option<Box<dyn Transport>>,
    result: &mut Option<ConnectResult>,
) {
    match transport.establish() {
        Ok(()) => *result = Some(Ok(transport)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => *pending = Some(transport),
        Err(error) => *result = Some(Err(error)),
    }
}
