//! A value of a profile that knows where each of its bytes was written, however it was decoded and filled in.

use std::ops::Range;

/// A place in the profile's text, in bytes.
pub(super) type Span = Range<usize>;

/// Decoded text with its places.
#[derive(Debug, Clone)]
pub(super) struct SpannedText {
    text: String,
    /// Where each byte of `text` comes from.
    spans: Vec<Span>,
    /// Where all of it stands; tells the place when it is empty.
    full_span: Span,
}

impl SpannedText {
    /// An empty one that stands at `whole`.
    pub(super) fn new(full_span: Span) -> Self {
        Self { text: String::new(), spans: Vec::new(), full_span }
    }

    /// The decoded text of `whole` in `source`: XML's entities are resolved, what only looks like one is kept.
    pub(super) fn decode(source: &str, whole: Span) -> Self {
        let mut text = Self::new(whole.clone());
        let mut at = whole.start;
        while let Some(next) = source[at..whole.end].chars().next() {
            let (character, length) = decode_entity(&source[at..whole.end]).unwrap_or((next, next.len_utf8()));
            text.push(character, at..at + length);
            at += length;
        }
        text
    }

    /// Adds a character that comes from `place`.
    fn push(&mut self, character: char, place: Span) {
        self.text.push(character);
        self.spans.resize(self.text.len(), place);
    }

    /// Adds all of `other`.
    pub(super) fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        self.spans.extend_from_slice(&other.spans);
    }

    /// Adds what stands for `place`.
    pub(super) fn push_spanned(&mut self, text: &str, place: Span) {
        self.text.push_str(text);
        self.spans.resize(self.text.len(), place);
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The part at these bytes of the decoded text.
    pub(super) fn slice(&self, range: Span) -> Self {
        let end = self.spans.get(range.start).map_or(self.full_span.end, |place| place.start);
        Self { text: self.text[range.clone()].to_owned(), spans: self.spans[range].to_vec(), full_span: end..end }
    }

    /// The part without blanks around it.
    pub(super) fn trim(&self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        self.slice(start..start + self.text.trim().len())
    }

    /// Where it was written.
    pub(super) fn span(&self) -> Span {
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => first.start..last.end.max(first.end),
            _ => self.full_span.clone(),
        }
    }
}

/// The entity that `text` starts with, and its length.
fn decode_entity(text: &str) -> Option<(char, usize)> {
    let name = text.strip_prefix('&')?;
    let name = &name[..name.bytes().take(10).position(|byte| byte == b';')?];
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((character, name.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_decoded_and_keep_their_places() {
        let source = "a&lt;b &amp &#x41;";
        let text = SpannedText::decode(source, 0..source.len());
        assert_eq!(text.as_str(), "a<b &amp A");
        assert_eq!(text.slice(1..2).span(), 1..5);
        assert_eq!(text.slice(9..10).span(), 12..18);
    }
}
