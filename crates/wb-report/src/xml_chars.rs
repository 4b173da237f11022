//! The characters that an XML document may have.

/// Whether XML 1.0 (section 2.2, Char) allows a character, escaped or not: most control characters are not.
pub(crate) fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..)
}

pub(crate) fn replace_forbidden(text: &str) -> String {
    text.replace(|character| !is_allowed(character), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_xml_forbids_is_replaced() {
        let allowed = "\t\n\r ~\u{7f}\u{80}\u{9f}\u{d7ff}\u{e000}\u{fffd}\u{10000}\u{1ffff}\u{10ffff}";
        assert_eq!(replace_forbidden(allowed), allowed);
        assert_eq!(replace_forbidden("\0\u{8}\u{b}\u{c}\u{e}\u{1f}\u{fffe}\u{ffff}"), "\u{fffd}".repeat(8));
    }
}
