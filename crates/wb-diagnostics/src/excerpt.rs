//! Renders the source lines of a diagnostic with its location underlined.

use std::fmt;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan,
    SpanContents,
};

use crate::{Diagnostic, SourceText};

/// Maximum length of a line shown in full, in characters.
const MAX_LINE: usize = 100;
/// Number of characters shown before the position in a longer line.
const CONTEXT_BEFORE: usize = 24;
/// Number of characters shown of a longer line.
const WINDOW: usize = 76;
const ELLIPSIS: &str = "…";

/// Renders the source lines around a diagnostic, without its message and help; empty if it has no location.
pub fn render_excerpt(diagnostic: &Diagnostic, colour: bool) -> String {
    let label = miette::Diagnostic::labels(diagnostic).and_then(|mut labels| labels.next());
    let Some((location, label)) = diagnostic.location().zip(label) else { return String::new() };
    match cut_source(&location.source, &label) {
        Some((window, label)) => render(&LabelledSource { code: &window, label }, colour),
        None => render(&LabelledSource { code: &location.source, label }, colour),
    }
}

fn render(labelled: &LabelledSource<'_>, colour: bool) -> String {
    let mut text = String::new();
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler =
        GraphicalReportHandler::new_themed(theme).with_links(false).with_context_lines(1).with_wrap_lines(false);
    // If rendering fails, the message alone must do.
    let _ = handler.render_report(&mut text, labelled);
    text.lines().skip_while(|line| !line.contains('╭')).map(|line| format!("{line}\n")).collect()
}

struct LabelledSource<'a> {
    code: &'a dyn SourceCode,
    label: LabeledSpan,
}

impl fmt::Debug for LabelledSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LabelledSource").field("label", &self.label).finish_non_exhaustive()
    }
}

impl fmt::Display for LabelledSource<'_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for LabelledSource<'_> {}

impl miette::Diagnostic for LabelledSource<'_> {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(self.label.clone())))
    }
}

/// The part of a long line around a position.
#[derive(Debug)]
struct SourceWindow {
    name: String,
    text: String,
    /// Line and column of the position, from 0.
    line: usize,
    column: usize,
}

impl SourceCode for SourceWindow {
    fn read_span<'a>(
        &'a self,
        _: &SourceSpan,
        _: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (data, span) = (self.text.as_bytes(), (0, self.text.len()).into());
        Ok(Box::new(MietteSpanContents::new_named(self.name.clone(), data, span, self.line, self.column, 1)))
    }
}

/// Cuts out a window around a position if one of the shown lines is too long; also returns the position in it.
fn cut_source(source: &SourceText, label: &LabeledSpan) -> Option<(SourceWindow, LabeledSpan)> {
    let shown = source.read_span(label.inner(), 1, 1).ok()?;
    let exact = source.read_span(label.inner(), 0, 0).ok()?;
    let text = std::str::from_utf8(shown.data()).ok()?;
    if text.lines().all(|line| line.chars().count() <= MAX_LINE) {
        return None;
    }
    let position = label.offset().checked_sub(shown.span().offset())?;
    let start = text.get(..position)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let (window, place) = cut_line(line, position - start, label.len());
    let source =
        SourceWindow { name: source.name.to_string(), text: window, line: exact.line(), column: exact.column() };
    Some((source, LabeledSpan::new(label.label().map(str::to_owned), place.0, place.1)))
}

/// Cuts a line to the part around a position, given by first byte and length. Returns the part and the position in it.
fn cut_line(line: &str, position: usize, len: usize) -> (String, (usize, usize)) {
    let chars: Vec<usize> = line.char_indices().map(|(byte, _)| byte).chain([line.len()]).collect();
    let last = chars.len() - 1;
    let place = chars.partition_point(|byte| *byte < position).min(last);
    let from = if last <= WINDOW { 0 } else { place.saturating_sub(CONTEXT_BEFORE).min(last - WINDOW) };
    let to = (from + WINDOW).min(last);
    let (before, after) = (if from > 0 { ELLIPSIS } else { "" }, if to < last { ELLIPSIS } else { "" });
    let end = (position + len).min(chars[to]);
    let text = format!("{before}{}{after}", &line[chars[from]..chars[to]]);
    (text, (before.len() + chars[place] - chars[from], end.saturating_sub(chars[place])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt_of(text: &str, word: &str) -> String {
        let position = text.find(word).unwrap();
        let source = SourceText::new("p.toml", text);
        render_excerpt(
            &Diagnostic::at(&source, position..position + word.len(), "not shown", "here").with_help("not shown"),
            false,
        )
    }

    #[test]
    fn short_line_is_shown_in_full_with_its_neighbours() {
        let shown = excerpt_of("one\ntwo three\nfour\n", "three");
        assert!(!shown.contains("not shown"), "{shown}");
        for line in ["[p.toml:2:5]", "1 │ one", "2 │ two three", "3 │ four", "╰── here"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }

    #[test]
    fn long_line_is_cut_around_the_position() {
        let list = (0..80).map(|number| format!("{number:04}")).collect::<Vec<_>>().join(", ");
        let text = format!("first\nx = [{list}]\nlast\n");
        for (word, place, line) in [
            ("0040", "[p.toml:2:246]", "2 │ …0036, 0037, 0038, 0039, 0040, "),
            ("x =", "[p.toml:2:1]", "2 │ x = [0000, 0001, "),
            ("0079", "[p.toml:2:480]", ", 0078, 0079]\n"),
        ] {
            let shown = excerpt_of(&text, word);
            assert!(shown.contains(place) && shown.contains(line), "{shown}");
            let lines: Vec<Vec<char>> = shown.lines().map(|line| line.chars().collect()).collect();
            assert!(lines.iter().all(|line| line.len() < 90), "{shown}");
            // The underline is below the word.
            let index = lines[1].iter().collect::<String>().split(word).next().unwrap().chars().count();
            assert!(matches!(lines[2][index], '─' | '┬'), "{shown}");
        }
    }

    #[test]
    fn lines_are_cut_at_character_boundaries() {
        for (line, position, len) in [("é".repeat(300), 200, 2), ("a".repeat(101), 101, 0), ("€".repeat(200), 0, 600)]
        {
            let (text, (start, length)) = cut_line(&line, position, len);
            assert!(text.chars().count() <= WINDOW + 2 && text.get(start..start + length).is_some(), "{text}");
        }
    }
}
