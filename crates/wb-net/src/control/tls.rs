//! TLS 1.3 without certificate authorities: only the key of a certificate matters, not its names or dates.
//!
//! The peer's signature over the handshake is always verified, so a fingerprint identifies a peer that has the private
//! key. Sessions are never resumed, because a resumed session presents no key.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, DistinguishedName, Error, OtherError, ServerConfig};

use super::fingerprint::Fingerprint;
use super::foreign_peer::UPERF_HELLO;
use super::trust::{Credentials, Trust};
use crate::handshake_signatures::verify_handshake_signatures;

/// Identifies the protocol inside TLS: [`super::proof`], then [`super::hello`], which negotiates the rest
pub(super) const ALPN: &[u8] = b"weighbridge-net/1";

/// The TLS configuration of a client: one that trusts only pinned keys aborts the handshake at any other key, before it
/// presents its own
pub(super) fn client_config(credentials: &Credentials) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let pins = match &credentials.trust {
        Trust::Pinned(pins) => Some(pins.clone()),
        Trust::Token(_) | Trust::Either(..) => None,
    };
    let verifier = KeyVerifier::new(&provider, pins);
    let (certificate, key) = credentials.identity.certificate_and_key();
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(certificate, key)?;
    // The second protocol is a dummy that makes the first message as long as a hello of uperf: a slave of uperf replies
    // only to messages of that length, and is recognised by its reply.
    config.alpn_protocols = vec![ALPN.to_vec(), vec![b'-'; UPERF_HELLO / 2 - 1]];
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The TLS configuration of a server: it passes any key on to [`super::proof`], which judges key and token together
/// and can send the client a refusal
pub(super) fn server_config(credentials: &Credentials) -> Result<ServerConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = KeyVerifier::new(&provider, None);
    let (certificate, key) = credentials.identity.certificate_and_key();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(certificate, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(config)
}

#[derive(Debug, thiserror::Error)]
#[error("the key {0} is not pinned")]
pub(super) struct UnpinnedKey(pub(super) Fingerprint);

/// Accepts certificates with any key, or only with pinned keys; the peer must have signed the handshake
#[derive(Debug)]
struct KeyVerifier {
    pins: Option<Vec<Fingerprint>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl KeyVerifier {
    fn new(provider: &CryptoProvider, pins: Option<Vec<Fingerprint>>) -> Self {
        Self { pins, algorithms: provider.signature_verification_algorithms }
    }

    fn verify_key(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let presented = Fingerprint::of_certificate(certificate)?;
        match &self.pins {
            Some(pins) if !pins.contains(&presented) => {
                let cause = OtherError(Arc::new(UnpinnedKey(presented)));
                Err(Error::InvalidCertificate(CertificateError::Other(cause)))
            }
            _ => Ok(()),
        }
    }
}

impl ServerCertVerifier for KeyVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify_key(certificate).map(|()| ServerCertVerified::assertion())
    }

    verify_handshake_signatures!();
}

impl ClientCertVerifier for KeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify_key(certificate).map(|()| ClientCertVerified::assertion())
    }

    verify_handshake_signatures!();
}
