//! SHA-256 hashes, and the definition key of a cell.

use std::{fmt, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256 as Hasher};

use crate::{Params, TestName};

/// A SHA-256 hash, in lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Sha256(String);

impl Sha256 {
    pub fn digest(bytes: &[u8]) -> Self {
        Self::from_digest(&Hasher::digest(bytes))
    }

    pub fn of_reader(mut reader: impl io::Read) -> io::Result<Self> {
        let mut hasher = Hasher::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(Self::from_hasher(hasher)),
                length => hasher.update(&buffer[..length]),
            }
        }
    }

    pub fn from_hasher(hasher: Hasher) -> Self {
        Self::from_digest(&hasher.finalize())
    }

    fn from_digest(digest: &[u8]) -> Self {
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Hash of a cell's definition, which determines whether cells can be compared or resumed: the test, its measurement
/// version and every effective parameter, including defaults and machine-dependent values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DefinitionKey(String);

/// The parameter with the file that defines a matrix of cells. It is no part of a key, as it says where the definition
/// is, not what is measured: a matrix can be compared with the same one in another folder.
pub const MATRIX_FILE: &str = "matrix-file";

impl DefinitionKey {
    pub fn new(test: &TestName, version: u32, params: &Params) -> Self {
        let params: Params = params.clone().into_iter().filter(|(name, _)| name != MATRIX_FILE).collect();
        let canonical = serde_json::json!({ "test": test, "version": version, "params": params });
        let digits = Sha256::digest(canonical.to_string().as_bytes());
        Self(digits.as_str()[..16].to_owned())
    }

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
    fn the_key_depends_on_parameters_and_version() {
        let test = TestName::new("fio").unwrap();
        let mut params = Params::new();
        params.insert("rw".into(), ParamValue::Text("read".into()));
        let key = DefinitionKey::new(&test, 1, &params);
        assert_eq!(key, DefinitionKey::new(&test, 1, &params.clone()));
        assert_ne!(key, DefinitionKey::new(&test, 2, &params));
        params.insert(MATRIX_FILE.into(), ParamValue::Text("elsewhere.toml".into()));
        assert_eq!(key, DefinitionKey::new(&test, 1, &params));
        params.insert("bs".into(), ParamValue::Text("4k".into()));
        assert_ne!(key, DefinitionKey::new(&test, 1, &params));
    }

    #[test]
    fn sha256_is_the_standard_one() {
        assert_eq!(Sha256::digest(b"abc").as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let long = vec![7; 200_000];
        assert_eq!(Sha256::of_reader(&long[..]).unwrap(), Sha256::digest(&long));
    }
}
