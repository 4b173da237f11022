//! A scanner for the tags of a profile's text.
//!
//! Not quick-xml: existing profiles leave tags open and values unquoted. quick-xml can be configured to accept that,
//! but it stops at the first ill-formed tag and does not give the positions of values. Both are needed to report every
//! error at its position.

use wb_diagnostics::Diagnostic;

use super::context::ParseContext;
use super::spanned_text::{Span, SpannedText};

#[derive(Debug)]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
    /// `</name>`
    pub(super) closing: bool,
    pub(super) span: Span,
    pub(super) name_span: Span,
}

#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) value: SpannedText,
}

/// Scans every tag, in order; anything else is reported.
pub(super) fn scan_tags(scope: &mut ParseContext) -> Vec<Tag> {
    let mut reader = TagScanner { text: &scope.source.text, at: 0, context: scope };
    let mut tags = Vec::new();
    reader.skip_if("\u{feff}");
    while reader.skip_text() {
        tags.extend(reader.scan_markup());
    }
    tags
}

struct TagScanner<'s, 'a> {
    text: &'a str,
    at: usize,
    context: &'s mut ParseContext<'a>,
}

impl TagScanner<'_, '_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_if(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        self.at += if found { expected.len() } else { 0 };
        found
    }

    fn skip_while(&mut self, predicate: impl Fn(char) -> bool) -> Span {
        let start = self.at;
        self.at += self.rest().find(|character| !predicate(character)).unwrap_or(self.rest().len());
        start..self.at
    }

    fn skip_blanks(&mut self) {
        self.skip_while(char::is_whitespace);
    }

    /// Skips to the next `<`; false if there is none. A stray `>` is ignored, as in uperf; other text is an error.
    fn skip_text(&mut self) -> bool {
        let span = self.skip_while(|character| character != '<');
        let text = &self.text[span.clone()];
        let junk = text.trim_matches(|character: char| character.is_whitespace() || character == '>');
        if !junk.is_empty() {
            let start = span.start + text.find(junk).unwrap_or(0);
            let error = Diagnostic::labelled("text outside of any tag", "here")
                .with_help("a profile consists of tags and of comments, `<!-- … -->`");
            self.context.report(start..start + junk.len(), error);
        }
        !self.rest().is_empty()
    }

    /// Scans what starts with `<`: a tag, or markup that is skipped.
    fn scan_markup(&mut self) -> Option<Tag> {
        for (start, end) in [("<!--", "-->"), ("<?", "?>"), ("<!", ">")] {
            let from = self.at;
            if self.skip_if(start) {
                match self.rest().find(end) {
                    Some(length) => self.at += length + end.len(),
                    None => {
                        self.at = self.text.len();
                        let error = Diagnostic::labelled(format!("unterminated `{start}`"), "starts here")
                            .with_help(format!("it ends with `{end}`"));
                        self.context.report(from..from + start.len(), error);
                    }
                }
                return None;
            }
        }
        self.scan_tag()
    }

    fn scan_tag(&mut self) -> Option<Tag> {
        let start = self.at;
        self.at += 1;
        self.skip_blanks();
        let closing = self.skip_if("/");
        self.skip_blanks();
        let name_span = self.skip_while(|c| !c.is_whitespace() && !"<>/=\"'".contains(c));
        let mut attributes = Vec::new();
        while self.has_more_attributes(start) {
            attributes.extend(self.scan_attribute());
        }
        let name = self.text[name_span.clone()].to_owned();
        if name.is_empty() {
            let error =
                Diagnostic::labelled("a tag without a name", "here").with_help("write `&lt;` for a literal `<`");
            self.context.report(start..self.at, error);
            return None;
        }
        Some(Tag { name, attributes, closing, span: start..self.at, name_span })
    }

    /// Whether an attribute follows; otherwise the end of the tag has been skipped.
    fn has_more_attributes(&mut self, start: usize) -> bool {
        self.skip_blanks();
        if self.skip_if("/>") || self.skip_if(">") {
            return false;
        }
        if self.rest().is_empty() || self.rest().starts_with('<') {
            let end = start + self.text[start..self.at].trim_end().len();
            let error = Diagnostic::labelled("unterminated tag", "starts here").with_help("it ends with `>` or `/>`");
            self.context.report(start..end, error);
            return false;
        }
        true
    }

    fn scan_attribute(&mut self) -> Option<Attribute> {
        let span = self.skip_while(|c| !c.is_whitespace() && !"<>/=\"'".contains(c));
        if span.is_empty() {
            return self.report_stray();
        }
        let name = self.text[span.clone()].to_owned();
        self.skip_blanks();
        if !self.skip_if("=") {
            let help = format!("write `{name}=\"…\"`");
            self.context.report(
                span,
                Diagnostic::labelled(format!("`{name}` has no value"), "a value is missing").with_help(help),
            );
            return None;
        }
        self.skip_blanks();
        let whole = self.scan_value();
        Some(Attribute { name, span, value: SpannedText::decode(self.text, whole) })
    }

    fn report_stray(&mut self) -> Option<Attribute> {
        let start = self.at;
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        let character = &self.text[start..self.at];
        let error = Diagnostic::labelled(format!("unexpected `{character}` in a tag"), "here")
            .with_help("attributes are written `name=\"value\"`");
        self.context.report(start..self.at, error);
        None
    }

    fn scan_value(&mut self) -> Span {
        for quote in ['"', '\''] {
            let opening = self.at;
            if self.rest().starts_with(quote) {
                self.at += 1;
                let whole = self.skip_while(|c| c != quote && c != '<');
                if !self.rest().starts_with(quote) {
                    let help =
                        format!("a value that starts with {quote} ends with {quote}; a `<` in it is written `&lt;`");
                    self.context.report(
                        opening..self.at,
                        Diagnostic::labelled("unterminated value", "starts here").with_help(help),
                    );
                    return whole;
                }
                self.at += 1;
                return whole;
            }
        }
        let whole = self.skip_while(|c| !c.is_whitespace() && c != '>' && c != '<');
        // In `<flowop type=nop/>` the slash belongs to the tag.
        if self.rest().starts_with('>') && self.text[whole.clone()].ends_with('/') {
            self.at -= 1;
            return whole.start..whole.end - 1;
        }
        whole
    }
}
