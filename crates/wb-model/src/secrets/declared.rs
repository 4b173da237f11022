//! Secrets declared by the user: masked wherever they occur.

use std::borrow::Cow;
use std::io;
use std::sync::{PoisonError, RwLock};

use serde_json::Value as Json;

use super::MASK;

/// Declared secrets of this process, longest first, because one may be a part of another.
static DECLARED: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Minimum length; shorter secrets would be masked as parts of other words.
pub const MIN_SECRET_LENGTH: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("secret too short: {length} characters, expected at least {MIN_SECRET_LENGTH}")]
pub struct SecretTooShort {
    pub length: usize,
}

/// Declares a secret of this process: it is replaced by `***` in everything recorded from now on. White space around it
/// is ignored. Fails if it is too short to be distinguished from other words.
pub fn declare(secret: &str) -> Result<(), SecretTooShort> {
    let secret = secret.trim();
    if secret.chars().count() < MIN_SECRET_LENGTH {
        return Err(SecretTooShort { length: secret.chars().count() });
    }
    let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
    if !declared.iter().any(|existing| existing == secret) {
        declared.push(secret.to_owned());
        declared.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }
    Ok(())
}

pub fn has_declared_secrets() -> bool {
    !DECLARED.read().unwrap_or_else(PoisonError::into_inner).is_empty()
}

pub fn contains_declared(text: &str) -> bool {
    DECLARED.read().unwrap_or_else(PoisonError::into_inner).iter().any(|secret| text.contains(secret.as_str()))
}

/// Whether what a reader yields contains a declared secret, as it is or as in a string of JSON.
pub fn reader_contains_declared(mut reader: impl io::Read) -> io::Result<bool> {
    let declared = DECLARED.read().unwrap_or_else(PoisonError::into_inner);
    let escaped = declared.iter().map(|secret| escape_json(secret));
    let searched: Vec<String> = declared.iter().cloned().chain(escaped).collect();
    // What could be the beginning of a secret is searched again with the next part.
    let Some(overlap) = searched.iter().map(|secret| secret.len() - 1).max() else { return Ok(false) };
    let mut buffer = vec![0; overlap + (1 << 16)];
    let mut filled = 0;
    loop {
        let length = reader.read(&mut buffer[filled..])?;
        if length == 0 {
            return Ok(false);
        }
        filled += length;
        if searched.iter().any(|secret| contains(&buffer[..filled], secret.as_bytes())) {
            return Ok(true);
        }
        let start = filled.saturating_sub(overlap);
        buffer.copy_within(start..filled, 0);
        filled -= start;
    }
}

/// A text as it is within the quotes of a string of JSON.
fn escape_json(text: &str) -> String {
    let quoted = Json::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Whether bytes contain others, which are not empty.
fn contains(bytes: &[u8], searched: &[u8]) -> bool {
    let Some(first) = searched.first() else { return false };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        if rest[at..].starts_with(searched) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

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

/// Masks all declared secrets in every string of a JSON value, including names.
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
    use super::super::{mask_arguments, mask_command_line, mask_option, mask_options, mask_value};
    use super::*;

    #[test]
    fn a_declared_secret_is_masked_everywhere() {
        assert_eq!(declare(" short "), Err(SecretTooShort { length: 5 }));
        declare("zq-open sesame\n").unwrap();
        declare("zq-open sesame, twice").unwrap();
        let secret = "zq-open sesame";
        assert!(has_declared_secrets() && contains_declared(&format!("x{secret}y")) && !contains_declared("zq-open"));
        assert_eq!(mask_declared("say zq-open sesame, twice"), "say ***");
        let line = format!("echo {secret} there");
        assert_eq!(mask_command_line(&line), "echo *** there");
        assert_eq!(mask_arguments(["echo", secret, "there"]), ["echo", "***", "there"]);
        for masked in [mask_option(secret), mask_options(secret), mask_value("colour", secret)] {
            assert_eq!(masked, "***");
        }
        let across_reads = format!("{}{secret}", "z".repeat((1 << 16) - 5));
        assert!(reader_contains_declared(across_reads.as_bytes()).unwrap());
        assert!(!reader_contains_declared(&across_reads.as_bytes()[..across_reads.len() - 1]).unwrap());
        declare("zq-\"quoted\\").unwrap();
        assert!(reader_contains_declared(&br#"{"x": "of zq-\"quoted\\"}"#[..]).unwrap());
        assert!(reader_contains_declared(&br#"of zq-"quoted\"#[..]).unwrap());
        let json = serde_json::json!({"n": 5, "list": [{"zq-open sesame": line}]});
        assert_eq!(mask_declared_json(json), serde_json::json!({"n": 5, "list": [{"***": "echo *** there"}]}));
    }
}
