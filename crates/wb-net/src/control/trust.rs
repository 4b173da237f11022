//! Which peers one side trusts: peers that know the token, or peers with a pinned key.

use super::fingerprint::Fingerprint;
use super::identity::Identity;
use super::token::Token;

/// The peers that one side accepts; each side decides for itself, and both must accept the other
#[derive(Debug, Clone)]
pub enum Trust {
    /// Peers that prove knowledge of this token, with any key
    Token(Token),
    Pinned(Vec<Fingerprint>),
    Either(Token, Vec<Fingerprint>),
}

impl Trust {
    pub fn token(&self) -> Option<&Token> {
        match self {
            Self::Token(token) | Self::Either(token, _) => Some(token),
            Self::Pinned(_) => None,
        }
    }

    pub fn pins(&self) -> &[Fingerprint] {
        match self {
            Self::Token(_) => &[],
            Self::Pinned(pins) | Self::Either(_, pins) => pins,
        }
    }
}

/// The identity of one side and the peers that it trusts
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The local key; with a token any key will do, such as [`Identity::generate`]
    pub identity: Identity,
    pub trust: Trust,
}
