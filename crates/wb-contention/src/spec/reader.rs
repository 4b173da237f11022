//! Splits specifications, and reads the properties of a group by their types.

use std::collections::BTreeSet;
use std::ops::Range;

use wb_diagnostics::{Diagnostic, DiagnosticCollector, Diagnostics, SourceText, suggest};
use wb_results::contention::{Bench, InstanceLabel};

use super::unknown_bench;
use super::value::Value;

#[derive(Debug, Clone)]
pub(crate) struct Group<'a> {
    pub(crate) span: Range<usize>,
    entries: Vec<Entry<'a>>,
}

/// A property as written.
#[derive(Debug, Clone)]
struct Entry<'a> {
    span: Range<usize>,
    key: &'a str,
    value: Option<&'a str>,
}

impl<'a> Group<'a> {
    pub(crate) fn empty(position: usize) -> Self {
        Self { span: position..position, entries: Vec::new() }
    }

    pub(crate) fn parse(text: &'a str, start: usize) -> Self {
        let mut position = start;
        let mut entries = Vec::new();
        for word in text.split(',') {
            let span = position..position + word.len();
            position = span.end + 1;
            if word.is_empty() {
                continue;
            }
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (word, None),
            };
            entries.push(Entry { span, key, value });
        }
        Self { span: start..start + text.len(), entries }
    }
}

pub(crate) fn split(source: &SourceText) -> Result<(Bench, Vec<Group<'_>>), Diagnostics> {
    let (bench, label, groups) = split_instance(source)?;
    match label {
        None => Ok((bench, groups)),
        Some(_) => Err(unknown_bench(source, source.text.split(':').next().unwrap_or_default()).into()),
    }
}

/// The same of a result: its bench may have the label with which it is shown, `iocost-tune.2` or `iocost-qos@ID`.
pub(crate) fn split_instance(
    source: &SourceText,
) -> Result<(Bench, Option<InstanceLabel>, Vec<Group<'_>>), Diagnostics> {
    let mut parts = source.text.split(':');
    let name = parts.next().unwrap_or_default();
    let (bench, label) = match (Bench::from_name(name), name.split_once('.'), name.split_once('@')) {
        (Some(bench), ..) => (Some(bench), None),
        (None, Some((bench, position)), None) => {
            let position = position.parse().ok().filter(|position| *position > 0);
            (Bench::from_name(bench).filter(|_| position.is_some()), position.map(InstanceLabel::Position))
        }
        (None, _, Some((bench, id))) => (Bench::from_name(bench), Some(InstanceLabel::Id(id.to_owned()))),
        (None, None, None) => (None, None),
    };
    let bench = bench.ok_or_else(|| unknown_bench(source, name))?;
    let mut index = name.len() + 1;
    let groups = parts.map(|part| {
        let group = Group::parse(part, index);
        index += part.len() + 1;
        group
    });
    Ok((bench, label, groups.collect()))
}

/// Reads the properties of a group, and collects its mistakes.
pub(crate) struct GroupReader<'a> {
    pub(crate) source: &'a SourceText,
    span: Range<usize>,
    entries: Vec<Entry<'a>>,
    keys: Vec<&'static str>,
    mistakes: DiagnosticCollector,
    /// What else is accepted than `keys`, for people.
    other_words: &'static str,
}

impl<'a> GroupReader<'a> {
    pub(crate) fn new(source: &'a SourceText, group: Group<'a>) -> Self {
        let mut mistakes = DiagnosticCollector::default();
        let Group { span, entries } = group;
        let (mut kept, mut keys) = (Vec::new(), BTreeSet::new());
        for entry in entries {
            if !keys.insert(entry.key) {
                let message = format!("duplicate property `{}`", entry.key);
                mistakes.push(Diagnostic::at(source, entry.span, message, "given before in this group"));
            } else {
                kept.push(entry);
            }
        }
        Self { source, span, entries: kept, keys: Vec::new(), mistakes, other_words: "" }
    }

    /// Accepts some properties with a prefix as well: `storage-rps-max` for `rps-max`.
    pub(crate) fn accept_prefixed(&mut self, prefix: &str, keys: &[&'static str]) {
        for index in 0..self.entries.len() {
            let Some(rest) = self.entries[index].key.strip_prefix(prefix).filter(|rest| keys.contains(rest)) else {
                continue;
            };
            if self.has(rest) {
                let Entry { span, key, .. } = self.entries[index].clone();
                let message = format!("duplicate property `{key}`");
                let label = format!("the same as `{rest}` of this group");
                self.mistakes.push(Diagnostic::at(self.source, span, message, label));
            }
            self.entries[index].key = rest;
        }
    }

    /// The value of a property; `None` if it is not given, or invalid, which is collected.
    pub(crate) fn take<T: Value>(&mut self, key: &'static str) -> Option<T> {
        self.keys.push(key);
        let entry = self.remove(|entry| entry.key == key)?;
        self.value(&entry)
    }

    /// The first property whose key begins with `prefix`, with the rest of its key.
    pub(crate) fn take_prefixed<T: Value>(&mut self, prefix: &str) -> Option<(&'a str, T)> {
        let entry = self.remove(|entry| entry.key.starts_with(prefix))?;
        let rest = &entry.key[prefix.len()..];
        self.value(&entry).map(|value| (rest, value))
    }

    /// The keys without a value that `read` recognises; `expected` describes them.
    pub(crate) fn take_words<T>(&mut self, expected: &'static str, read: impl Fn(&str) -> Option<T>) -> Vec<T> {
        self.other_words = expected;
        let mut words = Vec::new();
        self.entries.retain(|entry| match read(entry.key).filter(|_| entry.value.is_none()) {
            Some(word) => {
                words.push(word);
                false
            }
            None => true,
        });
        words
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Collects a mistake that concerns the whole group.
    pub(crate) fn refuse(&mut self, message: impl Into<String>, help: &str) {
        // An empty group is shown by the separator before it.
        let span =
            if self.span.is_empty() { self.span.start.saturating_sub(1)..self.span.end } else { self.span.clone() };
        self.mistakes.push(Diagnostic::at(self.source, span, message, "in this group").with_help(help));
    }

    /// Fails with the collected mistakes; properties that have not been taken are unknown.
    pub(crate) fn finish(mut self) -> Result<(), Diagnostics> {
        for entry in std::mem::take(&mut self.entries) {
            let span = entry.span.start..entry.span.start + entry.key.len();
            let diagnostic = Diagnostic::at(self.source, span, format!("unknown property `{}`", entry.key), "unknown")
                .with_suggestion(suggest(entry.key, &self.keys));
            self.mistakes.push(if self.keys.is_empty() {
                diagnostic.with_help("this group has no properties")
            } else {
                diagnostic.with_help(format!("expected one of {}{}", self.keys.join(", "), self.other_words))
            });
        }
        self.mistakes.finish()
    }

    fn remove(&mut self, is_it: impl Fn(&Entry<'a>) -> bool) -> Option<Entry<'a>> {
        let position = self.entries.iter().position(is_it)?;
        Some(self.entries.remove(position))
    }

    fn value<T: Value>(&mut self, entry: &Entry<'a>) -> Option<T> {
        let parsed = match entry.value {
            Some(text) => T::parse(text),
            None => T::alone(),
        };
        if parsed.is_none() {
            let (message, span) = match entry.value {
                Some(text) => (
                    format!("invalid value `{text}` of `{}`: expected {}", entry.key, T::EXPECTED),
                    entry.span.end - text.len()..entry.span.end,
                ),
                None => (format!("missing value of `{}`: expected {}", entry.key, T::EXPECTED), entry.span.clone()),
            };
            self.mistakes.push(Diagnostic::at(self.source, span, message, ""));
        }
        parsed
    }
}

/// Reads each further group as a stage, and collects the mistakes of all.
pub(crate) fn stages<'a, T>(
    source: &'a SourceText,
    groups: &[Group<'a>],
    read: impl Fn(GroupReader<'a>) -> Result<T, Diagnostics>,
) -> Result<Vec<T>, Diagnostics> {
    let mut mistakes = DiagnosticCollector::default();
    let readers = groups.iter().map(|group| GroupReader::new(source, group.clone()));
    let stages = readers.filter_map(|reader| mistakes.ok(read(reader))).collect();
    mistakes.finish()?;
    Ok(stages)
}
