//! Every sentence that a user can be told about a control connection.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

use super::display::{excerpt, seconds};
use super::fingerprint::Fingerprint;
use super::frame::FrameError;
use super::hello::ControlHello;
use super::tls::UnpinnedKey;

/// Which side of a connection
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The side that connects
    Client,
    /// The side that listens
    Server,
}

impl Role {
    /// The side opposite
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

/// Why there is no control connection, or none any more
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens there
    #[error("nothing listens at {addr}: start `weighbridge net serve` there")]
    ConnectionRefused {
        /// Where
        addr: SocketAddr,
    },
    /// The connection was never answered
    #[error(
        "no answer from {addr} within {}: the host is down, or a firewall drops what is sent to this port",
        seconds(*within)
    )]
    ConnectTimeout {
        /// Who did not answer
        addr: SocketAddr,
        /// How long we waited
        within: Duration,
    },
    /// There is no way there
    #[error("{addr} cannot be reached: {source}")]
    Unreachable {
        /// Where
        addr: SocketAddr,
        /// Why
        source: io::Error,
    },
    /// An address cannot be listened at
    #[error("{addr} cannot be listened at: {source}; name another address or port")]
    BindFailed {
        /// Where
        addr: SocketAddr,
        /// Why
        source: io::Error,
    },
    /// Connections cannot be accepted any more
    #[error("no more connections can be accepted: {source}")]
    AcceptFailed {
        /// Why
        source: io::Error,
    },
    /// The operating system takes an option of the connection amiss
    #[error("the connection with {peer} cannot be set up: {source}")]
    SetupFailed {
        /// The other side
        peer: SocketAddr,
        /// Why
        source: io::Error,
    },
    /// Our own key cannot be used
    #[error("TLS cannot be set up with this key: {0}")]
    Tls(rustls::Error),
    /// The handshake was begun and not finished in time
    #[error(
        "{peer} took the connection and did not prove itself within {}: either it is no weighbridge, or it is overloaded",
        seconds(*within)
    )]
    HandshakeTimeout {
        /// The other side
        peer: SocketAddr,
        /// How long we waited
        within: Duration,
    },
    /// Something else listens or connects there
    #[error("{peer} does not speak weighbridge's protocol: {reason}; check the address and port")]
    UnknownProtocol {
        /// The other side
        peer: SocketAddr,
        /// What shows it
        reason: String,
    },
    /// The peer closed the connection before it had said anything
    #[error("{peer} closed the connection before it proved itself: it is no weighbridge, or has too many connections")]
    ClosedEarly {
        /// The other side
        peer: SocketAddr,
    },
    /// The peer's token is not ours
    #[error(
        "the token of the {is} at {peer} is not the one given here: give both the same, `weighbridge net token` makes one"
    )]
    WrongToken {
        /// The other side
        peer: SocketAddr,
        /// What it is
        is: Role,
    },
    /// The peer has no token where one is wanted
    #[error(
        "the {is} at {peer} was given no token, and its key {presented} is not trusted here: give it the token of this \
         side, or trust that key if its owner confirms it"
    )]
    NoToken {
        /// The other side
        peer: SocketAddr,
        /// What it is
        is: Role,
        /// Its key
        presented: Fingerprint,
    },
    /// The peer's key is not pinned
    #[error(
        "{peer} has the key {presented}, which is not trusted here: trust it if its owner confirms it, else somebody \
         stands between"
    )]
    WrongKey {
        /// The other side
        peer: SocketAddr,
        /// Its key
        presented: Fingerprint,
    },
    /// The peer does not trust us
    #[error("the {by} at {peer} refused: {}", refusal(*by, *key, *with_token))]
    Refused {
        /// The other side
        peer: SocketAddr,
        /// What it is
        by: Role,
        /// Our key
        key: Fingerprint,
        /// Whether we offered a token
        with_token: bool,
    },
    /// The peer speaks another version
    #[error(
        "{peer} speaks protocol {} (weighbridge {}), and here is protocol {} (weighbridge {}): use the same version on \
         both sides",
        theirs.protocol, theirs.program, ours.protocol, ours.program
    )]
    VersionMismatch {
        /// The other side
        peer: SocketAddr,
        /// What we said
        ours: ControlHello,
        /// What it said
        theirs: ControlHello,
    },
    /// A message was not sent or received
    #[error("{peer}: {source}")]
    ConnectionLost {
        /// The other side
        peer: SocketAddr,
        /// Why
        source: FrameError,
    },
}

impl ControlError {
    /// What a failing frame means once both sides know each other
    pub(super) fn connection_lost(peer: SocketAddr, source: FrameError) -> Self {
        Self::ConnectionLost { peer, source }
    }

    /// What a failing frame means while they do not
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

    /// What a failing TLS handshake means, to a side with this role and key
    pub(super) fn from_tls_error(peer: SocketAddr, role: Role, key: Fingerprint, error: io::Error) -> Self {
        use AlertDescription::CertificateUnknown;
        match rustls_error(&error) {
            Some(rustls::Error::InvalidCertificate(CertificateError::Other(why))) => {
                match why.0.downcast_ref::<UnpinnedKey>() {
                    Some(UnpinnedKey(presented)) => Self::WrongKey { peer, presented: *presented },
                    None => Self::UnknownProtocol { peer, reason: excerpt(&why.to_string()) },
                }
            }
            // The alert of a peer whose pins do not hold our key.
            Some(rustls::Error::AlertReceived(CertificateUnknown)) => {
                Self::Refused { peer, by: role.other(), key, with_token: false }
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
    match with_token {
        true => format!(
            "the token is not the {by}'s, and it does not trust the key {key}; give both the same token, or let the \
             {by} trust that key"
        ),
        false => format!("it does not trust the key {key}; let the {by} trust it, or give both the same token"),
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
    fn a_server_that_is_not_there_is_told_from_one_that_does_not_answer() {
        let (addr, within) = (peer(), Duration::from_secs(10));
        insta::assert_snapshot!(ControlError::ConnectionRefused { addr }, @"nothing listens at 10.0.0.7:4747: start `weighbridge net serve` there");
        insta::assert_snapshot!(ControlError::ConnectTimeout { addr, within }, @"no answer from 10.0.0.7:4747 within 10 s: the host is down, or a firewall drops what is sent to this port");
        insta::assert_snapshot!(ControlError::HandshakeTimeout { peer: addr, within }, @"10.0.0.7:4747 took the connection and did not prove itself within 10 s: either it is no weighbridge, or it is overloaded");
        insta::assert_snapshot!(ControlError::ClosedEarly { peer: addr }, @"10.0.0.7:4747 closed the connection before it proved itself: it is no weighbridge, or has too many connections");
    }

    #[test]
    fn a_refusal_names_what_was_offered() {
        let refused = |with_token| ControlError::Refused { peer: peer(), by: Role::Server, key: key(), with_token };
        insta::assert_snapshot!(refused(true), @"the server at 10.0.0.7:4747 refused: the token is not the server's, and it does not trust the key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80; give both the same token, or let the server trust that key");
        insta::assert_snapshot!(refused(false), @"the server at 10.0.0.7:4747 refused: it does not trust the key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80; let the server trust it, or give both the same token");
    }

    #[test]
    fn a_peer_that_is_not_trusted_is_named_with_the_way_out() {
        let (peer, is, presented) = (peer(), Role::Client, key());
        insta::assert_snapshot!(ControlError::WrongToken { peer, is }, @"the token of the client at 10.0.0.7:4747 is not the one given here: give both the same, `weighbridge net token` makes one");
        insta::assert_snapshot!(ControlError::NoToken { peer, is, presented }, @"the client at 10.0.0.7:4747 was given no token, and its key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80 is not trusted here: give it the token of this side, or trust that key if its owner confirms it");
        insta::assert_snapshot!(ControlError::WrongKey { peer, presented }, @"10.0.0.7:4747 has the key sha256:j6Oqsvqpt54KA5jaW1q9B4AUJEKlvoC5pkYI1xjLH80, which is not trusted here: trust it if its owner confirms it, else somebody stands between");
    }

    #[test]
    fn a_mismatch_of_versions_names_both() {
        let hello = |protocol, program: &str| ControlHello { protocol, program: program.into() };
        let error = ControlError::VersionMismatch { peer: peer(), ours: hello(1, "0.1.0"), theirs: hello(2, "0.4.0") };
        insta::assert_snapshot!(error, @"10.0.0.7:4747 speaks protocol 2 (weighbridge 0.4.0), and here is protocol 1 (weighbridge 0.1.0): use the same version on both sides");
    }
}
