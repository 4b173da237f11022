//! Conversion of other programs' texts into valid names, and masking of their secrets.

use wb_model::TestName;
use wb_model::secrets::mask_command_line;

/// Converts a text into a part of a name; invalid characters become `-`.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(100);
    let slug = slug.trim_matches(['-', '.']);
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}

/// Name of a test: a prefix that no built-in test has, and the other program's name for it.
pub(crate) fn test_name(prefix: &str, text: &str) -> TestName {
    valid_name(&format!("{prefix}-{}", slug(text)))
}

/// `name` must be valid.
pub(crate) fn valid_name(name: &str) -> TestName {
    TestName::new(name).unwrap_or_else(|_| unreachable!("`{name}` is a valid name"))
}

/// Masks the secrets of a command line; if there are any, both lines are added to `secrets`.
pub(crate) fn mask_secrets(line: &str, secrets: &mut Vec<(String, String)>) -> String {
    let masked = mask_command_line(line);
    if masked != line {
        secrets.push((line.to_owned(), masked.clone()));
    }
    masked
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_characters_of_names_are_preserved() {
        assert_eq!(slug("7-Zip Compression (v2)"), "7-Zip-Compression-v2");
        assert_eq!([slug("é/"), slug(".."), slug("")], ["unnamed", "unnamed", "unnamed"]);
    }

    proptest! {
        #[test]
        fn every_text_becomes_a_valid_name(text: String) {
            test_name("pts", &text);
            prop_assert!(wb_model::ProfileName::new(slug(&text)).is_ok());
        }
    }
}
