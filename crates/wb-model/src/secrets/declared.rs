//! Secrets that the user declared: they are masked wherever they stand, whatever stands before them.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use serde_json::Value as Json;

use super::MASK;

/// Those of this process, the longest first: one may be a part of another.
static DECLARED: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Shorter ones would be masked all over, as parts of other words.
pub const MIN_SECRET_LENGTH: usize = 6;

/// Something that can be no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret of {length} characters would be masked all over, as a part of other words: {MIN_SECRET_LENGTH} are the fewest"
)]
pub struct SecretTooShort {
    /// How long it is.
    pub length: usize,
}

/// Declares a secret of this process: whatever it records from now on has `***` in its place. Blanks around it are none
/// of it.
///
/// # Errors
/// When it is too short to be told from other words.
pub fn declare(secret: &str) -> Result<(), SecretTooShort> {
    let secret = secret.trim();
    if secret.chars().count() < MIN_SECRET_LENGTH {
        return Err(SecretTooShort { length: secret.chars().count() });
    }
    let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
    if !declared.iter().any(|known| known == secret) {
        declared.push(secret.to_owned());
        declared.sort_by_key(|known| std::cmp::Reverse(known.len()));
    }
    Ok(())
}

/// Whether any is declared.
pub fn has_declared_secrets() -> bool {
    !DECLARED.read().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Whether a declared secret stands in this text.
pub fn contains_declared(text: &str) -> bool {
    DECLARED.read().unwrap_or_else(PoisonError::into_inner).iter().any(|secret| text.contains(secret.as_str()))
}

/// A text with all declared secrets masked.
pub fn mask_declared(text: &str) -> Cow<'_, str> {
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
pub fn mask_declared_json(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(mask_declared(&text).into_owned()),
        Json::Array(all) => Json::Array(all.into_iter().map(mask_declared_json).collect()),
        Json::Object(all) => {
            let masked = |(name, value): (String, Json)| (mask_declared(&name).into_owned(), mask_declared_json(value));
            Json::Object(all.into_iter().map(masked).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{mask_arguments, mask_option, mask_options, mask_value, mask_words};
    use super::*;

    #[test]
    fn a_declared_secret_is_masked_wherever_it_stands() {
        assert_eq!(declare(" short "), Err(SecretTooShort { length: 5 }));
        declare("zq-open sesame\n").unwrap();
        declare("zq-open sesame, twice").unwrap();
        let secret = "zq-open sesame";
        assert!(has_declared_secrets() && contains_declared(&format!("x{secret}y")) && !contains_declared("zq-open"));
        assert_eq!(mask_declared("say zq-open sesame, twice"), "say ***");
        let line = format!("echo {secret} there");
        assert_eq!(mask_words(&line), "echo *** there");
        assert_eq!(mask_arguments(["echo", secret, "there"]), ["echo", "***", "there"]);
        for masked in [mask_option(secret), mask_options(secret), mask_value("colour", secret)] {
            assert_eq!(masked, "***");
        }
        let json = serde_json::json!({"n": 5, "list": [{"zq-open sesame": line}]});
        assert_eq!(mask_declared_json(json), serde_json::json!({"n": 5, "list": [{"***": "echo *** there"}]}));
    }
}
