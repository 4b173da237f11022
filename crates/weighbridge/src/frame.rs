//! The frame that shows where a mistake stands: the line of its source, with the place underlined.

use std::fmt;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents,
};

/// The longest line that is shown whole, in characters.
const MAX_LINE: usize = 100;
/// How much of a longer line is shown before the place, in characters.
const CONTEXT_BEFORE: usize = 24;
/// How much of a longer line is shown in all, in characters.
const WINDOW: usize = 76;
/// What stands for the rest of a line.
const ELLIPSIS: &str = "…";

/// Draws the frame of a place, line by line; nothing where the source does not have it.
pub(crate) fn render_frame(source: &dyn SourceCode, label: LabeledSpan, colour: bool) -> String {
    match cut_source(source, &label) {
        Some((window, label)) => render(&FramedSource { code: &window, label }, colour),
        None => render(&FramedSource { code: source, label }, colour),
    }
}

fn render(framed: &FramedSource<'_>, colour: bool) -> String {
    let mut text = String::new();
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler =
        GraphicalReportHandler::new_themed(theme).with_links(false).with_context_lines(1).with_wrap_lines(false);
    // What cannot be drawn is told by its message alone.
    let _ = handler.render_report(&mut text, framed);
    text.lines().skip_while(|line| !line.contains('╭')).map(|line| format!("{line}\n")).collect()
}

/// A place of a source, without a message.
struct FramedSource<'a> {
    code: &'a dyn SourceCode,
    label: LabeledSpan,
}

impl fmt::Debug for FramedSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framed").field("label", &self.label).finish_non_exhaustive()
    }
}

impl fmt::Display for FramedSource<'_> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for FramedSource<'_> {}

impl Diagnostic for FramedSource<'_> {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(self.label.clone())))
    }
}

/// The part of a long line around a place.
#[derive(Debug)]
struct SourceWindow {
    name: Option<String>,
    text: String,
    /// The line and the column of the place, from 0.
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
        Ok(Box::new(match &self.name {
            Some(name) => MietteSpanContents::new_named(name.clone(), data, span, self.line, self.column, 1),
            None => MietteSpanContents::new(data, span, self.line, self.column, 1),
        }))
    }
}

/// The window around a place and the place within it, where one of the lines that would be shown is too long.
fn cut_source(source: &dyn SourceCode, label: &LabeledSpan) -> Option<(SourceWindow, LabeledSpan)> {
    let shown = source.read_span(label.inner(), 1, 1).ok()?;
    let exact = source.read_span(label.inner(), 0, 0).ok()?;
    let text = std::str::from_utf8(shown.data()).ok()?;
    if text.lines().all(|line| line.chars().count() <= MAX_LINE) {
        return None;
    }
    let at = label.offset().checked_sub(shown.span().offset())?;
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let (window, place) = cut_line(line, at - start, label.len());
    let source = SourceWindow {
        name: exact.name().map(str::to_owned),
        text: window,
        line: exact.line(),
        column: exact.column(),
    };
    Some((source, LabeledSpan::new(label.label().map(str::to_owned), place.0, place.1)))
}

/// Cuts a line to what stands around a place, given by its first byte and its length; the place in what is left.
fn cut_line(line: &str, at: usize, len: usize) -> (String, (usize, usize)) {
    let chars: Vec<usize> = line.char_indices().map(|(byte, _)| byte).chain([line.len()]).collect();
    let last = chars.len() - 1;
    let place = chars.partition_point(|byte| *byte < at).min(last);
    let from = if last <= WINDOW { 0 } else { place.saturating_sub(CONTEXT_BEFORE).min(last - WINDOW) };
    let to = (from + WINDOW).min(last);
    let (before, after) = (if from > 0 { ELLIPSIS } else { "" }, if to < last { ELLIPSIS } else { "" });
    let end = (at + len).min(chars[to]);
    let text = format!("{before}{}{after}", &line[chars[from]..chars[to]]);
    (text, (before.len() + chars[place] - chars[from], end.saturating_sub(chars[place])))
}

#[cfg(test)]
mod tests {
    use miette::NamedSource;

    use super::*;

    fn of(text: &str, word: &str) -> String {
        let source = NamedSource::new("p.toml", text.to_owned());
        let at = text.find(word).unwrap();
        render_frame(&source, LabeledSpan::new(Some("here".to_owned()), at, word.len()), false)
    }

    #[test]
    fn a_short_line_is_shown_whole_with_its_neighbours() {
        let shown = of("one\ntwo three\nfour\n", "three");
        for line in ["[p.toml:2:5]", "1 │ one", "2 │ two three", "3 │ four", "╰── here"] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let list = (0..80).map(|number| format!("{number:04}")).collect::<Vec<_>>().join(", ");
        let text = format!("first\nx = [{list}]\nlast\n");
        for (word, place, line) in [
            ("0040", "[p.toml:2:246]", "2 │ …0036, 0037, 0038, 0039, 0040, "),
            ("x =", "[p.toml:2:1]", "2 │ x = [0000, 0001, "),
            ("0079", "[p.toml:2:480]", ", 0078, 0079]\n"),
        ] {
            let shown = of(&text, word);
            assert!(shown.contains(place) && shown.contains(line), "{shown}");
            let lines: Vec<Vec<char>> = shown.lines().map(|line| line.chars().collect()).collect();
            assert!(lines.iter().all(|line| line.len() < 90), "{shown}");
            // The marks stand below the word.
            let at = lines[1].iter().collect::<String>().split(word).next().unwrap().chars().count();
            assert!(matches!(lines[2][at], '─' | '┬'), "{shown}");
        }
    }

    #[test]
    fn a_place_is_found_in_any_line_and_cut_between_characters() {
        for (line, at, len) in [("é".repeat(300), 200, 2), ("a".repeat(101), 101, 0), ("€".repeat(200), 0, 600)] {
            let (text, (start, length)) = cut_line(&line, at, len);
            assert!(text.chars().count() <= WINDOW + 2 && text.get(start..start + length).is_some(), "{text}");
        }
    }
}
