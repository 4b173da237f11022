//! The options of a flowop: blank-separated words, `key=value` or alone.

use super::scope::{Scope, Wrong};
use super::text::{Span, Text};
use super::words::{Family, OPTIONS, REMOVED, Word};

/// The options that mean something on a flowop.
pub(super) struct Options {
    given: Vec<Given>,
    /// Whether some are not understood, so that nobody knows what is missing.
    unclear: bool,
}

struct Given {
    word: &'static Word,
    span: Span,
    /// None of a flag, and of what cannot be read, which has been reported.
    value: Option<Text>,
}

impl Options {
    /// Reads them for a flowop of type `on`; those that mean nothing there become notes.
    pub(super) fn read(scope: &mut Scope, text: Option<&Text>, on: &str, family: Family) -> Self {
        let (words, complete) = text.map_or((Vec::new(), true), |text| words(scope, text));
        let mut options = Self { given: Vec::new(), unclear: !complete };
        for word in words {
            let Some(given) = Given::read(scope, &word, on, family) else {
                options.unclear = true;
                continue;
            };
            if options.has(given.word.name) {
                let wrong = Wrong::new(format!("`{}` is given twice", given.word.name), "again here")
                    .help("uperf would take the last; say what is meant once");
                scope.fault(given.span, wrong);
            } else if given.word.on.contains(&family) {
                options.given.push(given);
            } else {
                scope.note(given.span, format!("`{}` means nothing on `{on}`", given.word.name));
            }
        }
        options
    }

    /// Reports options that mean nothing on any flowop, where it is not known which one it is.
    pub(super) fn check_names(scope: &mut Scope, text: Option<&Text>) {
        for word in text.map_or_else(Vec::new, |text| words(scope, text).0) {
            let key = word.part(0..word.as_str().find('=').unwrap_or(word.as_str().len()));
            if known(key.as_str()).is_none() {
                scope.fault(key.span(), no_option(key.as_str()));
            }
        }
    }

    fn find(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|given| given.word.name == name)
    }

    /// Whether it is given, readable or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether it is certainly not given.
    pub(super) fn lacks(&self, name: &str) -> bool {
        !self.unclear && !self.has(name)
    }

    /// Where it stands.
    pub(super) fn span(&self, name: &str) -> Option<Span> {
        self.find(name).map(|given| given.span.clone())
    }

    /// Where the first stands whose name begins so.
    pub(super) fn first_of(&self, start: &str) -> Option<Span> {
        self.given.iter().find(|given| given.word.name.starts_with(start)).map(|given| given.span.clone())
    }

    /// Its value, if it has one that could be filled in.
    pub(super) fn text(&self, name: &str) -> Option<&Text> {
        self.find(name)?.value.as_ref()
    }

    /// Its value as a word.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| text.as_str().trim().to_owned())
    }

    /// Its value by `read`; what that does not like is reported.
    pub(super) fn get<T>(
        &self,
        scope: &mut Scope,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, Wrong>,
    ) -> Option<T> {
        let text = self.text(name)?;
        read(text.as_str()).map_err(|wrong| scope.fault(text.span(), wrong)).ok()
    }

    /// The same where `read` has something to say of how the value is written.
    pub(super) fn get_noted<T>(
        &self,
        scope: &mut Scope,
        name: &str,
        read: impl FnOnce(&str) -> Result<(T, Option<String>), Wrong>,
    ) -> Option<T> {
        let (value, note) = self.get(scope, name, read)?;
        if let (Some(note), Some(text)) = (note, self.text(name)) {
            scope.note(text.span(), note);
        }
        Some(value)
    }
}

impl Given {
    fn read(scope: &mut Scope, text: &Text, on: &str, family: Family) -> Option<Self> {
        let (key, value) = match text.as_str().find('=') {
            Some(at) => (text.part(0..at), Some(text.part(at + 1..text.as_str().len()))),
            None => (text.clone(), None),
        };
        let name = key.as_str();
        let Some(word) = known(name) else {
            scope.fault(key.span(), unknown(name, on, family));
            return None;
        };
        let value = match value {
            Some(_) if word.flag => {
                let help = format!("`{}` alone switches it on", word.name);
                scope.fault(text.span(), Wrong::new(format!("`{}` takes no value", word.name), "here").help(help));
                None
            }
            Some(value) if !value.as_str().is_empty() => scope.expand(&value),
            _ if word.flag => None,
            _ => {
                let help = format!("write `{}=…`, without blanks around the `=`", word.name);
                let wrong = Wrong::new(format!("`{}` has no value", word.name), "a value is missing").help(help);
                scope.fault(text.span(), wrong);
                None
            }
        };
        Some(Self { word, span: text.span(), value })
    }
}

fn known(name: &str) -> Option<&'static Word> {
    OPTIONS.iter().find(|word| word.name.eq_ignore_ascii_case(name))
}

fn no_option(name: &str) -> Wrong {
    let wrong = Wrong::new(format!("there is no option `{name}`"), "unknown");
    if REMOVED.iter().any(|removed| removed.eq_ignore_ascii_case(name)) {
        return wrong.help(format!("`{name}` belongs to a dialect that uperf no longer speaks either"));
    }
    wrong.near(name, OPTIONS.iter().map(|word| word.name))
}

fn unknown(name: &str, on: &str, family: Family) -> Wrong {
    let wrong = no_option(name);
    if wrong.has_help() {
        return wrong;
    }
    let known = OPTIONS.iter().filter(|word| word.on.contains(&family) && !word.name.starts_with("sctp_"));
    let known: Vec<_> = known.map(|word| word.name).collect();
    wrong.help(format!("`{on}` knows {}, and some of SCTP", known.join(", ")))
}

/// The words of `text`, and whether these are all. A word that is nothing but a variable stands for the options
/// that the variable holds.
fn words(scope: &mut Scope, text: &Text) -> (Vec<Text>, bool) {
    let mut words = Vec::new();
    let mut complete = true;
    for word in split(text) {
        let variable = word.as_str().starts_with('$') && !word.as_str().contains('=');
        if !variable {
            words.push(word);
        } else if let Some(expanded) = scope.expand(&word) {
            words.extend(split(&expanded));
        } else {
            complete = false;
        }
    }
    (words, complete)
}

/// Splits at blanks, but not within parentheses: `size=rand(1, 8k)` is one word.
fn split(text: &Text) -> Vec<Text> {
    let mut words = Vec::new();
    let (mut start, mut depth) = (None, 0_usize);
    for (at, character) in text.as_str().char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character.is_whitespace() && depth == 0 {
            words.extend(start.take().map(|start| text.part(start..at)));
        } else {
            start = start.or(Some(at));
        }
    }
    words.extend(start.map(|start| text.part(start..text.as_str().len())));
    words
}
