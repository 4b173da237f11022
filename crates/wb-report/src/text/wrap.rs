//! Wraps text by its width on a terminal.

use unicode_width::UnicodeWidthChar;
use wb_model::escape_bidi_controls;

/// In columns.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Replaces control characters and escapes marks of direction, because results contain the output of other programs.
pub(super) fn sanitize(text: &str) -> String {
    let replacement = |c: char| if c.is_whitespace() { ' ' } else { '\u{fffd}' };
    let text = escape_bidi_controls(text.trim_end());
    text.chars().map(|c| if c.is_control() { replacement(c) } else { c }).collect()
}

/// The width in columns of the longest part without a line break opportunity.
pub(super) fn longest_part(text: &str) -> usize {
    unbreakable_parts(text, usize::MAX).iter().map(|piece| width(piece.trim_end())).max().unwrap_or(0)
}

/// Wraps a text into lines no wider than `limit`, after spaces, commas, slashes and bars, elsewhere only if necessary.
/// The continuation lines of an indented text are indented by two more columns.
pub(super) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let body = text.trim_start_matches(' ');
    let indent = text.len() - body.len();
    if indent == 0 || limit < indent + 3 || width(text) <= limit {
        return break_lines(text, limit.max(1));
    }
    let lines = break_lines(body, limit - indent - 2);
    let indented =
        |(index, line): (usize, String)| format!("{}{line}", " ".repeat(if index == 0 { indent } else { indent + 2 }));
    lines.into_iter().enumerate().map(indented).collect()
}

fn break_lines(text: &str, limit: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut columns = 0;
    for piece in unbreakable_parts(text, limit) {
        let full = lines.last().is_some_and(|line| !line.is_empty() && columns + width(piece.trim_end()) > limit);
        if full {
            lines.push(String::new());
            columns = 0;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&piece);
        }
        columns += width(&piece);
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

fn unbreakable_parts(text: &str, limit: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    for word in text.split_inclusive([' ', ',', '/', '|']) {
        let (mut piece, mut columns) = (String::new(), 0);
        for c in word.chars() {
            let more = c.width().unwrap_or(0);
            if c != ' ' && columns + more > limit {
                pieces.push(std::mem::take(&mut piece));
                columns = 0;
            }
            piece.push(c);
            columns += more;
        }
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_controls_the_terminal_or_the_direction() {
        assert_eq!(sanitize("a\x1b[31m\tb\u{202e}c\u{200f} "), "a\u{fffd}[31m b\\u{202e}c\\u{200f}");
    }

    #[test]
    fn lines_break_after_blanks_and_commas() {
        assert_eq!(wrap("block-size=4k,rw=read", 16), ["block-size=4k,", "rw=read"]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("read|randread|write", 14), ["read|randread|", "write"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("  grid=M, threads=2", 14), ["  grid=M,", "    threads=2"]);
    }

    #[test]
    fn text_without_break_opportunities_is_split_completely() {
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
    }

    #[test]
    fn escape_sequences_are_replaced() {
        assert_eq!(sanitize("fio:\u{1b}[2J\n failed\n"), "fio:\u{fffd}[2J  failed");
    }
}
