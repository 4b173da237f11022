//! The records of the undo log.

use serde::{Deserialize, Serialize};

use super::ManagedResource;

/// A change that was made or was about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// Number of the change, from 0.
    pub number: u32,
    /// Id of the boot in which it was made.
    pub boot: String,
    /// Owner of the change: `tune apply quiet`.
    pub owner: String,
    /// The object that was changed.
    #[serde(flatten)]
    pub resource: ManagedResource,
    /// State before; absent where the object did not exist.
    #[serde(with = "text")]
    #[schemars(with = "Option<String>")]
    pub before: Option<Vec<u8>>,
    /// Modification time of a file before, in nanoseconds since 1970; absent where it did not exist, and for other
    /// objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// The settings that the system may reset with this change, with their values before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<Dependent>,
}

/// A setting that the system may reset when another one is changed: the queue depth of a disk whose scheduler is
/// changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Dependent {
    /// File of the setting.
    pub path: String,
    /// Its value; absent where the file does not exist.
    #[serde(with = "text")]
    #[schemars(with = "Option<String>")]
    pub value: Option<Vec<u8>>,
}

/// A record of the log, one per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(super) enum LogRecord {
    /// A change is about to be made.
    Change(Change),
    /// The change was made and resulted in this state.
    Applied {
        number: u32,
        #[serde(with = "text")]
        after: Option<Vec<u8>>,
        /// The dependents whose value differs from before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reset: Vec<Dependent>,
    },
    /// The state to restore has changed, because an earlier change of the same setting was reverted first.
    Rebased {
        number: u32,
        #[serde(with = "text")]
        before: Option<Vec<u8>>,
        /// Modification time of the file to restore.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified: Option<i64>,
        /// The dependent concerned; None for the setting itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dependent: Option<String>,
    },
    /// The change was reverted or given up.
    Undone {
        number: u32,
        #[serde(flatten)]
        outcome: RevertOutcome,
    },
}

/// Outcome of reverting a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum RevertOutcome {
    /// The state before was restored.
    Restored,
    /// Another process changed it meanwhile: it is left as it is.
    Conflict {
        /// The state found.
        found: String,
    },
    /// It was changed again through this log: reverting the later change restores the state before this one.
    Superseded {
        /// Owner of the later change.
        by: String,
    },
    /// The object no longer exists, or a reboot has reset it.
    Gone,
}

impl std::fmt::Display for RevertOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Restored => f.write_str("restored"),
            Self::Conflict { found } => write!(f, "left at `{found}`, since something else changed it"),
            Self::Superseded { by } => write!(f, "changed again by {by}, whose revert restores it"),
            Self::Gone => f.write_str("no longer exists, or was reset by a reboot"),
        }
    }
}

/// Serialises bytes to JSON: UTF-8 as it is, other bytes as hexadecimal digits after a mark that no setting begins
/// with.
mod text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const MARK: &str = "\u{0}hex:";

    pub(super) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        let encode = |bytes: &Vec<u8>| match std::str::from_utf8(bytes) {
            Ok(text) if !text.starts_with(MARK) => text.to_owned(),
            _ => bytes.iter().fold(MARK.to_owned(), |text, byte| text + &format!("{byte:02x}")),
        };
        bytes.as_ref().map(encode).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let Some(digits) = text.strip_prefix(MARK) else { return Ok(Some(text.into_bytes())) };
        let digit = |c: u8| (c as char).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
        bytes.map(Some).ok_or_else(|| serde::de::Error::custom("invalid hexadecimal digits"))
    }
}
