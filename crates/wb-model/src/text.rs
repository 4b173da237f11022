//! Characters that a terminal would not show as they are.

use std::borrow::Cow;

/// Whether a character changes the direction of the text around it, so that a name can be shown as another one.
pub fn is_bidi_control(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character controls a terminal, or the direction of the text on it.
pub fn is_unprintable(letter: char) -> bool {
    letter.is_control() || is_bidi_control(letter)
}

/// A text with its bidirectional controls (Bidi_Control of Unicode) as escapes: `\u{202e}`.
pub fn escape_bidi_controls(text: &str) -> Cow<'_, str> {
    // All of them begin with one of these bytes: most texts have neither.
    if !text.bytes().any(|byte| matches!(byte, 0xd8 | 0xe2)) || !text.contains(is_bidi_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_bidi_control(letter) { escaped.extend(letter.escape_unicode()) } else { escaped.push(letter) }
    }
    Cow::Owned(escaped)
}

/// A text with everything that controls a terminal as escapes (`\u{1b}`), except line feeds, tabs and colours.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| is_unprintable(letter) && !matches!(letter, '\n' | '\t');
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = colour_length(rest).unwrap_or(letter.len_utf8());
        if is_escaped(letter) && colour_length(rest).is_none() {
            escaped.extend(letter.escape_unicode())
        } else {
            escaped.push_str(&rest[..length])
        }
        rest = &rest[length..];
    }
    Cow::Owned(escaped)
}

/// The length in bytes of the colour at the start of a text: ECMA-48's SELECT GRAPHIC RENDITION with attributes that
/// our own output has. Others could hide a text: 8 conceals it, and a background of its own colour too.
fn colour_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    let is_colour = parameters[..end].split(';').all(|attribute| {
        attribute.is_empty() || matches!(attribute.parse(), Ok(0_u8..=4 | 22..=24 | 31..=37 | 39 | 90..=97))
    });
    (is_colour && parameters[end..].starts_with('m')).then_some("\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_controls_but_colours_are_escaped() {
        for text in ["", "größe\ta\n", "\u{1b}[1;31merror\u{1b}[0m: x"] {
            assert_eq!(escape_controls(text), text);
        }
        for (text, expected) in [
            ("a\u{1b}]0;title\u{7}b", "a\\u{1b}]0;title\\u{7}b"),
            ("\u{1b}[2J\u{1b}[1mx\u{1b}[H", "\\u{1b}[2J\u{1b}[1mx\\u{1b}[H"),
            ("50 %\r100 %\u{9b}1A\u{202e}x\u{1b}", "50 %\\u{d}100 %\\u{9b}1A\\u{202e}x\\u{1b}"),
            ("\u{1b}[38;5", "\\u{1b}[38;5"),
            ("a\u{1b}[8mhidden\u{1b}[0m", "a\\u{1b}[8mhidden\u{1b}[0m"),
            ("a\u{1b}[31;41mhidden", "a\\u{1b}[31;41mhidden"),
        ] {
            assert_eq!(escape_controls(text), expected);
        }
    }

    #[test]
    fn all_direction_marks_are_escaped_and_nothing_else() {
        // Bidi_Control of Unicode's PropList.txt.
        let marks = "\u{061c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        assert!(marks.chars().all(|mark| is_bidi_control(mark) && is_unprintable(mark)));
        assert_eq!((0..=u32::from(char::MAX)).filter_map(char::from_u32).filter(|c| is_bidi_control(*c)).count(), 12);
        for mark in marks.chars() {
            let expected = format!("a\\u{{{:x}}}b", u32::from(mark));
            assert_eq!(escape_bidi_controls(&format!("a{mark}b")), expected);
        }
        for text in ["", "größe 日本語 “x” 👩‍👩‍👧 ة", "a\tb\n\x1b[1m"] {
            assert!(matches!(escape_bidi_controls(text), Cow::Borrowed(same) if same == text));
        }
    }
}
