//! From a connection to a channel: TLS, then the proofs, then the hellos.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::channel::{Channel, ChannelInfo, FramedTls};
use super::error::{ControlError, Role};
use super::fingerprint::Fingerprint;
use super::hello::{self, ControlHello};
use super::limits::{ControlLimits, UNAUTHENTICATED_FRAME_LIMIT};
use super::proof::{self, AuthContext, Binding, EXPORTER_LABEL};
use super::tls::ALPN;
use super::trust::Credentials;

/// How one side goes through handshakes
#[derive(Debug, Clone)]
pub(super) enum HandshakeConfig {
    /// As the one that connected
    Client(Arc<ClientConfig>),
    /// As the one that listens
    Server(Arc<ServerConfig>),
}

/// Our address and the peer's
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

/// The channel over this stream, once both sides have proven themselves within the limit
pub(super) async fn perform<S>(
    stream: S,
    addresses: Addresses,
    side: HandshakeConfig,
    credentials: &Credentials,
    limits: &ControlLimits,
) -> Result<Channel<S>, ControlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let peer = addresses.peer;
    let steps = async {
        let role = side.role();
        let tls = encrypt(stream, peer, side).await;
        let tls =
            tls.map_err(|error| ControlError::from_tls_error(peer, role, credentials.identity.fingerprint(), error))?;
        let meeting = auth_context(&tls, role, peer)?;
        let mut frames = FramedTls::new(tls, UNAUTHENTICATED_FRAME_LIMIT);
        proof::authenticate(&mut frames, &meeting, credentials).await?;
        let hello = hello::exchange(&mut frames, peer, ControlHello::local()).await?;
        let ends = ChannelInfo { local: addresses.local, peer, key: meeting.peer_key, hello };
        Ok(Channel::new(frames, ends, limits.max_frame))
    };
    let late = |_| ControlError::HandshakeTimeout { peer, within: limits.handshake_timeout };
    timeout(limits.handshake_timeout, steps).await.map_err(late)?
}

pub(super) async fn encrypt<S>(stream: S, peer: SocketAddr, side: HandshakeConfig) -> std::io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match side {
        HandshakeConfig::Client(config) => {
            // Only a form to fill in: keys are compared, names are not.
            let name = ServerName::IpAddress(peer.ip().into());
            TlsConnector::from(config).connect(name, stream).await.map(TlsStream::from)
        }
        HandshakeConfig::Server(config) => TlsAcceptor::from(config).accept(stream).await.map(TlsStream::from),
    }
}

pub(super) fn auth_context<S>(tls: &TlsStream<S>, role: Role, peer: SocketAddr) -> Result<AuthContext, ControlError> {
    let not_ours = |reason: &str| ControlError::UnknownProtocol { peer, reason: reason.into() };
    let (_, session) = tls.get_ref();
    if session.alpn_protocol() != Some(ALPN) {
        return Err(not_ours("it speaks TLS, and another protocol inside"));
    }
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let certificate = certificate.ok_or_else(|| not_ours("it shows no key"))?;
    let presented = Fingerprint::of_certificate(certificate).map_err(|error| not_ours(&error.to_string()))?;
    let binding = match tls {
        TlsStream::Client(tls) => tls.get_ref().1.export_keying_material(Binding::default(), EXPORTER_LABEL, None),
        TlsStream::Server(tls) => tls.get_ref().1.export_keying_material(Binding::default(), EXPORTER_LABEL, None),
    };
    Ok(AuthContext { role, peer, peer_key: presented, binding: binding.map_err(ControlError::Tls)? })
}
