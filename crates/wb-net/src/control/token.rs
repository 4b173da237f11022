//! The token: a secret text that both sides share.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::secret_file::{self, SecretFileError};

const MIN_TOKEN_LEN: usize = 16;

/// A shared secret; whoever has it is trusted
///
/// An impostor that a client connects to gets a proof and can test guesses against it offline, so a token must not be
/// guessable: [`Token::generate`] generates one of 256 random bits.
#[derive(Clone)]
pub struct Token(Vec<u8>);

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("token too short: {length} bytes, expected at least {MIN_TOKEN_LEN}")]
    TooShort { length: usize },
    #[error("invalid token: expected printable text on one line")]
    Unprintable,
    #[error(transparent)]
    File(#[from] SecretFileError),
    #[error("`{}`: {source}", path.display())]
    InvalidFile { path: PathBuf, source: Box<TokenError> },
    #[error("cannot generate a token: the operating system provides no random bytes")]
    NoRandomness,
}

impl Token {
    /// Generates a token of 32 random bytes from the operating system
    pub fn generate() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        let provider = rustls::crypto::ring::default_provider();
        provider.secure_random.fill(&mut bytes).map_err(|_| TokenError::NoRandomness)?;
        Ok(Self(BASE64_URL_SAFE_NO_PAD.encode(bytes).into_bytes()))
    }

    /// Reads the token from a file that only its owner can read
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let invalid_file = |source| TokenError::InvalidFile { path: path.into(), source: Box::new(source) };
        let mut bytes = secret_file::read(path)?;
        let token = std::str::from_utf8(&bytes).map_err(|_| TokenError::Unprintable).and_then(str::parse);
        wipe(&mut bytes);
        token.map_err(invalid_file)
    }

    /// Writes the token to a new file that only its owner can read; false if the file exists, which stays as it is
    pub fn save(&self, path: &Path) -> Result<bool, TokenError> {
        let mut line = self.0.clone();
        line.push(b'\n');
        let created = secret_file::create(path, &line);
        wipe(&mut line);
        Ok(created?)
    }

    /// The token as text, to show a newly generated one
    pub fn reveal(&self) -> &str {
        // A token is always created from text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.chars().any(char::is_control) {
            return Err(TokenError::Unprintable);
        }
        match text.len() {
            length if length < MIN_TOKEN_LEN => Err(TokenError::TooShort { length }),
            _ => Ok(Self(text.as_bytes().to_vec())),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // Prevents the compiler from removing writes that are never read.
    std::hint::black_box(bytes);
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn written(text: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn generated_tokens_differ_and_round_trip_through_text() {
        let (first, second) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(first.reveal(), second.reveal());
        assert_eq!(first.reveal().parse::<Token>().unwrap().reveal(), first.reveal());
        assert_eq!(first.reveal().len(), 43);
    }

    #[test]
    fn a_short_token_is_refused_with_a_remedy() {
        let error = "  fifteen bytes !\n".parse::<Token>().unwrap_err();
        insta::assert_snapshot!(error, @"token too short: 15 bytes, expected at least 16");
    }

    #[test]
    fn a_token_of_control_characters_is_refused() {
        assert!(matches!("sixteen bytes\0 of it".parse::<Token>(), Err(TokenError::Unprintable)));
        assert!(matches!("two lines of\nit, sixteen".parse::<Token>(), Err(TokenError::Unprintable)));
    }

    #[test]
    fn a_token_never_shows_in_debug_output() {
        let token: Token = "correct horse battery".parse().unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn a_token_file_loses_its_line_end() {
        let (_folder, path) = written(b"correct horse battery\n", 0o600);
        assert_eq!(Token::from_file(&path).unwrap().reveal(), "correct horse battery");
    }

    #[test]
    fn a_token_file_that_others_can_read_is_refused_with_a_remedy() {
        let (_folder, path) = written(b"correct horse battery", 0o640);
        let error = Token::from_file(&path).unwrap_err().to_string();
        assert!(error.contains("mode 0640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn an_error_in_a_token_file_names_the_file() {
        for content in [&b"short"[..], &[0xff; 32]] {
            let (_folder, path) = written(content, 0o600);
            let error = Token::from_file(&path).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[test]
    fn a_long_file_is_not_a_token() {
        let (_folder, path) = written(&vec![b'x'; 1 << 20], 0o600);
        assert!(matches!(Token::from_file(&path), Err(TokenError::File(SecretFileError::TooLong { .. }))));
    }
}
