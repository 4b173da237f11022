//! The options of a flowop: words separated by blanks, `key=value` or a flag alone.

use wb_diagnostics::{Diagnostic, suggest};

use super::context::ParseContext;
use super::keywords::{FlowopFamily, OPTIONS, OptionSpec, removed_help};
use super::spanned_text::{Span, SpannedText};

/// The valid options of a flowop.
pub(super) struct FlowopOptions {
    given: Vec<GivenOption>,
    /// Whether some could not be parsed, so that a missing option cannot be reported reliably.
    is_incomplete: bool,
}

struct GivenOption {
    spec: &'static OptionSpec,
    span: Span,
    /// `None` for a flag, and for an invalid value, which has been reported.
    value: Option<SpannedText>,
}

impl FlowopOptions {
    /// Parses the options of a flowop; those that do not apply to it become notes.
    pub(super) fn parse(
        scope: &mut ParseContext,
        text: Option<&SpannedText>,
        flowop: &str,
        family: FlowopFamily,
    ) -> Self {
        let (words, complete) = text.map_or((Vec::new(), true), |text| split_and_expand(scope, text));
        let mut options = Self { given: Vec::new(), is_incomplete: !complete };
        for word in words {
            let Some(given) = GivenOption::parse(scope, &word, flowop, family) else {
                options.is_incomplete = true;
                continue;
            };
            if options.has(given.spec.name) {
                let error = Diagnostic::labelled(format!("`{}` is given twice", given.spec.name), "again here")
                    .with_help("remove the duplicate: uperf would use the last");
                scope.report(given.span, error);
            } else if given.spec.applies_to.contains(&family) {
                options.given.push(given);
            } else {
                scope.add_note(given.span, format!("`{}` has no effect on `{flowop}`", given.spec.name));
            }
        }
        options
    }

    /// Reports unknown options of a flowop whose type is unknown.
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

    /// Whether the option is given, valid or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether the option is certainly not given.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        // One that was not understood may have been meant as this one: two errors for one slip would hide the slip.
        !self.is_incomplete && !self.has(name)
    }

    pub(super) fn span(&self, name: &str) -> Option<Span> {
        self.find(name).map(|given| given.span.clone())
    }

    pub(super) fn first_with_prefix(&self, prefix: &str) -> Option<Span> {
        self.given.iter().find(|given| given.spec.name.starts_with(prefix)).map(|given| given.span.clone())
    }

    /// Its value with variables expanded, if it has a valid one.
    pub(super) fn text(&self, name: &str) -> Option<&SpannedText> {
        self.find(name)?.value.as_ref()
    }

    pub(super) fn word(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| text.as_str().trim().to_owned())
    }

    /// Its value, parsed by `parse`; errors are reported.
    pub(super) fn get<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        let text = self.text(name)?;
        parse(text.as_str()).map_err(|error| scope.report(text.span(), error)).ok()
    }

    pub(super) fn get_with_note<T>(
        &self,
        scope: &mut ParseContext,
        name: &str,
        parse: impl FnOnce(&str) -> Result<(T, Option<String>), Diagnostic>,
    ) -> Option<T> {
        let (value, note) = self.get(scope, name, parse)?;
        if let (Some(note), Some(text)) = (note, self.text(name)) {
            scope.add_note(text.span(), note);
        }
        Some(value)
    }
}

impl GivenOption {
    fn parse(scope: &mut ParseContext, text: &SpannedText, flowop: &str, family: FlowopFamily) -> Option<Self> {
        let (key, value) = match text.as_str().find('=') {
            Some(index) => (text.slice(0..index), Some(text.slice(index + 1..text.as_str().len()))),
            None => (text.clone(), None),
        };
        let name = key.as_str();
        let Some(spec) = find_option(name) else {
            scope.report(key.span(), unknown_option_on(name, flowop, family));
            return None;
        };
        let value = match value {
            Some(_) if spec.is_flag => {
                let help = format!("write `{}` without a value", spec.name);
                scope.report(
                    text.span(),
                    Diagnostic::labelled(format!("`{}` takes no value", spec.name), "here").with_help(help),
                );
                None
            }
            Some(value) if !value.as_str().is_empty() => scope.expand(&value),
            _ if spec.is_flag => None,
            _ => {
                let help = format!("write `{}=…`, without blanks around the `=`", spec.name);
                let error =
                    Diagnostic::labelled(format!("`{}` has no value", spec.name), "a value is missing").with_help(help);
                scope.report(text.span(), error);
                None
            }
        };
        Some(Self { spec, span: text.span(), value })
    }
}

fn find_option(name: &str) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|spec| spec.name.eq_ignore_ascii_case(name))
}

fn unknown_option(name: &str) -> Diagnostic {
    let error = Diagnostic::labelled(format!("unknown option `{name}`"), "unknown");
    match removed_help(name) {
        Some(help) => error.with_help(help),
        None => error.with_suggestion(suggest(name, OPTIONS.iter().map(|spec| spec.name))),
    }
}

fn unknown_option_on(name: &str, flowop: &str, family: FlowopFamily) -> Diagnostic {
    let error = unknown_option(name);
    if error.help().is_some() {
        return error;
    }
    let names = OPTIONS.iter().filter(|spec| spec.applies_to.contains(&family) && !spec.name.starts_with("sctp_"));
    let names: Vec<_> = names.map(|spec| spec.name).collect();
    error.with_help(format!("`{flowop}` accepts {}, and SCTP options", names.join(", ")))
}

/// Splits options into words; false if some are unknown because of an unset variable. A word that consists of a
/// variable alone is replaced by the options that the variable holds.
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

/// Splits at blanks, but not inside parentheses: `size=rand(1, 8k)` is one word.
fn split_words(text: &SpannedText) -> Vec<SpannedText> {
    let mut words = Vec::new();
    let (mut start, mut depth) = (None, 0_usize);
    for (position, character) in text.as_str().char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character.is_whitespace() && depth == 0 {
            words.extend(start.take().map(|start| text.slice(start..position)));
        } else {
            start = start.or(Some(position));
        }
    }
    words.extend(start.map(|start| text.slice(start..text.as_str().len())));
    words
}
