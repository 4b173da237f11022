//! Mutual authentication, inside TLS and before anything else is read.
//!
//! A proof is an HMAC, keyed with the token, of the sender's role and a value that TLS exports from the keys of this
//! very session (RFC 9266). A man in the middle has two sessions with two different values, so a proof from one is
//! invalid in the other; and the role prevents a proof from being reflected to its sender.
//!
//! The client proves itself first. Anybody can connect to a server, so an unauthenticated peer must learn nothing that
//! depends on its token: it gets no proof to test guesses against, and the same refusal whatever the server trusts.

use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::channel::FramedTls;
use super::error::{ControlError, Role};
use super::fingerprint::Fingerprint;
use super::token::Token;
use super::trust::{Credentials, Trust};

/// The exporter's label (RFC 9266)
pub(super) const EXPORTER_LABEL: &[u8] = b"EXPORTER-Channel-Binding";
/// Keying material exported from a TLS session, to which proofs are bound
pub(super) type Binding = [u8; 32];

/// One side's view of a TLS session whose peer is not authenticated yet
#[derive(Debug, Clone, Copy)]
pub(super) struct AuthContext {
    pub(super) role: Role,
    pub(super) peer: SocketAddr,
    pub(super) peer_key: Fingerprint,
    pub(super) binding: Binding,
}

/// A side's credentials beyond the key presented in TLS
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    token: Option<String>,
}

/// The verifier's answer to a claim
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AuthVerdict {
    Trusted,
    Untrusted,
}

pub(super) async fn authenticate(
    frames: &mut FramedTls,
    context: &AuthContext,
    credentials: &Credentials,
) -> Result<(), ControlError> {
    match context.role {
        Role::Client => {
            // The client proves first, so that a server tells strangers nothing that depends on its secret.
            prove(frames, context, credentials).await?;
            verify_peer(frames, context, &credentials.trust).await
        }
        Role::Server => {
            verify_peer(frames, context, &credentials.trust).await?;
            prove(frames, context, credentials).await
        }
    }
}

async fn prove(frames: &mut FramedTls, context: &AuthContext, credentials: &Credentials) -> Result<(), ControlError> {
    let peer = context.peer;
    let token = credentials.trust.token().map(|token| {
        let proof = compute_proof(token, context.role, &context.binding).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode(proof)
    });
    let with_token = token.is_some();
    frames.send(&Claim { token }).await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    match frames.expect().await.map_err(|error| ControlError::from_handshake_error(peer, error))? {
        AuthVerdict::Trusted => Ok(()),
        AuthVerdict::Untrusted => Err(ControlError::Refused {
            peer,
            peer_role: context.role.other(),
            key: credentials.identity.fingerprint(),
            with_token,
        }),
    }
}

async fn verify_peer(frames: &mut FramedTls, context: &AuthContext, trust: &Trust) -> Result<(), ControlError> {
    let claim = frames.expect().await.map_err(|error| ControlError::from_handshake_error(context.peer, error))?;
    let result = evaluate_claim(&claim, context, trust);
    let verdict = if result.is_ok() { AuthVerdict::Trusted } else { AuthVerdict::Untrusted };
    let sent = frames.send(&verdict).await.map_err(|error| ControlError::from_handshake_error(context.peer, error));
    if result.is_err() {
        // Ignored: the reason stays the same if the peer does not wait for the refusal.
        let _ = frames.close().await;
    }
    result.and(sent)
}

fn evaluate_claim(claim: &Claim, context: &AuthContext, trust: &Trust) -> Result<(), ControlError> {
    let AuthContext { role, peer, peer_key: presented, binding } = *context;
    if trust.pins().contains(&presented) {
        return Ok(());
    }
    match (trust.token(), &claim.token) {
        (Some(token), Some(claimed)) if verify_proof(token, role.other(), &binding, claimed) => Ok(()),
        (Some(_), Some(_)) => Err(ControlError::WrongToken { peer, peer_role: role.other() }),
        (Some(_), None) => Err(ControlError::NoToken { peer, is: role.other(), presented }),
        (None, _) => Err(ControlError::WrongKey { peer, presented }),
    }
}

/// Verifies a claimed proof against this token in constant time
fn verify_proof(token: &Token, claimant: Role, binding: &Binding, claimed: &str) -> bool {
    // Invalid base64 becomes an empty proof, which is never valid.
    let claimed = BASE64_URL_SAFE_NO_PAD.decode(claimed).unwrap_or_default();
    compute_proof(token, claimant, binding).verify_slice(&claimed).is_ok()
}

fn compute_proof(token: &Token, claimant: Role, binding: &Binding) -> Hmac<Sha256> {
    let label: &[u8] = match claimant {
        Role::Client => b"weighbridge-net/1 client\0",
        Role::Server => b"weighbridge-net/1 server\0",
    };
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(token.bytes()).expect("HMAC takes a key of any length");
    mac.chain_update(label).chain_update(binding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(token: &Token, claimant: Role, binding: &Binding) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(compute_proof(token, claimant, binding).finalize().into_bytes())
    }

    #[test]
    fn a_proof_is_valid_only_for_its_token_role_and_session() {
        let (token, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        let (session, other_session) = ([1; 32], [2; 32]);
        let claim = claimed(&token, Role::Client, &session);
        assert!(verify_proof(&token, Role::Client, &session, &claim));
        assert!(!verify_proof(&other, Role::Client, &session, &claim));
        assert!(!verify_proof(&token, Role::Server, &session, &claim));
        assert!(!verify_proof(&token, Role::Client, &other_session, &claim));
    }

    #[test]
    fn a_partial_or_missing_proof_is_invalid() {
        let token = Token::generate().unwrap();
        let claim = claimed(&token, Role::Client, &[1; 32]);
        for part in ["", "no base64!", &claim[..4], &claim[..40], &format!("{claim}{claim}")] {
            assert!(!verify_proof(&token, Role::Client, &[1; 32], part), "{part}");
        }
    }
}
