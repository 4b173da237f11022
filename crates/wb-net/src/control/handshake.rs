//! The handshake, from a connection to a channel: TLS, then mutual proofs, then hellos.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::channel::{Channel, ChannelInfo, FramedTls};
use super::display::excerpt;
use super::error::{ControlError, Role};
use super::fingerprint::Fingerprint;
use super::foreign_peer::{FirstBytes, RecordedStream};
use super::hello::ControlHello;
use super::limits::{ControlLimits, UNAUTHENTICATED_FRAME_LIMIT};
use super::proof::{self, AuthContext, Binding, EXPORTER_LABEL};
use super::tls::ALPN;
use super::trust::Credentials;

#[derive(Debug, Clone)]
pub(super) enum HandshakeConfig {
    Client(Arc<ClientConfig>),
    Server(Arc<ServerConfig>),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
}

impl HandshakeConfig {
    fn role(&self) -> Role {
        match self {
            Self::Client(_) => Role::Client,
            Self::Server(_) => Role::Server,
        }
    }
}

/// Returns a channel over this stream, once both sides have proven themselves within the time limit
pub(super) async fn perform(
    stream: TcpStream,
    addresses: Addresses,
    config: HandshakeConfig,
    credentials: &Credentials,
    limits: &ControlLimits,
) -> Result<Channel, ControlError> {
    let peer = addresses.peer;
    let role = config.role();
    let first = FirstBytes::default();
    let steps = async {
        let tls = encrypt(RecordedStream::new(stream, first.clone()), peer, config).await;
        let tls =
            tls.map_err(|error| ControlError::from_tls_error(peer, role, credentials.identity.fingerprint(), error))?;
        let context = auth_context(&tls, role, peer)?;
        let mut frames = FramedTls::new(tls, UNAUTHENTICATED_FRAME_LIMIT);
        proof::authenticate(&mut frames, &context, credentials).await?;
        let hello = exchange_hellos(&mut frames, peer, ControlHello::local()).await?;
        let info = ChannelInfo { local: addresses.local, peer, key: context.peer_key, hello };
        Ok(Channel::new(frames, info, limits.max_frame))
    };
    let timed_out = |_| ControlError::HandshakeTimeout { peer, within: limits.handshake_timeout };
    let result = timeout(limits.handshake_timeout, steps).await.map_err(timed_out).flatten();
    result.map_err(|error| match first.program(role.other()) {
        Some(program) => ControlError::ForeignPeer { peer, peer_role: role.other(), program },
        None => error,
    })
}

pub(super) async fn encrypt(
    stream: RecordedStream,
    peer: SocketAddr,
    config: HandshakeConfig,
) -> std::io::Result<TlsStream<RecordedStream>> {
    match config {
        HandshakeConfig::Client(config) => {
            // Required by the API and not used: keys are compared, names are not.
            let name = ServerName::IpAddress(peer.ip().into());
            TlsConnector::from(config).connect(name, stream).await.map(TlsStream::from)
        }
        HandshakeConfig::Server(config) => TlsAcceptor::from(config).accept(stream).await.map(TlsStream::from),
    }
}

pub(super) fn auth_context(
    tls: &TlsStream<RecordedStream>,
    role: Role,
    peer: SocketAddr,
) -> Result<AuthContext, ControlError> {
    let unknown_protocol = |reason: &str| ControlError::UnknownProtocol { peer, reason: reason.into() };
    let (_, session) = tls.get_ref();
    if session.alpn_protocol() != Some(ALPN) {
        return Err(unknown_protocol("it uses TLS with another application protocol"));
    }
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let certificate = certificate.ok_or_else(|| unknown_protocol("it presented no certificate"))?;
    let presented = Fingerprint::of_certificate(certificate).map_err(|error| unknown_protocol(&error.to_string()))?;
    let binding = match tls {
        TlsStream::Client(tls) => tls.get_ref().1.export_keying_material(Binding::default(), EXPORTER_LABEL, None),
        TlsStream::Server(tls) => tls.get_ref().1.export_keying_material(Binding::default(), EXPORTER_LABEL, None),
    };
    Ok(AuthContext { role, peer, peer_key: presented, binding: binding.map_err(ControlError::Tls)? })
}

/// Sends the local hello and receives the peer's; both sides send first, so that both can report both versions
pub(super) async fn exchange_hellos(
    frames: &mut FramedTls,
    peer: SocketAddr,
    local_hello: ControlHello,
) -> Result<ControlHello, ControlError> {
    frames.send(&local_hello).await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    let mut peer_hello: ControlHello =
        frames.expect().await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    peer_hello.program = excerpt(&peer_hello.program);
    if peer_hello.protocol == local_hello.protocol {
        Ok(peer_hello)
    } else {
        Err(ControlError::VersionMismatch { peer, local_hello, peer_hello })
    }
}
