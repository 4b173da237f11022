//! The token: a secret text that both sides were given.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::secret_file::{self, SecretFileError};

const SHORTEST: usize = 16;

/// A shared secret; whoever holds it is trusted
///
/// An impostor that a client connects to gets a proof it can try guesses against at leisure, so a token must not be
/// one that can be guessed: [`Token::fresh`] makes one of 256 random bits.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// Why a text is no token
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It is short enough to be guessed
    #[error("a token of {length} bytes can be guessed, {SHORTEST} are the least: `weighbridge net token` makes one")]
    TooShort {
        /// Its bytes
        length: usize,
    },
    /// It is no printable text
    #[error("a token is printable text on one line, and this is not: `weighbridge net token` makes one")]
    Unprintable,
    /// Its file was not used
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// What a file holds is no token
    #[error("`{}`: {source}", path.display())]
    InvalidFile {
        /// The file
        path: PathBuf,
        /// What is wrong with it
        source: Box<TokenError>,
    },
    /// The operating system gives no random bytes
    #[error("the operating system gives no random bytes to make a token of")]
    NoRandomness,
}

impl Token {
    /// A new token of 32 random bytes from the operating system
    pub fn generate() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        let provider = rustls::crypto::ring::default_provider();
        provider.secure_random.fill(&mut bytes).map_err(|_| TokenError::NoRandomness)?;
        Ok(Self(BASE64_URL_SAFE_NO_PAD.encode(bytes).into_bytes()))
    }

    /// The token in a file that only its owner can read
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let within = |source| TokenError::InvalidFile { path: path.into(), source: Box::new(source) };
        let mut bytes = secret_file::read(path)?;
        let token = std::str::from_utf8(&bytes).map_err(|_| TokenError::Unprintable).and_then(str::parse);
        wipe(&mut bytes);
        token.map_err(within)
    }

    /// The token as text, for whoever asked for a new one
    pub fn reveal(&self) -> &str {
        // Only text ever becomes a token.
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
            length if length < SHORTEST => Err(TokenError::TooShort { length }),
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
    // Else the compiler may leave out writes that nobody reads.
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
    fn fresh_tokens_differ_and_can_be_given_as_text() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(one.reveal().parse::<Token>().unwrap().reveal(), one.reveal());
        assert_eq!(one.reveal().len(), 43);
    }

    #[test]
    fn a_short_token_is_refused_and_says_how_to_make_one() {
        let error = "  fifteen bytes !\n".parse::<Token>().unwrap_err();
        insta::assert_snapshot!(error, @"a token of 15 bytes can be guessed, 16 are the least: `weighbridge net token` makes one");
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
    fn a_token_file_that_others_can_read_is_refused_with_the_way_out() {
        let (_folder, path) = written(b"correct horse battery", 0o640);
        let error = Token::from_file(&path).unwrap_err().to_string();
        assert!(error.contains("mode 0640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_token_file_names_itself_in_its_errors() {
        for content in [&b"short"[..], &[0xff; 32]] {
            let (_folder, path) = written(content, 0o600);
            let error = Token::from_file(&path).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[test]
    fn a_long_file_is_no_token() {
        let (_folder, path) = written(&vec![b'x'; 1 << 20], 0o600);
        assert!(matches!(Token::from_file(&path), Err(TokenError::File(SecretFileError::TooLong { .. }))));
    }
}
