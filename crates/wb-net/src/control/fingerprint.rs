//! The fingerprint of a key: short enough to compare and pin.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};

/// SHA-256 of a public key (its X.509 SubjectPublicKeyInfo): the same for every certificate that contains the key;
/// written as `sha256:` and 43 characters of URL-safe base64
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

#[derive(Debug, thiserror::Error)]
#[error("invalid fingerprint `{0}`: expected `sha256:` and 43 characters, as the other side prints it")]
pub struct FingerprintError(String);

impl Fingerprint {
    pub(super) fn of_public_key(spki: &[u8]) -> Self {
        Self(Sha256::digest(spki).into())
    }

    pub(super) fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        Ok(Self::of_public_key(&ParsedCertificate::try_from(certificate)?.subject_public_key_info()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", BASE64_URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let digest = text.trim().strip_prefix("sha256:").and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok());
        match digest.and_then(|digest| digest.try_into().ok()) {
            Some(digest) => Ok(Self(digest)),
            None => Err(FingerprintError(super::display::excerpt(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_round_trips_through_its_text() {
        let fingerprint = Fingerprint::of_public_key(b"a key");
        let text = fingerprint.to_string();
        assert_eq!(text.len(), "sha256:".len() + 43);
        assert_eq!(text.parse::<Fingerprint>().unwrap(), fingerprint);
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "sha256:", "sha1:AAAA", "sha256:AAAA", &"sha256:".repeat(7)] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }
}
