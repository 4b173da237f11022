//! The certificate of the accepting side, and its verification by the connecting side.
//!
//! A process generates it on first use and never stores it. Its fingerprint is sent over the control connection, and
//! the connecting side accepts only this certificate, so that no authority and no name has to be trusted.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use rcgen::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature},
    pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime},
    server::NoServerSessionStorage,
    version::TLS13,
};
use sha2::{Digest, Sha256};

/// The name in the certificate, which is not checked.
pub(super) const SERVER_NAME: &str = "weighbridge";

/// The SHA-256 fingerprint of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificateFingerprint(String);

impl CertificateFingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Parses an announced fingerprint.
    pub(super) fn from_announcement(text: Option<String>) -> io::Result<Self> {
        let message = "the peer announced no certificate";
        text.map(Self).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, message))
    }

    /// The fingerprint as it is announced.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The certificate that this process presents when it accepts, with its key.
#[derive(Debug)]
pub(super) struct ServerCertificate {
    pub(super) fingerprint: CertificateFingerprint,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// The certificate of this process.
pub(super) fn server_certificate() -> io::Result<&'static ServerCertificate> {
    static IDENTITY: OnceLock<Result<ServerCertificate, String>> = OnceLock::new();
    let generated = IDENTITY.get_or_init(|| {
        let generated = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()]);
        let CertifiedKey { cert, signing_key } = generated.map_err(|error| error.to_string())?;
        let certificate = cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        Ok(ServerCertificate { fingerprint: CertificateFingerprint::of(&certificate), certificate, key })
    });
    generated.as_ref().map_err(|error| io::Error::other(format!("cannot generate a certificate: {error}")))
}

impl ServerCertificate {
    /// The TLS configuration of the accepting side, without any session resumption.
    pub(super) fn server_config(&self) -> io::Result<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key().into())
            .map_err(io::Error::other)?;
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }
}

/// The TLS configuration of the connecting side. Every connection is a full handshake.
pub(super) fn client_config(fingerprint: CertificateFingerprint) -> io::Result<ClientConfig> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedVerifier { fingerprint, algorithms }))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(ring::default_provider())).clone()
}

/// Converts a TLS error, with messages for users.
pub(super) fn to_io_error(error: &Error) -> io::Error {
    match error {
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "certificate mismatch: the peer presented another certificate than it announced; the connection may be intercepted",
        ),
        Error::AlertReceived(alert) => {
            io::Error::new(io::ErrorKind::ConnectionAborted, format!("the peer closed the TLS session: {alert:?}"))
        }
        error => io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}")),
    }
}

/// Accepts exactly one certificate.
#[derive(Debug)]
struct PinnedVerifier {
    fingerprint: CertificateFingerprint,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let presented = CertificateFingerprint::of(certificate);
        if presented.0 == self.fingerprint.0 {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not supported".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        None
    }
}
