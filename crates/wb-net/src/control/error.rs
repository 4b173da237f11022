//! Errors of a control connection, as shown to the user.

use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

use rustls::{AlertDescription, CertificateError};

use super::display::{excerpt, seconds};
use super::fingerprint::Fingerprint;
use super::foreign_peer::ForeignProgram;
use super::frame::FrameError;
use super::hello::ControlHello;
use super::tls::UnpinnedKey;

/// The role of one side of a connection
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

impl Role {
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// Why a control connection could not be established, or failed
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("cannot connect to {addr}: connection refused")]
    ConnectionRefused { addr: SocketAddr },
    #[error(
        "no answer from {addr} within {}: the host is down, or a firewall drops packets to this port",
        seconds(*timeout)
    )]
    ConnectTimeout { addr: SocketAddr, timeout: Duration },
    #[error("cannot reach {addr}: {source}")]
    Unreachable { addr: SocketAddr, source: io::Error },
    #[error("cannot reach {addr}: a link-local address needs its interface: `{}%INTERFACE`", addr.ip())]
    NoInterface { addr: SocketAddr },
    #[error("cannot listen on {addr}: {source}")]
    BindFailed { addr: SocketAddr, source: io::Error },
    #[error("cannot accept further connections: {source}")]
    AcceptFailed { source: io::Error },
    #[error("cannot configure the connection to {peer}: {source}")]
    SetupFailed { peer: SocketAddr, source: io::Error },
    #[error("cannot use this key for TLS: {0}")]
    Tls(rustls::Error),
    #[error(
        "handshake with {peer} timed out after {}: not a weighbridge peer, or overloaded",
        seconds(*within)
    )]
    HandshakeTimeout { peer: SocketAddr, within: Duration },
    #[error("{peer} had not authenticated when too many newer connections arrived")]
    Evicted { peer: SocketAddr },
    #[error("{peer} does not speak weighbridge's protocol: {reason}; check the address and port")]
    UnknownProtocol { peer: SocketAddr, reason: String },
    #[error(
        "the {peer_role} at {peer} is {program}, not `weighbridge net {program}`: its protocol is not spoken here; start \
         weighbridge at both ends"
    )]
    ForeignPeer { peer: SocketAddr, peer_role: Role, program: ForeignProgram },
    #[error("{peer} closed the connection during the handshake: not a weighbridge peer, or too many connections")]
    ClosedEarly { peer: SocketAddr },
    #[error(
        "the token of the {peer_role} at {peer} does not match: use the same on both sides; `weighbridge net token` generates one"
    )]
    WrongToken { peer: SocketAddr, peer_role: Role },
    #[error(
        "the {is} at {peer} has no token, and its key {presented} is not trusted: give it the token of this \
         side, or trust the key if its owner confirms it"
    )]
    NoToken { peer: SocketAddr, is: Role, presented: Fingerprint },
    #[error(
        "untrusted key {presented} of {peer}: trust it if its owner confirms it; otherwise the connection may be \
         intercepted"
    )]
    WrongKey { peer: SocketAddr, presented: Fingerprint },
    #[error("the {peer_role} at {peer} refused the connection: {}", refusal(*peer_role, *key, *with_token))]
    Refused { peer: SocketAddr, peer_role: Role, key: Fingerprint, with_token: bool },
    #[error(
        "{peer} uses protocol {} (weighbridge {}), and this side protocol {} (weighbridge {}): use the same version on \
         both sides",
        peer_hello.protocol, peer_hello.program, local_hello.protocol, local_hello.program
    )]
    VersionMismatch { peer: SocketAddr, local_hello: ControlHello, peer_hello: ControlHello },
    #[error("{peer}: {source}")]
    ConnectionLost { peer: SocketAddr, source: FrameError },
}

impl ControlError {
    pub(super) fn connection_lost(peer: SocketAddr, source: FrameError) -> Self {
        Self::ConnectionLost { peer, source }
    }

    pub(super) fn from_handshake_error(peer: SocketAddr, source: FrameError) -> Self {
        match source {
            FrameError::Closed => Self::ClosedEarly { peer },
            FrameError::Io(error) => match rustls_error(&error) {
                Some(error) => Self::UnknownProtocol { peer, reason: excerpt(&error.to_string()) },
                None => Self::connection_lost(peer, FrameError::Io(error)),
            },
            other => Self::UnknownProtocol { peer, reason: other.to_string() },
        }
    }

    /// Converts a TLS error during the handshake, on a side with this role and key
    pub(super) fn from_tls_error(peer: SocketAddr, role: Role, key: Fingerprint, error: io::Error) -> Self {
        use AlertDescription::CertificateUnknown;
        match rustls_error(&error) {
            Some(rustls::Error::InvalidCertificate(CertificateError::Other(cause))) => {
                match cause.0.downcast_ref::<UnpinnedKey>() {
                    Some(UnpinnedKey(presented)) => Self::WrongKey { peer, presented: *presented },
                    None => Self::UnknownProtocol { peer, reason: excerpt(&cause.to_string()) },
                }
            }
            // The alert sent by a peer that has not pinned our key.
            Some(rustls::Error::AlertReceived(CertificateUnknown)) => {
                Self::Refused { peer, peer_role: role.other(), key, with_token: false }
            }
            Some(other) => Self::UnknownProtocol { peer, reason: excerpt(&other.to_string()) },
            None => Self::from_handshake_error(peer, FrameError::from_io(error)),
        }
    }
}

fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn refusal(by: Role, key: Fingerprint, with_token: bool) -> String {
    if with_token {
        format!(
            "the token does not match the {by}'s, and it does not trust the key {key}; use the same token on both sides, or let the \
             {by} trust that key"
        )
    } else {
        format!("it does not trust the key {key}; let the {by} trust it, or use the same token on both sides")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> SocketAddr {
        "10.0.0.7:4747".parse().unwrap()
    }

    fn key() -> Fingerprint {
        Fingerprint::of_public_key(b"a key")
    }

    #[test]
    fn a_refused_connection_and_a_timeout_have_distinct_messages() {
        let (addr, timeout) = (peer(), Duration::from_secs(10));
        insta::assert_snapshot!(ControlError::ConnectionRefused { addr }, @"cannot connect to 10.0.0.7:4747: connection refused");
        insta::assert_snapshot!(ControlError::ConnectTimeout { addr, timeout }, @"no answer from 10.0.0.7:4747 within 10 s: the host is down, or a firewall drops packets to this port");
        insta::assert_snapshot!(ControlError::HandshakeTimeout { peer: addr, within: timeout }, @"handshake with 10.0.0.7:4747 timed out after 10 s: not a weighbridge peer, or overloaded");
        insta::assert_snapshot!(ControlError::ClosedEarly { peer: addr }, @"10.0.0.7:4747 closed the connection during the handshake: not a weighbridge peer, or too many connections");
    }

    #[test]
    fn a_refusal_names_what_was_offered() {
        let refused =
            |with_token| ControlError::Refused { peer: peer(), peer_role: Role::Server, key: key(), with_token };
        insta::assert_snapshot!(refused(true), @"the server at 10.0.0.7:4747 refused the connection: the token does not match the server's, and it does not trust the key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80; use the same token on both sides, or let the server trust that key");
        insta::assert_snapshot!(refused(false), @"the server at 10.0.0.7:4747 refused the connection: it does not trust the key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80; let the server trust it, or use the same token on both sides");
    }

    #[test]
    fn an_untrusted_peer_is_named_with_a_remedy() {
        let (peer, peer_role, presented) = (peer(), Role::Client, key());
        insta::assert_snapshot!(ControlError::WrongToken { peer, peer_role }, @"the token of the client at 10.0.0.7:4747 does not match: use the same on both sides; `weighbridge net token` generates one");
        insta::assert_snapshot!(ControlError::NoToken { peer, is: peer_role, presented }, @"the client at 10.0.0.7:4747 has no token, and its key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80 is not trusted: give it the token of this side, or trust the key if its owner confirms it");
        insta::assert_snapshot!(ControlError::WrongKey { peer, presented }, @"untrusted key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80 of 10.0.0.7:4747: trust it if its owner confirms it; otherwise the connection may be intercepted");
    }

    #[test]
    fn a_mismatch_of_versions_names_both() {
        let hello = |protocol, program: &str| ControlHello { protocol, program: program.into() };
        let error = ControlError::VersionMismatch {
            peer: peer(),
            local_hello: hello(1, "0.1.0"),
            peer_hello: hello(2, "0.4.0"),
        };
        insta::assert_snapshot!(error, @"10.0.0.7:4747 uses protocol 2 (weighbridge 0.4.0), and this side protocol 1 (weighbridge 0.1.0): use the same version on both sides");
    }
}
