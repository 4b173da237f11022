//! Hashes: of bytes, and of what defines a cell.

use std::{fmt, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256 as Hasher};

use crate::{Params, TestName};

/// A SHA-256, in lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Sha256(String);

impl Sha256 {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(&Hasher::digest(bytes))
    }

    /// Of all that can be read, a piece at a time.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of_reader(mut from: impl io::Read) -> io::Result<Self> {
        let mut hasher = Hasher::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            match from.read(&mut piece)? {
                0 => return Ok(Self::from_hasher(hasher)),
                read => hasher.update(&piece[..read]),
            }
        }
    }

    /// Of what a hasher was given, piece by piece.
    pub fn from_hasher(hasher: Hasher) -> Self {
        Self::from_digest(&hasher.finalize())
    }

    fn from_digest(digest: &[u8]) -> Self {
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What decides whether two cells may be compared or resumed: the test, its measurement version
/// and every effective parameter, defaults and machine-dependent values included.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DefinitionKey(String);

impl DefinitionKey {
    /// The key of this definition.
    pub fn new(test: &TestName, version: u32, params: &Params) -> Self {
        let canonical = serde_json::json!({ "test": test, "version": version, "params": params });
        let digits = Sha256::of(canonical.to_string().as_bytes());
        Self(digits.as_str()[..16].to_owned())
    }

    /// The digits: sixteen hexadecimal ones.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DefinitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParamValue;

    #[test]
    fn every_parameter_and_the_version_count() {
        let test = TestName::new("fio").unwrap();
        let mut params = Params::new();
        params.insert("rw".into(), ParamValue::Text("read".into()));
        let one = DefinitionKey::new(&test, 1, &params);
        assert_eq!(one, DefinitionKey::new(&test, 1, &params.clone()));
        assert_ne!(one, DefinitionKey::new(&test, 2, &params));
        params.insert("bs".into(), ParamValue::Text("4k".into()));
        assert_ne!(one, DefinitionKey::new(&test, 1, &params));
    }

    #[test]
    fn sha256_is_the_standard_one() {
        assert_eq!(Sha256::of(b"abc").as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let long = vec![7; 200_000];
        assert_eq!(Sha256::of_reader(&long[..]).unwrap(), Sha256::of(&long));
    }
}
