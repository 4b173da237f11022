//! From a connection to a channel: TLS, then the proofs, then the hellos.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::channel::{Channel, Ends, Frames};
use super::error::{ControlError, Role};
use super::fingerprint::Fingerprint;
use super::hello::{self, Hello};
use super::limits::{FRAME_OF_STRANGERS, Limits};
use super::proof::{self, Binding, EXPORTER, Meeting};
use super::tls::ALPN;
use super::trust::Credentials;

/// How one side goes through handshakes
#[derive(Debug, Clone)]
pub(super) enum Side {
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

impl Side {
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
    side: Side,
    credentials: &Credentials,
    limits: &Limits,
) -> Result<Channel<S>, ControlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let peer = addresses.peer;
    let steps = async {
        let role = side.role();
        let tls = encrypt(stream, peer, side).await;
        let tls = tls.map_err(|error| ControlError::tls(peer, role, credentials.identity.fingerprint(), error))?;
        let meeting = meet(&tls, role, peer)?;
        let mut frames = Frames::new(tls, FRAME_OF_STRANGERS);
        proof::authenticate(&mut frames, &meeting, credentials).await?;
        let hello = hello::exchange(&mut frames, peer, Hello::ours()).await?;
        let ends = Ends { local: addresses.local, peer, key: meeting.presented, hello };
        Ok(Channel::new(frames, ends, limits.frame))
    };
    let late = |_| ControlError::Slow { peer, within: limits.handshake };
    timeout(limits.handshake, steps).await.map_err(late)?
}

pub(super) async fn encrypt<S>(stream: S, peer: SocketAddr, side: Side) -> std::io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match side {
        Side::Client(config) => {
            // Only a form to fill in: keys are compared, names are not.
            let name = ServerName::IpAddress(peer.ip().into());
            TlsConnector::from(config).connect(name, stream).await.map(TlsStream::from)
        }
        Side::Server(config) => TlsAcceptor::from(config).accept(stream).await.map(TlsStream::from),
    }
}

pub(super) fn meet<S>(tls: &TlsStream<S>, role: Role, peer: SocketAddr) -> Result<Meeting, ControlError> {
    let not_ours = |reason: &str| ControlError::NotOurs { peer, reason: reason.into() };
    let (_, session) = tls.get_ref();
    if session.alpn_protocol() != Some(ALPN) {
        return Err(not_ours("it speaks TLS, and another protocol inside"));
    }
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let certificate = certificate.ok_or_else(|| not_ours("it shows no key"))?;
    let presented = Fingerprint::of_certificate(certificate).map_err(|error| not_ours(&error.to_string()))?;
    let binding = match tls {
        TlsStream::Client(tls) => tls.get_ref().1.export_keying_material(Binding::default(), EXPORTER, None),
        TlsStream::Server(tls) => tls.get_ref().1.export_keying_material(Binding::default(), EXPORTER, None),
    };
    Ok(Meeting { role, peer, presented, binding: binding.map_err(ControlError::Tls)? })
}
