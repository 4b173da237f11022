//! Secrets that the user declared: they are masked wherever they stand, whatever stands before them.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use serde_json::Value as Json;

use super::MASK;

/// Those of this process, the longest first: one may be a part of another.
static DECLARED: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Shorter ones would be masked all over, as parts of other words.
pub const SHORTEST: usize = 6;

/// Something that can be no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret of {length} characters would be masked all over, as a part of other words: {SHORTEST} are the fewest"
)]
pub struct TooShort {
    /// How long it is.
    pub length: usize,
}

/// Declares a secret of this process: whatever it records from now on has `***` in its place. Blanks around it are none
/// of it.
///
/// # Errors
/// When it is too short to be told from other words.
pub fn declare(secret: &str) -> Result<(), TooShort> {
    let secret = secret.trim();
    if secret.chars().count() < SHORTEST {
        return Err(TooShort { length: secret.chars().count() });
    }
    let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
    if !declared.iter().any(|known| known == secret) {
        declared.push(secret.to_owned());
        declared.sort_by_key(|known| std::cmp::Reverse(known.len()));
    }
    Ok(())
}

/// Whether any is declared.
pub fn any_declared() -> bool {
    !DECLARED.read().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Whether a declared secret stands in this text.
pub fn has_declared(text: &str) -> bool {
    DECLARED.read().unwrap_or_else(PoisonError::into_inner).iter().any(|secret| text.contains(secret.as_str()))
}

/// A text with all declared secrets masked.
pub fn without_declared(text: &str) -> Cow<'_, str> {
    let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
    let mut text = Cow::Borrowed(text);
    for secret in declared.iter() {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), MASK));
        }
    }
    text
}

/// The same in every text of a value, names included.
pub fn masked_json(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(without_declared(&text).into_owned()),
        Json::Array(all) => Json::Array(all.into_iter().map(masked_json).collect()),
        Json::Object(all) => {
            let masked = |(name, value): (String, Json)| (without_declared(&name).into_owned(), masked_json(value));
            Json::Object(all.into_iter().map(masked).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{masked, masked_arguments, masked_options, masked_value, masked_words};
    use super::*;

    #[test]
    fn a_declared_secret_is_masked_wherever_it_stands() {
        assert_eq!(declare(" short "), Err(TooShort { length: 5 }));
        declare("zq-open sesame\n").unwrap();
        declare("zq-open sesame, twice").unwrap();
        let secret = "zq-open sesame";
        assert!(any_declared() && has_declared(&format!("x{secret}y")) && !has_declared("zq-open"));
        assert_eq!(without_declared("say zq-open sesame, twice"), "say ***");
        let line = format!("echo {secret} there");
        assert_eq!(masked_words(&line), "echo *** there");
        assert_eq!(masked_arguments(["echo", secret, "there"]), ["echo", "***", "there"]);
        for masked in [masked(secret), masked_options(secret), masked_value("colour", secret)] {
            assert_eq!(masked, "***");
        }
        let json = serde_json::json!({"n": 5, "list": [{"zq-open sesame": line}]});
        assert_eq!(masked_json(json), serde_json::json!({"n": 5, "list": [{"***": "echo *** there"}]}));
    }
}
