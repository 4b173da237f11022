//! Helpers for both ends of one link, without an engine.

use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wb_net::transport::Transport;
use wb_net::transport::address::HostAddress;
use wb_net::transport::cookie::{LinkKey, SessionKey};
use wb_net::transport::data_ports::{DataPorts, PortPolicy};
use wb_net::transport::link::{Announcement, LinkConfig, LinkEnd, LinkRole};
use wb_net_profile::{Endpoint, Protocol};

/// Creates a non-blocking end on the loopback interface.
pub fn open_end(endpoint: &Endpoint, role: LinkRole, repeated: bool, session: SessionKey) -> io::Result<LinkEnd> {
    let ports = DataPorts::new(PortPolicy::Any);
    // Ports are open as long as this is alive: until the test's process ends.
    std::mem::forget(ports.clone());
    LinkEnd::prepare(&LinkConfig {
        endpoint: &Arc::new(endpoint.clone()),
        role,
        local: loopback(endpoint),
        has_local: false,
        session,
        key: LinkKey { group: 0, flowop: 0, strand: 0 },
        repeated,
        defers_cookie: false,
        blocking: false,
        blocking_accept: false,
        receive_timeout: None,
        ports: &ports,
    })
}

fn loopback(endpoint: &Endpoint) -> HostAddress {
    match endpoint.protocol {
        Protocol::Vsock => HostAddress::Vsock(1),
        _ => HostAddress::ip(Ipv4Addr::LOCALHOST.into()),
    }
}

/// Creates both ends and sets up the link; `change` may modify the acceptor's announcement.
pub fn link(
    endpoint: &Endpoint,
    repeated: bool,
    change: impl Fn(Announcement) -> Announcement,
) -> io::Result<(LinkEnd, LinkEnd)> {
    let session = SessionKey::generate()?;
    let mut connector = open_end(endpoint, LinkRole::Connector, repeated, session)?;
    let mut acceptor = open_end(endpoint, LinkRole::Acceptor, repeated, session)?;
    let announcement = acceptor.announcement().expect("an acceptor has one");
    connector.set_peer(&change(announcement), loopback(endpoint), true)?;
    let began = Instant::now();
    let (mut connected, mut accepted) = (false, false);
    while !connected || !accepted {
        connected = connected || connector.continue_setup()?;
        accepted = acceptor.continue_setup()?;
        acceptor.maintain_setup();
        assert!(began.elapsed() < Duration::from_secs(5), "the link is not set up");
    }
    Ok((connector, acceptor))
}

pub type ConnectResult = io::Result<Box<dyn Transport>>;

/// Opens one connection; returns its result at both ends.
pub fn connect((connector, acceptor): &mut (LinkEnd, LinkEnd)) -> (ConnectResult, ConnectResult) {
    let mut connected: Option<ConnectResult> = None;
    let mut accepted: Option<ConnectResult> = None;
    let (mut connecting, mut accepting) = (Some(connector.connect(1).expect("it can begin")), None);
    let began = Instant::now();
    while (connected.is_none() || accepted.is_none()) && began.elapsed() < Duration::from_secs(2) {
        if let Some(transport) = connecting.take() {
            establish(transport, &mut connecting, &mut connected);
        }
        if accepted.is_none() && accepting.is_none() {
            accepting = acceptor.accept().ok().map(|(transport, _)| transport);
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

/// The address on the loopback interface that an acceptor announces.
pub fn announced_port(acceptor: &LinkEnd) -> std::net::SocketAddr {
    let announcement = acceptor.announcement().expect("an acceptor has one");
    (Ipv4Addr::LOCALHOST, announcement.address.port()).into()
}

/// Waits until an acceptor has rejected this many connections.
pub fn wait_for_rejected(acceptor: &mut LinkEnd, expected: u64) {
    let began = Instant::now();
    let mut rejected = 0;
    while rejected < expected {
        rejected += acceptor.take_rejected();
        assert!(began.elapsed() < Duration::from_secs(5), "{rejected} of {expected} rejected");
    }
    assert_eq!(rejected, expected);
}
