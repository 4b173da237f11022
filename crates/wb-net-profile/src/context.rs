//! State of a parse: the source text, its variables, and the diagnostics so far.

use std::collections::BTreeSet;

use wb_diagnostics::{Diagnostic, SourceText, suggest};

use super::diagnostic::{ProfileDiagnostics, ProfileNote};
use super::spanned_text::{Span, SpannedText};
use super::variables::{Variables, name_length};

/// Upper limit for the length of an expanded value; without a limit, a small file could demand any amount of memory.
const MAX_VALUE_LENGTH: usize = 64 * 1024;

pub(super) struct ParseContext<'a> {
    pub(super) source: &'a SourceText,
    variables: &'a Variables,
    unset: BTreeSet<String>,
    used: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
    notes: Vec<ProfileNote>,
}

impl<'a> ParseContext<'a> {
    pub(super) fn new(source: &'a SourceText, variables: &'a Variables) -> Self {
        Self {
            source,
            variables,
            unset: BTreeSet::new(),
            used: BTreeSet::new(),
            diagnostics: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn report(&mut self, span: Span, error: Diagnostic) {
        self.diagnostics.push(self.source.locate(span, error));
    }

    pub(super) fn add_note(&mut self, span: Span, message: impl Into<String>) {
        self.notes.push(ProfileNote::new(self.source, span, message));
    }

    pub(super) fn used_variables(&self) -> BTreeSet<String> {
        self.used.clone()
    }

    /// Number of errors so far; comparing it before and after a part tells whether that part has any.
    pub(super) fn error_count(&self) -> usize {
        self.diagnostics.len()
    }

    /// Returns the notes, or the diagnostics if there are any, in the order of the text.
    pub(super) fn finish(mut self) -> Result<Vec<ProfileNote>, ProfileDiagnostics> {
        self.notes.sort_by_key(ProfileNote::start);
        if self.diagnostics.is_empty() {
            return Ok(self.notes);
        }
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.location().map(|position| position.span.start));
        Err(ProfileDiagnostics::new(self.source, self.diagnostics))
    }

    /// Expands the variables in a text: `$name` where it is the whole value or an item of a list, `${name}` anywhere.
    /// Returns `None` if an error has been reported.
    pub(super) fn expand(&mut self, text: &SpannedText) -> Option<SpannedText> {
        let source = text.as_str();
        let mut expanded = SpannedText::new(text.span());
        let mut complete = true;
        let mut position = 0;
        while let Some(start) = source[position..].find('$').map(|found| position + found) {
            let Some((name, end)) = find_variable(source, start) else {
                if start == 0 {
                    self.report(text.span(), invalid_variable(source));
                    return None;
                }
                // A dollar sign inside a value is literal, as in uperf.
                expanded.append(&text.slice(position..start + 1));
                position = start + 1;
                continue;
            };
            expanded.append(&text.slice(position..start));
            self.used.insert(name.to_owned());
            let span = text.slice(start..end).span();
            match self.variables.get(name) {
                Some(value) => expanded.push_spanned(&value, span),
                None => {
                    complete = false;
                    self.report_unset(name, span);
                }
            }
            position = end;
            if expanded.as_str().len() > MAX_VALUE_LENGTH {
                let help = "a variable stands for one value or a list of options";
                self.report(
                    text.span(),
                    Diagnostic::labelled("value too long: more than 64 KiB with its variables expanded", "here")
                        .with_help(help),
                );
                return None;
            }
        }
        expanded.append(&text.slice(position..source.len()));
        complete.then_some(expanded)
    }

    /// Reports an unset variable once, at its first use.
    fn report_unset(&mut self, name: &str, span: Span) {
        if !self.unset.insert(name.to_owned()) {
            return;
        }
        let error = Diagnostic::labelled(format!("the variable `{name}` is not set"), "used here")
            .with_suggestion(suggest(name, self.variables.names().filter(|candidate| *candidate != name)))
            .with_help(format!("`--var {name}=VALUE` sets it"));
        self.report(span, error);
    }
}

/// The variable whose reference starts at `start`, and the end of the reference.
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

fn invalid_variable(text: &str) -> Diagnostic {
    let name = &text[1..1 + name_length(&text[1..])];
    let error = Diagnostic::labelled(format!("invalid variable `{text}`"), "not a variable");
    match name {
        "" => error.with_help("a variable is written `$name`, or `${name}` inside other text"),
        _ => error.with_help(format!("inside other text, a variable is written `${{{name}}}`")),
    }
}
