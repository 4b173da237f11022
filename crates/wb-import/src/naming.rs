//! Texts of other programs as names of ours, and without secrets.

use wb_model::TestName;
use wb_model::secrets::mask_words;

/// A text as a part of a name: what names cannot hold becomes `-`.
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

/// The name of a test: a prefix that no test of the program has, and what the other program calls it.
pub(crate) fn test_name(prefix: &str, text: &str) -> TestName {
    valid_name(&format!("{prefix}-{}", slug(text)))
}

/// A name that is known to be one.
pub(crate) fn valid_name(name: &str) -> TestName {
    TestName::new(name).unwrap_or_else(|_| unreachable!("`{name}` is a name"))
}

/// A command line without secrets. Where it held any, both are added to `secrets`.
pub(crate) fn mask_secrets(line: &str, secrets: &mut Vec<(String, String)>) -> String {
    let masked = mask_words(line);
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
    fn names_keep_what_they_can() {
        assert_eq!(slug("7-Zip Compression (v2)"), "7-Zip-Compression-v2");
        assert_eq!([slug("é/"), slug(".."), slug("")], ["unnamed", "unnamed", "unnamed"]);
    }

    proptest! {
        #[test]
        fn every_text_becomes_a_name(text: String) {
            test_name("pts", &text);
            prop_assert!(wb_model::ProfileName::new(slug(&text)).is_ok());
        }
    }
}
