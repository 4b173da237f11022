//! Serves transfers.

use std::{error::Error, net::IpAddr, process::ExitCode};

use futures::StreamExt;
use libp2p::{Multiaddr, core::ConnectedPoint, multiaddr::Protocol, swarm::SwarmEvent};
use libp2p_stream::IncomingStreams;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    Stack, Transport,
    node::Node,
    perf::{self, Counts},
    report,
};

/// Serves transfers until SIGTERM.
pub(crate) async fn listen(stack: Stack, host: IpAddr, port: u16) -> Result<ExitCode, Box<dyn Error>> {
    let mut node = Node::new(stack)?;
    let incoming = node.swarm.behaviour().new_control().accept(perf::PROTOCOL).map_err(|error| error.to_string())?;
    tokio::spawn(serve(incoming));
    node.swarm.listen_on(address(stack.transport, host, port))?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut listening = false;
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(ExitCode::SUCCESS),
            event = node.swarm.select_next_some() => match event {
                SwarmEvent::NewListenAddr { address, .. } if !listening => {
                    listening = true;
                    // An address per interface is reported for 0.0.0.0.
                    let address = address.replace(0, |_| Some(host.into())).unwrap_or(address);
                    report::print_listening(&address.with(Protocol::P2p(*node.swarm.local_peer_id())).to_string());
                }
                SwarmEvent::ConnectionEstablished { endpoint: ConnectedPoint::Listener { local_addr, .. }, .. } => {
                    report::print_negotiated(node.negotiated(&local_addr));
                }
                SwarmEvent::IncomingConnectionError { error, .. } => eprintln!("incoming connection: {error}"),
                SwarmEvent::ListenerError { error, .. } => eprintln!("listener: {error}"),
                SwarmEvent::ListenerClosed { reason, .. } => {
                    reason?;
                    return Err("the listener was closed".into());
                }
                _ => {}
            }
        }
    }
}

fn address(transport: Transport, host: IpAddr, port: u16) -> Multiaddr {
    let host = Multiaddr::from(host);
    match transport {
        Transport::Tcp => host.with(Protocol::Tcp(port)),
        Transport::Ws => host.with(Protocol::Tcp(port)).with(Protocol::Ws("/".into())),
        Transport::QuicV1 => host.with(Protocol::Udp(port)).with(Protocol::QuicV1),
    }
}

async fn serve(mut incoming: IncomingStreams) {
    while let Some((_, mut stream)) = incoming.next().await {
        tokio::spawn(async move {
            let mut counts = Counts::default();
            let result = perf::answer(&mut stream, &mut counts).await;
            report::print_served(&counts, result.err().map(|error| error.to_string()).as_deref());
        });
    }
}
