//! Breaking text into lines, by the width a terminal gives it.

use unicode_width::UnicodeWidthChar;

/// The columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The text with what would move the cursor taken out: results carry the output of foreign tools.
pub(super) fn sanitize(text: &str) -> String {
    let visible = |c: char| if c.is_whitespace() { ' ' } else { '\u{fffd}' };
    text.trim_end().chars().map(|c| if c.is_control() { visible(c) } else { c }).collect()
}

/// The columns of the longest part that lines are not broken in.
pub(super) fn longest_part(text: &str) -> usize {
    unbreakable_parts(text, usize::MAX).iter().map(|piece| width(piece.trim_end())).max().unwrap_or(0)
}

/// Lines no wider than `limit`, broken after blanks, commas, slashes and bars, and elsewhere only where there are none.
/// Where the text is indented, its further lines are by two more.
pub(super) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let body = text.trim_start_matches(' ');
    let indent = text.len() - body.len();
    if indent == 0 || limit < indent + 3 || width(text) <= limit {
        return break_lines(text, limit.max(1));
    }
    let lines = break_lines(body, limit - indent - 2);
    let hang = |(at, line): (usize, String)| format!("{}{line}", " ".repeat(if at == 0 { indent } else { indent + 2 }));
    lines.into_iter().enumerate().map(hang).collect()
}

fn break_lines(text: &str, limit: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in unbreakable_parts(text, limit) {
        let full = lines.last().is_some_and(|line| !line.is_empty() && width(line) + width(piece.trim_end()) > limit);
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&piece);
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

/// What must stay together, each no wider than `limit`.
fn unbreakable_parts(text: &str, limit: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    for word in text.split_inclusive([' ', ',', '/', '|']) {
        let mut piece = String::new();
        for c in word.chars() {
            if c != ' ' && width(&piece) + c.width().unwrap_or(0) > limit {
                pieces.push(std::mem::take(&mut piece));
            }
            piece.push(c);
        }
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_after_blanks_and_commas() {
        assert_eq!(wrap("block-size=4k,rw=read", 16), ["block-size=4k,", "rw=read"]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("read|randread|write", 14), ["read|randread|", "write"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("  grid=M, threads=2", 14), ["  grid=M,", "    threads=2"]);
    }

    #[test]
    fn what_has_no_place_to_break_is_cut_and_loses_nothing() {
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
    }

    #[test]
    fn an_escape_sequence_does_not_reach_the_terminal() {
        assert_eq!(sanitize("fio:\u{1b}[2J\n failed\n"), "fio:\u{fffd}[2J  failed");
    }
}
