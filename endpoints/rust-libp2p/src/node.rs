//! The libp2p node of either side: one transport, one security layer, one multiplexer.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{AsyncRead, AsyncWrite};
use libp2p::{
    Multiaddr, PeerId, Swarm,
    core::{
        Transport as _,
        muxing::StreamMuxerBox,
        transport::Boxed,
        upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo, Version},
    },
    identity::Keypair,
    multiaddr::Protocol,
    noise, quic, swarm, tcp, tls, websocket, yamux,
};
use libp2p_mplex as mplex;
use serde_json::{Map, Value};

use crate::{Muxer, Security, Stack, Transport};

/// A swarm, and what its last connection negotiated.
pub(crate) struct Node {
    pub(crate) swarm: Swarm<libp2p_stream::Behaviour>,
    observed: Observed,
}

impl Node {
    /// Creates a node with a new identity.
    pub(crate) fn new(stack: Stack) -> Result<Self, Box<dyn Error>> {
        initialise_randomness(stack)?;
        let key = Keypair::generate_ed25519();
        let observed = Observed::default();
        let transport = transport(&key, stack, &observed)?;
        let config = swarm::Config::with_tokio_executor().with_idle_connection_timeout(Duration::from_secs(24 * 3600));
        let swarm = Swarm::new(transport, libp2p_stream::Behaviour::new(), key.public().to_peer_id(), config);
        Ok(Self { swarm, observed })
    }

    /// The protocols of the connection that was just established at `address`, in the names of the flags.
    pub(crate) fn negotiated(&self, address: &Multiaddr) -> Value {
        let mut negotiated = Map::new();
        negotiated.insert("transport".into(), transport_of(address).into());
        for (layer, protocol) in self.observed.lock().iter() {
            negotiated.insert((*layer).into(), protocol.clone().into());
        }
        negotiated.into()
    }
}

fn transport(
    key: &Keypair,
    stack: Stack,
    observed: &Observed,
) -> Result<Boxed<(PeerId, StreamMuxerBox)>, Box<dyn Error>> {
    let tcp = || tcp::tokio::Transport::new(tcp::Config::default());
    match stack.transport {
        Transport::QuicV1 => Ok(quic::tokio::Transport::new(quic::Config::new(key))
            .map(|(peer, connection), _| (peer, StreamMuxerBox::new(connection)))
            .boxed()),
        Transport::Tcp => upgrade(tcp(), key, stack, observed),
        Transport::Ws => upgrade(websocket::Config::new(tcp()), key, stack, observed),
    }
}

/// Adds the selected security layer and multiplexer to a transport, as libp2p's own builder does.
fn upgrade<T>(
    transport: T,
    key: &Keypair,
    stack: Stack,
    observed: &Observed,
) -> Result<Boxed<(PeerId, StreamMuxerBox)>, Box<dyn Error>>
where
    T: libp2p::Transport + Send + Unpin + 'static,
    T::Output: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T::Error: Send + Sync + 'static,
    T::Dial: Send + 'static,
    T::ListenerUpgrade: Send + 'static,
{
    let security = stack.security.ok_or("--security is required with this transport")?;
    let muxer = stack.muxer.ok_or("--muxer is required with this transport")?;
    let noise = || Ok::<_, noise::Error>(observed.layer("security", noise::Config::new(key)?));
    let tls = || Ok::<_, Box<dyn Error>>(observed.layer("security", tls::Config::new(key)?));
    let yamux = observed.layer("muxer", yamux::Config::default());
    let mplex = observed.layer("muxer", mplex_config());
    let builder = transport.upgrade(Version::V1Lazy);
    Ok(match (security, muxer) {
        (Security::Noise, Muxer::Yamux) => builder.authenticate(noise()?).multiplex(yamux).boxed(),
        (Security::Noise, Muxer::Mplex) => builder.authenticate(noise()?).multiplex(mplex).boxed(),
        (Security::Tls, Muxer::Yamux) => builder.authenticate(tls()?).multiplex(yamux).boxed(),
        (Security::Tls, Muxer::Mplex) => builder.authenticate(tls()?).multiplex(mplex).boxed(),
    })
}

/// The cryptography behind TLS and QUIC takes tens of milliseconds to seed its generator of random numbers when the first
/// one is drawn, once per process: that is not part of the first handshake.
fn initialise_randomness(stack: Stack) -> Result<(), Box<dyn Error>> {
    if matches!(stack.transport, Transport::QuicV1) || matches!(stack.security, Some(Security::Tls)) {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.secure_random.fill(&mut [0; 32]).map_err(|error| format!("no random numbers: {error:?}"))?;
    }
    Ok(())
}

/// mplex has no flow control: a full buffer must block its connection, where the default would reset the stream.
fn mplex_config() -> mplex::Config {
    let mut config = mplex::Config::default();
    config.set_max_buffer_behaviour(mplex::MaxBufferBehaviour::Block);
    config
}

fn transport_of(address: &Multiaddr) -> &'static str {
    let mut transport = "unknown";
    for protocol in address.iter() {
        match protocol {
            Protocol::Tcp(_) => transport = "tcp",
            Protocol::Ws(_) => transport = "ws",
            Protocol::QuicV1 => transport = "quic-v1",
            _ => {}
        }
    }
    transport
}

/// The protocols of the last upgrades, by layer.
#[derive(Clone, Default)]
struct Observed(Arc<Mutex<Vec<(&'static str, String)>>>);

impl Observed {
    fn layer<U>(&self, layer: &'static str, upgrade: U) -> ObservedUpgrade<U> {
        ObservedUpgrade { upgrade, layer, observed: self.clone() }
    }

    fn record(&self, layer: &'static str, protocol: &str) {
        // `/tls/1.0.0` is `tls` in the flags.
        let name = protocol.split('/').nth(1).unwrap_or(protocol).to_owned();
        let mut layers = self.lock();
        layers.retain(|(other, _)| *other != layer);
        layers.push((layer, name));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(&'static str, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An upgrade that records which of its protocols was negotiated.
#[derive(Clone)]
struct ObservedUpgrade<U> {
    upgrade: U,
    layer: &'static str,
    observed: Observed,
}

impl<U: UpgradeInfo> UpgradeInfo for ObservedUpgrade<U> {
    type Info = U::Info;
    type InfoIter = U::InfoIter;

    fn protocol_info(&self) -> Self::InfoIter {
        self.upgrade.protocol_info()
    }
}

impl<C, U: InboundConnectionUpgrade<C>> InboundConnectionUpgrade<C> for ObservedUpgrade<U> {
    type Output = U::Output;
    type Error = U::Error;
    type Future = U::Future;

    fn upgrade_inbound(self, socket: C, info: Self::Info) -> Self::Future {
        self.observed.record(self.layer, info.as_ref());
        self.upgrade.upgrade_inbound(socket, info)
    }
}

impl<C, U: OutboundConnectionUpgrade<C>> OutboundConnectionUpgrade<C> for ObservedUpgrade<U> {
    type Output = U::Output;
    type Error = U::Error;
    type Future = U::Future;

    fn upgrade_outbound(self, socket: C, info: Self::Info) -> Self::Future {
        self.observed.record(self.layer, info.as_ref());
        self.upgrade.upgrade_outbound(socket, info)
    }
}
