//! The options of a flowop: blank-separated words, `key=value` or alone.

use super::context::{ParseContext, ParseError};
use super::keywords::{FlowopFamily, OPTIONS, OptionSpec, REMOVED};
use super::spanned_text::{Span, SpannedText};

/// The options that mean something on a flowop.
pub(super) struct FlowopOptions {
    given: Vec<GivenOption>,
    /// Whether some are not understood, so that nobody knows what is missing.
    is_incomplete: bool,
}

struct GivenOption {
    spec: &'static OptionSpec,
    span: Span,
    /// None of a flag, and of what cannot be read, which has been reported.
    value: Option<SpannedText>,
}

impl FlowopOptions {
    /// Reads them for a flowop of type `on`; those that mean nothing there become notes.
    pub(super) fn parse(scope: &mut ParseContext, text: Option<&SpannedText>, on: &str, family: FlowopFamily) -> Self {
        let (words, complete) = text.map_or((Vec::new(), true), |text| split_and_expand(scope, text));
        let mut options = Self { given: Vec::new(), is_incomplete: !complete };
        for word in words {
            let Some(given) = GivenOption::parse(scope, &word, on, family) else {
                options.is_incomplete = true;
                continue;
            };
            if options.has(given.spec.name) {
                let wrong = ParseError::new(format!("`{}` is given twice", given.spec.name), "again here")
                    .help("uperf would take the last; say what is meant once");
                scope.report(given.span, wrong);
            } else if given.spec.applies_to.contains(&family) {
                options.given.push(given);
            } else {
                scope.add_note(given.span, format!("`{}` means nothing on `{on}`", given.spec.name));
            }
        }
        options
    }

    /// Reports options that mean nothing on any flowop, where it is not known which one it is.
    pub(super) fn check_names(scope: &mut ParseContext, text: Option<&SpannedText>) {
        for word in text.map_or_else(Vec::new, |text| split_and_expand(scope, text).0) {
            let key = word.slice(0..word.as_str().find('=').unwrap_or(word.as_str().len()));
            if find_option(key.as_str()).is_none() {
                scope.report(key.span(), unknown_option(key.as_str()));
            }
        }
    }

    fn find(&self, name: &str) -> Option<&GivenOption> {
        self.given.iter().find(|given| given.spec.name == name)
    }

    /// Whether it is given, readable or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether it is certainly not given.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        !self.is_incomplete && !self.has(name)
    }

    /// Where it stands.
    pub(super) fn span(&self, name: &str) -> Option<Span> {
        self.find(name).map(|given| given.span.clone())
    }

    /// Where the first stands whose name begins so.
    pub(super) fn first_with_prefix(&self, start: &str) -> Option<Span> {
        self.given.iter().find(|given| given.spec.name.starts_with(start)).map(|given| given.span.clone())
    }

    /// Its value, if it has one that could be filled in.
    pub(super) fn text(&self, name: &str) -> Option<&SpannedText> {
        self.find(name)?.value.as_ref()
    }

    /// Its value as a word.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| text.as_str().trim().to_owned())
    }

    /// Its value by `read`; what that does not like is reported.
    pub(super) fn get<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Option<T> {
        let text = self.text(name)?;
        read(text.as_str()).map_err(|wrong| scope.report(text.span(), wrong)).ok()
    }

    /// The same where `read` has something to say of how the value is written.
    pub(super) fn get_with_note<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        read: impl FnOnce(&str) -> Result<(T, Option<String>), ParseError>,
    ) -> Option<T> {
        let (value, note) = self.get(scope, name, read)?;
        if let (Some(note), Some(text)) = (note, self.text(name)) {
            scope.add_note(text.span(), note);
        }
        Some(value)
    }
}

impl GivenOption {
    fn parse(scope: &mut ParseContext, text: &SpannedText, on: &str, family: FlowopFamily) -> Option<Self> {
        let (key, value) = match text.as_str().find('=') {
            Some(at) => (text.slice(0..at), Some(text.slice(at + 1..text.as_str().len()))),
            None => (text.clone(), None),
        };
        let name = key.as_str();
        let Some(word) = find_option(name) else {
            scope.report(key.span(), unknown_option_on(name, on, family));
            return None;
        };
        let value = match value {
            Some(_) if word.is_flag => {
                let help = format!("`{}` alone switches it on", word.name);
                scope
                    .report(text.span(), ParseError::new(format!("`{}` takes no value", word.name), "here").help(help));
                None
            }
            Some(value) if !value.as_str().is_empty() => scope.expand(&value),
            _ if word.is_flag => None,
            _ => {
                let help = format!("write `{}=…`, without blanks around the `=`", word.name);
                let wrong = ParseError::new(format!("`{}` has no value", word.name), "a value is missing").help(help);
                scope.report(text.span(), wrong);
                None
            }
        };
        Some(Self { spec: word, span: text.span(), value })
    }
}

fn find_option(name: &str) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|word| word.name.eq_ignore_ascii_case(name))
}

fn unknown_option(name: &str) -> ParseError {
    let wrong = ParseError::new(format!("there is no option `{name}`"), "unknown");
    if REMOVED.iter().any(|removed| removed.eq_ignore_ascii_case(name)) {
        return wrong.help(format!("`{name}` belongs to a dialect that uperf no longer speaks either"));
    }
    wrong.suggest(name, OPTIONS.iter().map(|word| word.name))
}

fn unknown_option_on(name: &str, on: &str, family: FlowopFamily) -> ParseError {
    let wrong = unknown_option(name);
    if wrong.has_help() {
        return wrong;
    }
    let known = OPTIONS.iter().filter(|word| word.applies_to.contains(&family) && !word.name.starts_with("sctp_"));
    let known: Vec<_> = known.map(|word| word.name).collect();
    wrong.help(format!("`{on}` knows {}, and some of SCTP", known.join(", ")))
}

/// The words of `text`, and whether these are all. A word that is nothing but a variable stands for the options
/// that the variable holds.
fn split_and_expand(scope: &mut ParseContext, text: &SpannedText) -> (Vec<SpannedText>, bool) {
    let mut words = Vec::new();
    let mut complete = true;
    for word in split_words(text) {
        let variable = word.as_str().starts_with('$') && !word.as_str().contains('=');
        if !variable {
            words.push(word);
        } else if let Some(expanded) = scope.expand(&word) {
            words.extend(split_words(&expanded));
        } else {
            complete = false;
        }
    }
    (words, complete)
}

/// Splits at blanks, but not within parentheses: `size=rand(1, 8k)` is one word.
fn split_words(text: &SpannedText) -> Vec<SpannedText> {
    let mut words = Vec::new();
    let (mut start, mut depth) = (None, 0_usize);
    for (at, character) in text.as_str().char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character.is_whitespace() && depth == 0 {
            words.extend(start.take().map(|start| text.slice(start..at)));
        } else {
            start = start.or(Some(at));
        }
    }
    words.extend(start.map(|start| text.slice(start..text.as_str().len())));
    words
}
