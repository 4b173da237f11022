//! The lines of the log.

use serde::{Deserialize, Serialize};

use super::Step;

/// A change that was made, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// Its number, from 0.
    pub number: u32,
    /// The boot in which it was made.
    pub boot: String,
    /// For whom: `tune apply quiet`.
    pub owner: String,
    /// What it is a change of.
    #[serde(flatten)]
    pub step: Step,
    /// What was there; none where nothing was.
    #[serde(with = "text")]
    #[schemars(with = "Option<String>")]
    pub before: Option<Vec<u8>>,
    /// When a file was modified before, in nanoseconds since 1970; none where there was no file, and of other things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    /// The settings that the system may reset when this one is changed, as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<Dependent>,
}

/// A setting that the system may reset when another one is changed: the queue depth of a disk whose scheduler is
/// switched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Dependent {
    /// Its file.
    pub path: String,
    /// Its value; none where the file is not there.
    #[serde(with = "text")]
    #[schemars(with = "Option<String>")]
    pub value: Option<Vec<u8>>,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(super) enum LogRecord {
    /// Something is about to be changed.
    Change(Change),
    /// It was, and then held this.
    Applied {
        number: u32,
        #[serde(with = "text")]
        after: Option<Vec<u8>>,
        /// The dependents that have another value than before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reset: Vec<Dependent>,
    },
    /// What a change is to put back is something else: an earlier change of the same setting was undone before it.
    Rebased {
        number: u32,
        #[serde(with = "text")]
        before: Option<Vec<u8>>,
        /// When the file was modified that is put back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified: Option<i64>,
        /// Which of its dependents; none where it is the setting itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dependent: Option<String>,
    },
    /// It was put back, or left.
    Undone {
        number: u32,
        #[serde(flatten)]
        how: RevertOutcome,
    },
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum RevertOutcome {
    /// What was there before is there again.
    Restored,
    /// Somebody else changed it meanwhile: it is left as it is.
    Conflict {
        /// What is there.
        found: String,
    },
    /// It was changed again since, through this log: undoing that change puts back what was there before this one.
    Superseded {
        /// For whom it was changed again.
        by: String,
    },
    /// What it was a change of is no longer there, or a reboot has put it back.
    Gone,
}

impl std::fmt::Display for RevertOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Restored => f.write_str("it is as it was"),
            Self::Conflict { found } => write!(f, "left at `{found}`, since somebody else changed it"),
            Self::Superseded { by } => write!(f, "changed again since by {by}, whose undoing puts it back"),
            Self::Gone => f.write_str("gone, or put back by a reboot"),
        }
    }
}

/// Bytes in JSON: as text where they are text, else in hexadecimal digits behind a mark that no setting begins with.
mod text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const MARK: &str = "\u{0}hex:";

    pub(super) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = |bytes: &Vec<u8>| match std::str::from_utf8(bytes) {
            Ok(text) if !text.starts_with(MARK) => text.to_owned(),
            _ => bytes.iter().fold(MARK.to_owned(), |text, byte| text + &format!("{byte:02x}")),
        };
        bytes.as_ref().map(shown).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let Some(digits) = text.strip_prefix(MARK) else { return Ok(Some(text.into_bytes())) };
        let digit = |c: u8| (c as char).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
        bytes.map(Some).ok_or_else(|| serde::de::Error::custom("no hexadecimal digits"))
    }
}
