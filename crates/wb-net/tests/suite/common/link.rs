//! Both ends of one link, without an engine.

use std::{
    io::{self, ErrorKind},
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use wb_net::{
    language::{Endpoint, Protocol},
    transport::{
        Transport,
        address::HostAddress,
        link::{Announcement, LinkConfig, LinkEnd, LinkRole},
        listener::SharedListeners,
    },
};

/// An end that does not block, on the loopback interface.
pub fn end(endpoint: &Endpoint, part: LinkRole, repeated: bool) -> io::Result<LinkEnd> {
    let doors = SharedListeners::new(None).expect("an event descriptor");
    // Shared doors take connections for as long as this is held: until the test's process ends.
    std::mem::forget(doors.clone());
    LinkEnd::prepare(&LinkConfig {
        endpoint,
        part,
        local: here(endpoint),
        repeated,
        strands: 1,
        blocking: false,
        receive_timeout: None,
        listeners: &doors,
    })
}

fn here(endpoint: &Endpoint) -> HostAddress {
    match endpoint.protocol {
        Protocol::Vsock => HostAddress::Vsock(1),
        _ => HostAddress::Ip(Ipv4Addr::LOCALHOST.into()),
    }
}

/// Opener and taker, which know each other; what the taker announces can be changed on its way.
pub fn link(
    endpoint: &Endpoint,
    repeated: bool,
    change: impl Fn(Announcement) -> Announcement,
) -> io::Result<(LinkEnd, LinkEnd)> {
    let mut opener = end(endpoint, LinkRole::Connector, repeated)?;
    let mut taker = end(endpoint, LinkRole::Acceptor, repeated)?;
    opener.set_peer(change(taker.announcement()), here(endpoint))?;
    taker.set_peer(opener.announcement(), here(endpoint))?;
    Ok((opener, taker))
}

pub type Made = io::Result<Box<dyn Transport>>;

/// One connection as both ends see it.
pub fn connect((opener, taker): &mut (LinkEnd, LinkEnd)) -> (Made, Made) {
    let mut one: Option<Made> = None;
    let mut other: Option<Made> = None;
    let (mut opening, mut taking) = (Some(opener.connect().expect("it can begin")), None);
    let began = Instant::now();
    while (one.is_none() || other.is_none()) && began.elapsed() < Duration::from_secs(2) {
        if let Some(transport) = opening.take() {
            go_on(transport, &mut opening, &mut one);
        }
        if other.is_none() && taking.is_none() {
            taking = taker.accept().ok();
        }
        if let Some(transport) = taking.take() {
            go_on(transport, &mut taking, &mut other);
        }
    }
    let missing = || Err(ErrorKind::TimedOut.into());
    (one.unwrap_or_else(missing), other.unwrap_or_else(missing))
}

fn go_on(mut transport: Box<dyn Transport>, doing: &mut Option<Box<dyn Transport>>, made: &mut Option<Made>) {
    match transport.establish() {
        Ok(()) => *made = Some(Ok(transport)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => *doing = Some(transport),
        Err(error) => *made = Some(Err(error)),
    }
}
