//! Cookies: the first bytes of every data connection, which prove that it belongs to a session.
//!
//! A cookie names the session, the link and the strand that a connection is for, and is authenticated with SipHash-2-4
//! with 128 bits (J.-P. Aumasson and D. J. Bernstein, 2012) under a key that both sides exchanged over the encrypted
//! control connection. So a connection is identified whatever its addresses are after network address translation, and
//! nobody else can open one. (iperf3 has the word for the bytes that identify its data connections.)

use std::collections::BTreeSet;
use std::hash::Hasher as _;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};

/// Bytes of a cookie.
pub(crate) const LENGTH: usize = BODY + 16;

/// Length of the authenticated part, which the authentication code follows.
const BODY: usize = 36;

/// The first bytes of a cookie. No TLS record begins with them.
pub(super) const MAGIC: [u8; 4] = *b"wbd1";

/// The identity and the secret of a session between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKey {
    /// Identifies the session among those of a server. It is sent in the clear.
    id: u64,
    secret: u128,
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A link of one strand, by its position in the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinkKey {
    pub group: u32,
    /// Number of the connect or accept in the group.
    pub flowop: u32,
    pub strand: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPurpose {
    Connection = 0,
    /// It tests whether a port can be reached.
    Probe = 1,
    /// It acknowledges the cookie of a datagram socket.
    Acknowledgement = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) purpose: ConnectionPurpose,
    pub(crate) link: LinkKey,
    /// Number of the connection attempt on this link, from 1; each is used once.
    pub(crate) attempt: u32,
    /// Number of the connection among those of the strand to this host, from 1.
    pub(crate) ordinal: u32,
}

impl SessionKey {
    pub fn generate() -> io::Result<Self> {
        let mut random = [0; 24];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let (id, secret) = random.split_at(8);
        let (mut id_bytes, mut secret_bytes) = ([0; 8], [0; 16]);
        id_bytes.copy_from_slice(id);
        secret_bytes.copy_from_slice(secret);
        Ok(Self { id: u64::from_le_bytes(id_bytes), secret: u128::from_le_bytes(secret_bytes) })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Encodes and authenticates a cookie.
    pub(crate) fn seal(&self, cookie: &Cookie) -> [u8; LENGTH] {
        let LinkKey { group, flowop, strand } = cookie.link;
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = cookie.purpose as u8;
        bytes[8..16].copy_from_slice(&self.id.to_le_bytes());
        let numbers = [group, flowop, strand, cookie.attempt, cookie.ordinal];
        for (chunk, number) in bytes[16..BODY].chunks_exact_mut(4).zip(numbers) {
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        let code = self.authentication_code(&bytes[..BODY]);
        bytes[BODY..].copy_from_slice(&code.to_le_bytes());
        bytes
    }

    /// Decodes a cookie of this session; `None` if it was not sealed with this key.
    pub(crate) fn open(&self, bytes: &[u8; LENGTH]) -> Option<Cookie> {
        let (body, code) = bytes.split_at(BODY);
        if code != self.authentication_code(body).to_le_bytes() || session_id(bytes) != Some(self.id) {
            return None;
        }
        let purpose = *[ConnectionPurpose::Connection, ConnectionPurpose::Probe, ConnectionPurpose::Acknowledgement]
            .get(usize::from(body[4]))?;
        let [group, flowop, strand, attempt, ordinal] = numbers(body);
        Some(Cookie { purpose, link: LinkKey { group, flowop, strand }, attempt, ordinal })
    }

    fn authentication_code(&self, body: &[u8]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.secret.to_le_bytes());
        hasher.write(body);
        hasher.finish128().as_u128()
    }
}

/// Whether bytes begin like a cookie; nothing is known about their origin.
#[inline]
pub(crate) fn resembles_cookie(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The session that a cookie claims to belong to; `None` if the bytes are no cookie.
pub(crate) fn session_id(bytes: &[u8; LENGTH]) -> Option<u64> {
    resembles_cookie(bytes).then(|| bytes[8..16].try_into().map(u64::from_le_bytes).ok())?
}

/// The link that a cookie claims to be for.
pub(crate) fn claimed_link(bytes: &[u8; LENGTH]) -> LinkKey {
    let [group, flowop, strand, ..] = numbers(bytes);
    LinkKey { group, flowop, strand }
}

fn numbers(bytes: &[u8]) -> [u32; 5] {
    std::array::from_fn(|index| {
        let start = 16 + 4 * index;
        u32::from_le_bytes(std::array::from_fn(|byte| bytes[start + byte]))
    })
}

/// The attempts of a link that have been accepted, so that each is accepted once.
#[derive(Debug, Default)]
pub(crate) struct ReplayGuard {
    highest: u32,
    /// Attempts below the highest that have not arrived.
    missing: BTreeSet<u32>,
}

/// Attempts that may arrive later than newer ones; older ones are refused.
const MAX_MISSING: usize = 1 << 16;

impl ReplayGuard {
    /// Whether `attempt` is accepted: it is not too old, and has not arrived before.
    pub(crate) fn accept(&mut self, attempt: u32) -> bool {
        if attempt <= self.highest {
            return self.missing.remove(&attempt);
        }
        let first = (self.highest + 1).max(attempt.saturating_sub(MAX_MISSING as u32));
        self.missing.extend(first..attempt);
        while self.missing.len() > MAX_MISSING {
            self.missing.pop_first();
        }
        self.highest = attempt;
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cookie(attempt: u32) -> Cookie {
        let link = LinkKey { group: 1, flowop: 2, strand: 70_000 };
        Cookie { purpose: ConnectionPurpose::Connection, link, attempt, ordinal: 9 }
    }

    #[test]
    fn a_cookie_is_valid_in_its_session_only() {
        let (own, other) = (SessionKey::generate().unwrap(), SessionKey::generate().unwrap());
        let sealed = own.seal(&cookie(3));
        assert_eq!(own.open(&sealed), Some(cookie(3)));
        assert_eq!(other.open(&sealed), None);
        assert_eq!((session_id(&sealed), claimed_link(&sealed)), (Some(own.id()), cookie(3).link));
        // Of the same identity, but without the secret.
        assert_eq!(SessionKey { secret: 1, ..own }.open(&sealed), None);
    }

    #[test]
    fn the_secret_is_not_printed() {
        let key = SessionKey { id: 7, secret: 0xdead_beef };
        assert_eq!(format!("{key:?}"), "SessionKey { id: 7, .. }");
    }

    #[test]
    fn an_attempt_is_accepted_once_in_any_order() {
        let mut guard = ReplayGuard::default();
        let accepted = [1, 2, 2, 5, 4, 4, 3, 6, 1].map(|attempt| guard.accept(attempt));
        assert_eq!(accepted, [true, true, false, true, true, false, true, true, false]);
        assert!(guard.accept(u32::MAX) && !guard.accept(7) && guard.missing.len() <= MAX_MISSING);
    }

    proptest! {
        #[test]
        fn any_changed_bit_invalidates_a_cookie(byte in 0..LENGTH, bit in 0..8_u8, attempt in any::<u32>()) {
            let key = SessionKey::generate().unwrap();
            let mut sealed = key.seal(&cookie(attempt));
            sealed[byte] ^= 1 << bit;
            prop_assert_eq!(key.open(&sealed), None);
        }
    }
}
