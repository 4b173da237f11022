//! Words for people: a peer's words made harmless, and durations.

use std::time::Duration;

const MAX_LENGTH: usize = 120;

/// The start of what a peer said, without what would move a terminal's cursor or flood it
pub(super) fn excerpt(said: &str) -> String {
    let mut harmless = String::new();
    for (count, char) in said.chars().enumerate() {
        if count == MAX_LENGTH {
            harmless.push('…');
            break;
        }
        match char.is_control() || is_invisible(char) {
            true => harmless.extend(char.escape_default()),
            false => harmless.push(char),
        }
    }
    harmless
}

/// Characters that turn the direction of text or hide in it
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A duration in seconds, with its unit
pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_is_cut_and_cannot_move_the_cursor() {
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
