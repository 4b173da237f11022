//! Patterns: parts of a text, globs and regular expressions.

use globset::{Glob, GlobMatcher};
use regex::Regex;

use super::SelectionError;

#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Contained in the text; case-sensitive.
    Substring(String),
    /// `glob:`, matches the whole text.
    Glob(GlobMatcher),
    /// `re:`, matches a part of the text.
    Regex(Regex),
}

impl Pattern {
    /// Parses a pattern that is neither an alias nor a negation.
    pub(super) fn parse(text: &str) -> Result<Self, SelectionError> {
        let invalid = |reason: String| SelectionError::InvalidPattern { pattern: text.to_owned(), reason };
        if text.is_empty() {
            return Err(invalid("expected patterns separated by `|`, such as `rust|go`".to_owned()));
        }
        if let Some(glob) = text.strip_prefix("glob:") {
            let glob = Glob::new(glob).map_err(|error| invalid(format!("expected a glob: {}", error.kind())))?;
            return Ok(Self::Glob(glob.compile_matcher()));
        }
        if let Some(regex) = text.strip_prefix("re:") {
            let regex =
                Regex::new(regex).map_err(|error| invalid(format!("expected a regular expression: {error}")))?;
            return Ok(Self::Regex(regex));
        }
        Ok(Self::Substring(text.to_owned()))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Substring(part) => text.contains(part.as_str()),
            Self::Glob(glob) => glob.is_match(text),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Splits a filter at each `|` that is not within parentheses: a regular expression may have alternatives of its own.
pub(super) fn split(filter: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (position, character) in filter.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => {
                parts.push(&filter[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    parts.push(&filter[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_parts_of_a_text_unless_they_say_otherwise() {
        let matches = |pattern: &str, text: &str| Pattern::parse(pattern).expect("valid").matches(text);
        assert!(matches("quiche", "tokio-quiche") && !matches("Quiche", "tokio-quiche"));
        assert!(matches("glob:*quiche", "tokio-quiche") && !matches("glob:quiche", "tokio-quiche"));
        assert!(matches("re:^go-v(0|1)", "go-v0.45") && !matches("re:^v", "go-v0.45"));
        for invalid in ["", "glob:[", "re:("] {
            Pattern::parse(invalid).expect_err(invalid);
        }
    }

    #[test]
    fn alternatives_of_a_regular_expression_are_not_split() {
        assert_eq!(split("a|re:(b|c)d|e"), ["a", "re:(b|c)d", "e"]);
        assert_eq!(split("a x b (tcp, tls)|c"), ["a x b (tcp, tls)", "c"]);
        assert_eq!(split("|"), ["", ""]);
    }
}
