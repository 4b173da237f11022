//! Mutual proof, inside TLS and before anything else is read.
//!
//! A proof is an HMAC of the token over the sender's role and a value that TLS exports from the keys of this very
//! session (RFC 9266). Somebody in the middle holds two sessions with two such values, so a proof from one is worth
//! nothing in the other; and the role keeps a proof from being sent back to whoever made it.
//!
//! The client proves first. A server is there for strangers to talk to, and so they learn nothing from it that depends
//! on its token: no proof to try guesses against, and one and the same refusal whatever it trusts.

use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncWrite};

use super::channel::FramedTls;
use super::error::{ControlError, Role};
use super::fingerprint::Fingerprint;
use super::token::Token;
use super::trust::{Credentials, Trust};

/// The exporter's label (RFC 9266)
pub(super) const EXPORTER_LABEL: &[u8] = b"EXPORTER-Channel-Binding";
/// What a TLS session exports to be bound to
pub(super) type Binding = [u8; 32];

/// One side's view of a TLS session whose peer is not authenticated yet
#[derive(Debug, Clone, Copy)]
pub(super) struct AuthContext {
    pub(super) role: Role,
    pub(super) peer: SocketAddr,
    pub(super) peer_key: Fingerprint,
    pub(super) binding: Binding,
}

/// What a side has to say for itself, beyond the key that TLS showed
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    token: Option<String>,
}

/// What the other side thinks of a claim
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AuthVerdict {
    Trusted,
    Untrusted,
}

/// Both sides prove themselves, or this is an error
pub(super) async fn authenticate<S>(
    frames: &mut FramedTls<S>,
    meeting: &AuthContext,
    credentials: &Credentials,
) -> Result<(), ControlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match meeting.role {
        Role::Client => {
            prove(frames, meeting, credentials).await?;
            verify_peer(frames, meeting, &credentials.trust).await
        }
        Role::Server => {
            verify_peer(frames, meeting, &credentials.trust).await?;
            prove(frames, meeting, credentials).await
        }
    }
}

async fn prove<S>(
    frames: &mut FramedTls<S>,
    meeting: &AuthContext,
    credentials: &Credentials,
) -> Result<(), ControlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let peer = meeting.peer;
    let token = credentials.trust.token().map(|token| {
        let proof = compute_proof(token, meeting.role, &meeting.binding).finalize().into_bytes();
        BASE64_URL_SAFE_NO_PAD.encode(proof)
    });
    let with_token = token.is_some();
    frames.send(&Claim { token }).await.map_err(|error| ControlError::from_handshake_error(peer, error))?;
    match frames.expect().await.map_err(|error| ControlError::from_handshake_error(peer, error))? {
        AuthVerdict::Trusted => Ok(()),
        AuthVerdict::Untrusted => Err(ControlError::Refused {
            peer,
            by: meeting.role.other(),
            key: credentials.identity.fingerprint(),
            with_token,
        }),
    }
}

async fn verify_peer<S>(frames: &mut FramedTls<S>, meeting: &AuthContext, trust: &Trust) -> Result<(), ControlError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let claim = frames.expect().await.map_err(|error| ControlError::from_handshake_error(meeting.peer, error))?;
    let judged = evaluate_claim(&claim, meeting, trust);
    let verdict = if judged.is_ok() { AuthVerdict::Trusted } else { AuthVerdict::Untrusted };
    let told = frames.send(&verdict).await.map_err(|error| ControlError::from_handshake_error(meeting.peer, error));
    if judged.is_err() {
        // A peer that does not wait for its refusal changes nothing about the reason.
        let _ = frames.close().await;
    }
    judged.and(told)
}

fn evaluate_claim(claim: &Claim, meeting: &AuthContext, trust: &Trust) -> Result<(), ControlError> {
    let AuthContext { role, peer, peer_key: presented, binding } = *meeting;
    if trust.pins().contains(&presented) {
        return Ok(());
    }
    match (trust.token(), &claim.token) {
        (Some(token), Some(claimed)) if verify_proof(token, role.other(), &binding, claimed) => Ok(()),
        (Some(_), Some(_)) => Err(ControlError::WrongToken { peer, is: role.other() }),
        (Some(_), None) => Err(ControlError::NoToken { peer, is: role.other(), presented }),
        (None, _) => Err(ControlError::WrongKey { peer, presented }),
    }
}

/// Whether a claimed proof is the one that this token makes, in a time that does not tell how nearly
fn verify_proof(token: &Token, claimant: Role, binding: &Binding, claimed: &str) -> bool {
    // What is no base64 is a proof of no bytes, which never holds.
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
    fn a_proof_holds_for_its_token_role_and_session_alone() {
        let (token, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        let (here, elsewhere) = ([1; 32], [2; 32]);
        let claim = claimed(&token, Role::Client, &here);
        assert!(verify_proof(&token, Role::Client, &here, &claim));
        assert!(!verify_proof(&other, Role::Client, &here, &claim));
        assert!(!verify_proof(&token, Role::Server, &here, &claim));
        assert!(!verify_proof(&token, Role::Client, &elsewhere, &claim));
    }

    #[test]
    fn a_part_of_a_proof_and_no_proof_never_hold() {
        let token = Token::generate().unwrap();
        let claim = claimed(&token, Role::Client, &[1; 32]);
        for part in ["", "no base64!", &claim[..4], &claim[..40], &format!("{claim}{claim}")] {
            assert!(!verify_proof(&token, Role::Client, &[1; 32], part), "{part}");
        }
    }
}
