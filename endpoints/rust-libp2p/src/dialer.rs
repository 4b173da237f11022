//! Measures transfers.

use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use futures::StreamExt;
use libp2p::{Multiaddr, PeerId, multiaddr::Protocol, swarm::SwarmEvent};
use libp2p_stream::Control;
use tokio::{sync::oneshot, task::JoinHandle, time};

use crate::{
    Stack,
    node::Node,
    perf::{self, Amount, Counts},
    report::{self, Times},
};

/// Runs transfers over one connection.
pub(crate) async fn dial(
    stack: Stack,
    address: Multiaddr,
    amount: Amount,
    iterations: u32,
    timeout: Duration,
) -> Result<ExitCode, Box<dyn Error>> {
    report::start_clock();
    let Some(Protocol::P2p(peer)) = address.iter().last() else {
        return Err(format!("invalid address `{address}`: expected it to end in /p2p/PEER").into());
    };
    let mut node = Node::new(stack)?;
    let mut control = node.swarm.behaviour().new_control();
    let mut times = Times { dial: Some(Instant::now()), ..Times::default() };
    let connected = within(timeout, connect(&mut node, address)).await;
    let mut failure = None;
    let mut negotiated = None;
    match connected {
        Ok(remote) => {
            times.connect = Some(Instant::now());
            negotiated = Some(node.negotiated(&remote));
        }
        Err(error) => failure = Some(error),
    }
    let connection = Connection::spawn(node, peer);
    for i in 0..iterations {
        let mut counts = Counts::default();
        let mut iteration_times = times;
        let skipped = failure.clone();
        let error = match skipped {
            Some(error) => Some(error),
            None => {
                iteration_times.open = Some(Instant::now());
                let result = within(timeout, transfer(&mut control, peer, amount, &mut counts, i)).await;
                iteration_times.last = result.is_ok().then(Instant::now);
                // What a lazy negotiation proposes is settled when the listener has answered.
                if let Some(negotiated) = negotiated.take_if(|_| result.is_ok()) {
                    report::print_negotiated(negotiated);
                }
                result.err()
            }
        };
        report::print_iteration(i, &counts, iteration_times, error.as_deref());
        if failure.is_none() {
            failure = error.map(|error| format!("skipped after iteration {i}: {error}"));
        }
    }
    connection.close().await;
    Ok(if failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Connects; returns the address of the listener.
async fn connect(node: &mut Node, address: Multiaddr) -> Result<Multiaddr, String> {
    node.swarm.dial(address).map_err(|error| error.to_string())?;
    loop {
        match node.swarm.select_next_some().await {
            SwarmEvent::ConnectionEstablished { endpoint, .. } => return Ok(endpoint.get_remote_address().clone()),
            SwarmEvent::OutgoingConnectionError { error, .. } => return Err(error.to_string()),
            _ => {}
        }
    }
}

async fn transfer(
    control: &mut Control,
    peer: PeerId,
    amount: Amount,
    counts: &mut Counts,
    i: u32,
) -> Result<(), String> {
    let mut stream = control.open_stream(peer, perf::PROTOCOL).await.map_err(|error| error.to_string())?;
    let report = |counts: &Counts| report::print_progress(i, counts);
    perf::request(&mut stream, amount, counts, report).await.map_err(|error| error.to_string())
}

async fn within<T>(timeout: Duration, task: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    time::timeout(timeout, task).await.unwrap_or_else(|_| Err(format!("timed out after {} s", timeout.as_secs_f64())))
}

/// The task that drives the swarm while transfers run.
struct Connection {
    task: JoinHandle<()>,
    close: oneshot::Sender<()>,
}

impl Connection {
    fn spawn(mut node: Node, peer: PeerId) -> Self {
        let (close, mut closing) = oneshot::channel();
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = &mut closing => break,
                    _ = node.swarm.select_next_some() => {}
                }
            }
            if node.swarm.disconnect_peer_id(peer).is_ok() {
                while !matches!(node.swarm.select_next_some().await, SwarmEvent::ConnectionClosed { .. }) {}
            }
        });
        Self { task, close }
    }

    /// Closes the connection, so that the listener does not wait for a timeout.
    async fn close(self) {
        let _ = self.close.send(());
        let _ = time::timeout(Duration::from_secs(1), self.task).await;
    }
}
