//! What reading a profile carries along: its text, its variables, and what was found wrong so far.

use std::collections::BTreeSet;

use super::fault::{Fault, Note};
use super::nearest::nearest;
use super::text::{Span, Text};
use super::variables::{Variables, name_length};

/// No value that makes sense is longer; without a limit, a small file could ask for any amount of memory.
const LONGEST_VALUE: usize = 64 * 1024;

/// What is wrong with something, wherever that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    message: String,
    label: String,
    suggestion: Option<String>,
    help: Option<String>,
}

impl Wrong {
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
    pub(super) fn near<'a>(mut self, given: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        if let Some(near) = nearest(given, known) {
            self.label = format!("did you mean `{near}`?");
            self.suggestion = Some(near.to_owned());
        }
        self
    }
}

/// The state of reading one profile.
pub(super) struct Scope<'a> {
    /// The profile's text.
    pub(super) source: &'a str,
    variables: &'a Variables,
    lines: Vec<usize>,
    unset: BTreeSet<String>,
    used: BTreeSet<String>,
    faults: Vec<Fault>,
    notes: Vec<Note>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(source: &'a str, variables: &'a Variables) -> Self {
        let lines = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self {
            source,
            variables,
            lines,
            unset: BTreeSet::new(),
            used: BTreeSet::new(),
            faults: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn fault(&mut self, span: Span, wrong: Wrong) {
        let (line, column) = self.position(span.start);
        let text = self.source.get(span.clone()).unwrap_or_default().to_owned();
        let Wrong { message, label, suggestion, help } = wrong;
        self.faults.push(Fault { span, line, column, text, message, label, suggestion, help });
    }

    pub(super) fn note(&mut self, span: Span, message: impl Into<String>) {
        let (line, column) = self.position(span.start);
        self.notes.push(Note { span, line, column, message: message.into() });
    }

    /// The variables that have been used so far.
    pub(super) fn used(&self) -> BTreeSet<String> {
        self.used.clone()
    }

    /// How many faults there are so far; tells whether a part has any.
    pub(super) fn fault_count(&self) -> usize {
        self.faults.len()
    }

    /// What was found, in the text's order.
    pub(super) fn finish(mut self) -> Result<Vec<Note>, Vec<Fault>> {
        self.faults.sort_by_key(|fault| fault.span.start);
        self.notes.sort_by_key(|note| note.span.start);
        if self.faults.is_empty() { Ok(self.notes) } else { Err(self.faults) }
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.lines[line - 1];
        (line, self.source.get(start..at).map_or(1, |before| before.chars().count() + 1))
    }

    /// The text with its variables filled in: `$name` where it stands alone or in a list, `${name}` anywhere.
    ///
    /// `None` if that cannot be done, which has then been reported.
    pub(super) fn expand(&mut self, text: &Text) -> Option<Text> {
        let given = text.as_str();
        let mut expanded = Text::new(text.span());
        let mut complete = true;
        let mut at = 0;
        while let Some(start) = given[at..].find('$').map(|found| at + found) {
            let Some((name, end)) = variable(given, start) else {
                if start == 0 {
                    self.fault(text.span(), not_a_variable(given));
                    return None;
                }
                // A dollar sign amid a value stands for itself, as it does for uperf.
                expanded.append(&text.part(at..start + 1));
                at = start + 1;
                continue;
            };
            expanded.append(&text.part(at..start));
            self.used.insert(name.to_owned());
            let place = text.part(start..end).span();
            match self.variables.get(name) {
                Some(value) => expanded.fill(&value, place),
                None => {
                    complete = false;
                    self.unset(name, place);
                }
            }
            at = end;
            if expanded.as_str().len() > LONGEST_VALUE {
                let help = "a variable stands for one value or a list of options";
                self.fault(text.span(), Wrong::new("this value grows longer than 64 KiB", "here").help(help));
                return None;
            }
        }
        expanded.append(&text.part(at..given.len()));
        complete.then_some(expanded)
    }

    /// Reports a variable once, at its first place.
    fn unset(&mut self, name: &str, place: Span) {
        if !self.unset.insert(name.to_owned()) {
            return;
        }
        let wrong = Wrong::new(format!("the variable `{name}` is not set, or empty"), "used here")
            .near(name, self.variables.names().filter(|given| *given != name))
            .help(format!("`--var {name}=VALUE` sets it"));
        self.fault(place, wrong);
    }
}

/// The variable that is named at `start` of `text`, and where that ends.
fn variable(text: &str, start: usize) -> Option<(&str, usize)> {
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

fn not_a_variable(text: &str) -> Wrong {
    let name = &text[1..1 + name_length(&text[1..])];
    let wrong = Wrong::new(format!("`{text}` names no variable"), "not a variable");
    match name {
        "" => wrong.help("a variable is written `$name`, or `${name}` amid other text"),
        _ => wrong.help(format!("amid other text, a variable is written `${{{name}}}`")),
    }
}
