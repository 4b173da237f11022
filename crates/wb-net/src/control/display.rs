//! Formatting for error messages: excerpts of a peer's text without control characters, and durations.

use std::time::Duration;

const MAX_LENGTH: usize = 120;

/// Escapes the characters of a peer's text that would control or mislead a terminal
pub fn escape_control(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() || is_invisible(char) { escaped.extend(char.escape_default()) } else { escaped.push(char) }
    }
    escaped
}

/// Returns the start of a peer's text, escaped like [`escape_control`]
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => escape_control(&text[..end]) + "…",
        None => escape_control(text),
    }
}

/// Whether a character changes the text direction or is invisible
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_truncated_and_escapes_control_characters() {
        assert_eq!(excerpt("plain `text`"), "plain `text`");
        assert_eq!(excerpt("a\u{1b}[2J\n\u{202e}b"), "a\\u{1b}[2J\\n\\u{202e}b");
        assert_eq!(excerpt(&"x".repeat(1 << 20)).chars().count(), MAX_LENGTH + 1);
    }

    #[test]
    fn a_duration_has_its_unit() {
        assert_eq!(seconds(Duration::from_secs(10)), "10 s");
        assert_eq!(seconds(Duration::from_millis(250)), "0.25 s");
    }
}
