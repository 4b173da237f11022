use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::Diagnostic;

/// A source text that messages point into; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// A file's path, or `command line`.
    pub name: Arc<str>,
    pub text: Arc<str>,
}

/// A position in a text; displayed as `LINE:COLUMN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl SourceText {
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// The position of a byte; that of the end if the text is shorter.
    pub fn position(&self, position: usize) -> Position {
        let before = self.text.get(..position).unwrap_or(&self.text);
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        Position { line: before.matches('\n').count() + 1, column }
    }

    /// The byte range from a position, counted from 1 in lines and characters, to the end of its line; `None` if the text
    /// has no such line.
    pub fn rest_of_line(&self, line: u64, column: u64) -> Option<Range<usize>> {
        let (line, column) =
            (usize::try_from(line).ok()?.checked_sub(1)?, usize::try_from(column).ok()?.checked_sub(1)?);
        let content = self.text.split('\n').nth(line)?;
        let start = content.as_ptr() as usize - self.text.as_ptr() as usize;
        let first = content.char_indices().nth(column).map_or(content.len(), |(position, _)| position);
        Some(start + first..start + content.trim_end().len().max(first))
    }

    pub fn locate(&self, span: Range<usize>, diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.with_location(self, span)
    }
}

impl SourceCode for SourceText {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let part = (*self.text).read_span(span, lines_before, lines_after)?;
        let (data, line, column, count) = (part.data(), part.line(), part.column(), part.line_count());
        Ok(Box::new(MietteSpanContents::new_named(self.name.to_string(), data, *part.span(), line, column, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_in_lines_and_characters() {
        let source = SourceText::new("x.toml", "a = 1\né = 2\n");
        assert_eq!(source.position(9).to_string(), "2:3");
        assert_eq!(source.position(900).to_string(), "3:1");
    }

    #[test]
    fn the_rest_of_a_line_ends_before_its_newline() {
        let source = SourceText::new("x.yaml", "a: 1\né: 22  \n");
        let rest = |line, column| source.rest_of_line(line, column).map(|range| &source.text[range]);
        assert_eq!((rest(1, 1), rest(2, 2), rest(2, 4)), (Some("a: 1"), Some(": 22"), Some("22")));
        // A position behind the end of a line is at its end.
        assert_eq!(rest(1, 9), Some(""));
        assert_eq!((rest(4, 1), rest(0, 1), rest(1, 0)), (None, None, None));
    }
}
