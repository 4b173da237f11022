//! The identity: a private key, in the self-signed certificate that TLS requires.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::fingerprint::Fingerprint;
use super::secret_file::{self, SecretFileError};

/// An Ed25519 key and its self-signed certificate
///
/// Only the key is stored: the certificate is generated anew each time, names nobody, and its dates are never checked.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    fingerprint: Fingerprint,
}

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("cannot generate a key: {0}")]
    GenerationFailed(rcgen::Error),
    #[error(transparent)]
    File(#[from] SecretFileError),
    #[error("invalid key file `{}`: expected a private key in PEM form ({reason}); move the file away to generate a new key", path.display())]
    InvalidKey { path: PathBuf, reason: String },
}

impl Identity {
    pub fn generate() -> Result<Self, IdentityError> {
        KeyPair::generate_for(&PKCS_ED25519)
            .and_then(|key| Self::from_key_pair(&key))
            .map_err(IdentityError::GenerationFailed)
    }

    /// Loads the identity from a file that only its owner can read, or creates the file if it does not exist
    pub fn load_or_create(path: &Path) -> Result<Self, IdentityError> {
        match Self::load(path) {
            Err(IdentityError::File(SecretFileError::Unreadable { source, .. }))
                if source.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let fresh = Self::generate()?;
        if secret_file::create(path, fresh.pem().as_bytes())? { Ok(fresh) } else { Self::load(path) }
    }

    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(super) fn certificate_and_key(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (vec![self.certificate.clone()], PrivateKeyDer::Pkcs8(self.key.clone_key()))
    }

    fn load(path: &Path) -> Result<Self, IdentityError> {
        let invalid_key = |reason: String| IdentityError::InvalidKey { path: path.into(), reason };
        let pem = secret_file::read(path)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(|error| invalid_key(error.to_string()))?;
        KeyPair::try_from(&key)
            .and_then(|key| Self::from_key_pair(&key))
            .map_err(|error| invalid_key(error.to_string()))
    }

    fn from_key_pair(key: &KeyPair) -> Result<Self, rcgen::Error> {
        Ok(Self {
            certificate: CertificateParams::default().self_signed(key)?.into(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
            fingerprint: Fingerprint::of_public_key(&key.subject_public_key_info()),
        })
    }

    fn pem(&self) -> String {
        let body = BASE64_STANDARD.encode(self.key.secret_pkcs8_der());
        let lines: Vec<&str> = body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { certificate: self.certificate.clone(), key: self.key.clone_key(), fingerprint: self.fingerprint }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_fingerprint_equals_that_of_the_certificate() {
        let identity = Identity::generate().unwrap();
        assert_eq!(Fingerprint::of_certificate(&identity.certificate).unwrap(), identity.fingerprint());
    }

    #[test]
    fn an_identity_is_created_once_and_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/folder/key.pem");
        let created = Identity::load_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Identity::load_or_create(&path).unwrap().fingerprint(), created.fingerprint());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft is left behind");
    }

    #[test]
    fn concurrent_creation_yields_one_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        let created: Vec<Fingerprint> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Identity::load_or_create(&path).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().fingerprint()).collect()
        });
        assert!(created.iter().all(|fingerprint| *fingerprint == created[0]), "{created:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left behind");
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        Identity::load_or_create(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
        let error = Identity::load_or_create(&path).unwrap_err();
        assert!(matches!(error, IdentityError::File(SecretFileError::Exposed { mode: 0o604, .. })), "{error}");
    }

    #[test]
    fn a_file_without_a_key_is_refused_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        for content in ["", "no key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(Identity::load_or_create(&path), Err(IdentityError::InvalidKey { .. })));
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_private_key_never_shows_in_debug_output() {
        let identity = Identity::generate().unwrap();
        assert_eq!(format!("{identity:?}"), format!("Identity({})", identity.fingerprint()));
    }
}
