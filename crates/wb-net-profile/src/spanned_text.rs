//! Text that records the source position of each byte, through decoding and expansion of variables.

use std::ops::Range;

/// A byte range in the profile's text.
pub(super) type Span = Range<usize>;

/// Decoded text with the source span of each byte.
#[derive(Debug, Clone)]
pub(super) struct SpannedText {
    text: String,
    spans: Vec<Span>,
    /// The source span of the whole; needed if it is empty.
    full_span: Span,
}

impl SpannedText {
    pub(super) fn new(full_span: Span) -> Self {
        Self { text: String::new(), spans: Vec::new(), full_span }
    }

    /// Decodes `whole` in `source`: XML entities are resolved, invalid ones are kept literally.
    pub(super) fn decode(source: &str, whole: Span) -> Self {
        let mut text = Self::new(whole.clone());
        let mut position = whole.start;
        while let Some(next) = source[position..whole.end].chars().next() {
            let (character, length) = decode_entity(&source[position..whole.end]).unwrap_or((next, next.len_utf8()));
            text.push(character, position..position + length);
            position += length;
        }
        text
    }

    fn push(&mut self, character: char, span: Span) {
        self.text.push(character);
        self.spans.resize(self.text.len(), span);
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        self.spans.extend_from_slice(&other.spans);
    }

    pub(super) fn push_spanned(&mut self, text: &str, span: Span) {
        self.text.push_str(text);
        self.spans.resize(self.text.len(), span);
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The part in this byte range of the decoded text.
    pub(super) fn slice(&self, range: Span) -> Self {
        let end = self.spans.get(range.start).map_or(self.full_span.end, |span| span.start);
        Self { text: self.text[range.clone()].to_owned(), spans: self.spans[range].to_vec(), full_span: end..end }
    }

    pub(super) fn trim(&self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        self.slice(start..start + self.text.trim().len())
    }

    pub(super) fn span(&self) -> Span {
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => first.start..last.end.max(first.end),
            _ => self.full_span.clone(),
        }
    }
}

/// Decodes the entity at the start of `text`; returns its character and its length.
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
    fn decoded_entities_keep_their_spans() {
        let source = "a&lt;b &amp &#x41;";
        let text = SpannedText::decode(source, 0..source.len());
        assert_eq!(text.as_str(), "a<b &amp A");
        assert_eq!(text.slice(1..2).span(), 1..5);
        assert_eq!(text.slice(9..10).span(), 12..18);
    }
}
