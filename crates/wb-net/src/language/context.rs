//! State of a parse: the source text, its variables, and the diagnostics so far.

use std::collections::BTreeSet;

use super::diagnostic::{ProfileDiagnostic, ProfileNote};
use super::nearest::nearest;
use super::spanned_text::{Span, SpannedText};
use super::variables::{Variables, name_length};

/// No value that makes sense is longer; without a limit, a small file could ask for any amount of memory.
const MAX_VALUE_LENGTH: usize = 64 * 1024;

/// What is wrong with something, wherever that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParseError {
    message: String,
    label: String,
    suggestion: Option<String>,
    help: Option<String>,
}

impl ParseError {
    pub(super) fn new(message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { message: message.into(), label: label.into(), suggestion: None, help: None }
    }

    /// With the way out.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether the way out is told.
    pub(super) fn has_help(&self) -> bool {
        self.help.is_some()
    }

    /// With what was probably meant, if anything known is near.
    pub(super) fn suggest<'a>(mut self, given: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        if let Some(near) = nearest(given, known) {
            self.label = format!("did you mean `{near}`?");
            self.suggestion = Some(near.to_owned());
        }
        self
    }
}

/// The state of reading one profile.
pub(super) struct ParseContext<'a> {
    /// The profile's text.
    pub(super) source: &'a str,
    variables: &'a Variables,
    lines: Vec<usize>,
    unset: BTreeSet<String>,
    used: BTreeSet<String>,
    diagnostics: Vec<ProfileDiagnostic>,
    notes: Vec<ProfileNote>,
}

impl<'a> ParseContext<'a> {
    pub(super) fn new(source: &'a str, variables: &'a Variables) -> Self {
        let lines = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self {
            source,
            variables,
            lines,
            unset: BTreeSet::new(),
            used: BTreeSet::new(),
            diagnostics: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn report(&mut self, span: Span, wrong: ParseError) {
        let (line, column) = self.line_and_column(span.start);
        let text = self.source.get(span.clone()).unwrap_or_default().to_owned();
        let ParseError { message, label, suggestion, help } = wrong;
        self.diagnostics.push(ProfileDiagnostic { span, line, column, text, message, label, suggestion, help });
    }

    pub(super) fn add_note(&mut self, span: Span, message: impl Into<String>) {
        let (line, column) = self.line_and_column(span.start);
        self.notes.push(ProfileNote { span, line, column, message: message.into() });
    }

    /// The variables that have been used so far.
    pub(super) fn used_variables(&self) -> BTreeSet<String> {
        self.used.clone()
    }

    /// How many faults there are so far; tells whether a part has any.
    pub(super) fn error_count(&self) -> usize {
        self.diagnostics.len()
    }

    /// What was found, in the text's order.
    pub(super) fn finish(mut self) -> Result<Vec<ProfileNote>, Vec<ProfileDiagnostic>> {
        self.diagnostics.sort_by_key(|fault| fault.span.start);
        self.notes.sort_by_key(|note| note.span.start);
        if self.diagnostics.is_empty() { Ok(self.notes) } else { Err(self.diagnostics) }
    }

    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.lines[line - 1];
        (line, self.source.get(start..at).map_or(1, |before| before.chars().count() + 1))
    }

    /// The text with its variables filled in: `$name` where it stands alone or in a list, `${name}` anywhere.
    ///
    /// `None` if that cannot be done, which has then been reported.
    pub(super) fn expand(&mut self, text: &SpannedText) -> Option<SpannedText> {
        let given = text.as_str();
        let mut expanded = SpannedText::new(text.span());
        let mut complete = true;
        let mut at = 0;
        while let Some(start) = given[at..].find('$').map(|found| at + found) {
            let Some((name, end)) = find_variable(given, start) else {
                if start == 0 {
                    self.report(text.span(), invalid_variable(given));
                    return None;
                }
                // A dollar sign amid a value stands for itself, as it does for uperf.
                expanded.append(&text.slice(at..start + 1));
                at = start + 1;
                continue;
            };
            expanded.append(&text.slice(at..start));
            self.used.insert(name.to_owned());
            let place = text.slice(start..end).span();
            match self.variables.get(name) {
                Some(value) => expanded.push_spanned(&value, place),
                None => {
                    complete = false;
                    self.report_unset(name, place);
                }
            }
            at = end;
            if expanded.as_str().len() > MAX_VALUE_LENGTH {
                let help = "a variable stands for one value or a list of options";
                self.report(text.span(), ParseError::new("this value grows longer than 64 KiB", "here").help(help));
                return None;
            }
        }
        expanded.append(&text.slice(at..given.len()));
        complete.then_some(expanded)
    }

    /// Reports a variable once, at its first place.
    fn report_unset(&mut self, name: &str, place: Span) {
        if !self.unset.insert(name.to_owned()) {
            return;
        }
        let wrong = ParseError::new(format!("the variable `{name}` is not set, or empty"), "used here")
            .suggest(name, self.variables.names().filter(|given| *given != name))
            .help(format!("`--var {name}=VALUE` sets it"));
        self.report(place, wrong);
    }
}

/// The variable that is named at `start` of `text`, and where that ends.
fn find_variable(text: &str, start: usize) -> Option<(&str, usize)> {
    let rest = &text[start + 1..];
    if let Some(rest) = rest.strip_prefix('{') {
        let length = name_length(rest);
        let named = length > 0 && rest[length..].starts_with('}');
        return named.then(|| (&rest[..length], start + length + 3));
    }
    let (name, after) = rest.split_at(name_length(rest));
    let alone = start == 0 && after.is_empty();
    let in_list = text[..start].trim_end().ends_with(['(', ',']) && after.trim_start().starts_with([',', ')']);
    (!name.is_empty() && (alone || in_list)).then_some((name, start + 1 + name.len()))
}

fn invalid_variable(text: &str) -> ParseError {
    let name = &text[1..1 + name_length(&text[1..])];
    let wrong = ParseError::new(format!("`{text}` names no variable"), "not a variable");
    match name {
        "" => wrong.help("a variable is written `$name`, or `${name}` amid other text"),
        _ => wrong.help(format!("amid other text, a variable is written `${{{name}}}`")),
    }
}
