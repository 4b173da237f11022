//! Texts within Markdown as GitHub renders it.

use wb_model::escape_bidi_controls;

/// Puts a text on one line, of which nothing is markup: special characters have a backslash.
pub(crate) fn escape(text: &str) -> String {
    let is_special = |letter: char| r"\|<*`[".contains(letter);
    let text = on_one_line(text);
    text.chars().flat_map(|letter| is_special(letter).then_some('\\').into_iter().chain([letter])).collect()
}

/// Formats a text as code, unchanged but for line ends; `|`, which would end a cell of a table, has the backslash that
/// GitHub removes even in code.
pub(crate) fn code(text: &str) -> String {
    let text = on_one_line(text).replace('|', "\\|");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // One space on either side is removed, unless there is nothing else.
    let is_blank = !text.is_empty() && text.trim_matches(' ').is_empty();
    let needs_space = text.is_empty() || text.starts_with([' ', '`']) || text.ends_with([' ', '`']);
    let pad = if needs_space && !is_blank { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn on_one_line(text: &str) -> String {
    escape_bidi_controls(text).replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_unchanged() {
        let cases = [
            ("a/b:n=1", "`a/b:n=1`"),
            ("a<b>&amp;*c*", "`a<b>&amp;*c*`"),
            ("a`b", "``a`b``"),
            ("`a``b", "``` `a``b ```"),
            (" a", "`  a `"),
            ("  ", "`  `"),
            ("", "`  `"),
            ("a|b\nc", r"`a\|b c`"),
        ];
        cases.iter().for_each(|(text, expected)| assert_eq!(code(text), *expected, "{text:?}"));
    }

    #[test]
    fn nothing_changes_the_direction_of_text() {
        for mark in ['\u{202e}', '\u{2066}', '\u{200f}'] {
            let expected = format!("a\\u{{{:x}}}b", u32::from(mark));
            assert_eq!(escape(&format!("a{mark}b")), expected.replace('\\', "\\\\"));
            assert_eq!(code(&format!("a{mark}b")), format!("`{expected}`"));
        }
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escape("a|b *c* <d> `e` [g](h)\ni"), r"a\|b \*c\* \<d> \`e\` \[g](h) i");
    }
}
