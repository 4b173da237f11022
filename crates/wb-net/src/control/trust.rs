//! Whom we trust: who knows the token, or whose key we know.

use super::fingerprint::Fingerprint;
use super::identity::Identity;
use super::token::Token;

/// Whom one side lets in; each side decides for itself, and both must agree to the other
#[derive(Debug, Clone)]
pub enum Trust {
    /// Whoever proves that it knows this token, with any key
    Token(Token),
    /// Whoever holds one of these keys
    Pinned(Vec<Fingerprint>),
    /// Whoever does either; one is enough
    Either(Token, Vec<Fingerprint>),
}

impl Trust {
    /// The token, when one opens the door
    pub fn token(&self) -> Option<&Token> {
        match self {
            Self::Token(token) | Self::Either(token, _) => Some(token),
            Self::Pinned(_) => None,
        }
    }

    /// The keys that are trusted for themselves
    pub fn pins(&self) -> &[Fingerprint] {
        match self {
            Self::Token(_) => &[],
            Self::Pinned(pins) | Self::Either(_, pins) => pins,
        }
    }
}

/// Who we are and whom we trust
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Our key; with a token any will do, such as [`Identity::fresh`]
    pub identity: Identity,
    /// Whom we let in
    pub trust: Trust,
}
