//! What differs between two sets of values.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, DiffOp, TextDiff};
use wb_model::Sha256;

use super::values::Values;

/// A value that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueChange {
    /// Its name within the section, empty where it is all of the section; of a text with several lines there is one
    /// change for each line.
    pub name: String,
    /// In the first build; none where it is not there. Several values are those of the build's runs.
    pub before: Option<String>,
    /// In the last build.
    pub after: Option<String>,
    /// The cells that were measured so; empty where the whole machine differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<String>,
}

impl ValueChange {
    pub(crate) fn new(name: &str, before: Option<String>, after: Option<String>) -> Self {
        Self { name: name.to_owned(), before, after, cells: Vec::new() }
    }
}

/// The values that differ, by name.
pub(crate) fn changes(src: &Values, dst: &Values) -> Vec<ValueChange> {
    let names: BTreeSet<&String> = src.keys().chain(dst.keys()).collect();
    let (mut both, mut gone, mut come) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for name in names.into_iter().filter(|name| src.get(*name) != dst.get(*name)) {
        match (src.get(name), dst.get(name)) {
            (Some(src), Some(dst)) => both.extend(value_changes(name, src, dst)),
            (Some(src), None) => drop(gone.insert(name.as_str(), src)),
            (None, Some(dst)) => drop(come.insert(name.as_str(), dst)),
            (None, None) => {}
        }
    }
    for (old, new) in match_renamed(&gone, &come) {
        let (Some(src), Some(dst)) = (gone.remove(old), come.remove(new)) else { continue };
        both.push(ValueChange::new(&format!("{old} → {new}"), Some(format_values(src)), Some(format_values(dst))));
    }
    let none = BTreeSet::new();
    both.extend(gone.into_iter().flat_map(|(name, src)| value_changes(name, src, &none)));
    both.extend(come.into_iter().flat_map(|(name, dst)| value_changes(name, &none, dst)));
    both.sort_by(|one, other| one.name.cmp(&other.name));
    both
}

fn value_changes(name: &str, src: &BTreeSet<String>, dst: &BTreeSet<String>) -> Vec<ValueChange> {
    let is_text = src.iter().chain(dst).any(|value| value.contains('\n'));
    if is_text && src.len() <= 1 && dst.len() <= 1 {
        let text = |side: &BTreeSet<String>| side.first().cloned().unwrap_or_default();
        return line_changes(name, &text(src), &text(dst));
    }
    let side = |side: &BTreeSet<String>| (!side.is_empty()).then(|| format_values(side));
    vec![ValueChange::new(name, side(src), side(dst))]
}

/// The lines of a text that differ; those that stand in each other's place are paired.
fn line_changes(name: &str, src: &str, dst: &str) -> Vec<ValueChange> {
    let [src, dst] = [src, dst].map(|text| text.lines().collect::<Vec<_>>());
    let diff = TextDiff::from_slices(&src, &dst);
    let mut all = Vec::new();
    for op in diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let of = |tag: ChangeTag| {
            let lines = diff.iter_changes(op).filter(move |change| change.tag() == tag);
            lines.map(|change| change.value().to_owned()).collect::<Vec<String>>()
        };
        let (gone, come) = (of(ChangeTag::Delete), of(ChangeTag::Insert));
        if gone.len() == come.len() {
            all.extend(gone.into_iter().zip(come).map(|(src, dst)| ValueChange::new(name, Some(src), Some(dst))));
        } else {
            all.extend(gone.into_iter().map(|src| ValueChange::new(name, Some(src), None)));
            all.extend(come.into_iter().map(|dst| ValueChange::new(name, None, Some(dst))));
        }
    }
    all
}

/// Values as one line; of a text its length and hash, as a comparison of several texts has no lines to show.
fn format_values(values: &BTreeSet<String>) -> String {
    let short = |value: &String| match value.lines().count() {
        0 | 1 => value.clone(),
        lines => format!("{lines} lines, sha256 {}", &Sha256::of(value.as_bytes()).as_str()[..12]),
    };
    values.iter().map(short).collect::<Vec<_>>().join(" | ")
}

/// Names that differ only in their numbers, as those of kernel packages do: each old one with the new one, where there
/// is no doubt which belongs to which.
fn match_renamed<'a>(
    gone: &BTreeMap<&'a str, &BTreeSet<String>>,
    come: &BTreeMap<&'a str, &BTreeSet<String>>,
) -> Vec<(&'a str, &'a str)> {
    let stem = |name: &str| {
        // Without a version in it, a number tells things apart: `sda1`, `policy0`.
        let has_version = name
            .split(['-', '_'])
            .any(|part| part.starts_with(|first: char| first.is_ascii_digit()) && part.contains('.'));
        has_version.then(|| {
            name.split(|c: char| c.is_ascii_digit() || c == '.')
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("#")
        })
    };
    let only = |names: &BTreeMap<&'a str, &BTreeSet<String>>| {
        let mut stems: BTreeMap<String, Vec<&'a str>> = BTreeMap::new();
        for name in names.keys() {
            if let Some(stem) = stem(name) {
                stems.entry(stem).or_default().push(name);
            }
        }
        stems.retain(|_, names| names.len() == 1);
        stems
    };
    let (gone, come) = (only(gone), only(come));
    gone.iter().filter_map(|(stem, old)| Some((*old.first()?, *come.get(stem)?.first()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: &[(&str, &str)]) -> Values {
        all.iter().map(|(name, value)| ((*name).to_owned(), BTreeSet::from([(*value).to_owned()]))).collect()
    }

    fn described(src: &[(&str, &str)], dst: &[(&str, &str)]) -> Vec<String> {
        let side = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
        let described =
            |change: ValueChange| format!("{}: {} → {}", change.name, side(change.before), side(change.after));
        changes(&values(src), &values(dst)).into_iter().map(described).collect()
    }

    #[test]
    fn upgrades_stand_on_one_line_also_of_packages_that_are_called_by_their_version() {
        let old = [("kernel", "5.0.9"), ("linux-image-6.1.0-18-amd64", "6.1.76-1"), ("same", "1"), ("sda1", "ext4")];
        let new = [("kernel", "5.6.13"), ("linux-image-6.1.0-20-amd64", "6.1.85-1"), ("same", "1"), ("sda2", "ext4")];
        let expected = [
            "kernel: 5.0.9 → 5.6.13",
            "linux-image-6.1.0-18-amd64 → linux-image-6.1.0-20-amd64: 6.1.76-1 → 6.1.85-1",
            "sda1: ext4 → -",
            "sda2: - → ext4",
        ];
        assert_eq!(described(&old, &new), expected);
    }

    #[test]
    fn texts_differ_by_line() {
        let (old, new) = ("#!/bin/sh\necho b\nexit", "#!/bin/sh\necho c\nexit\necho d");
        assert_eq!(described(&[("rc", old)], &[("rc", new)]), ["rc: echo b → echo c", "rc: - → echo d"]);
        let swapped = described(&[("rc", "a\nb")], &[("rc", "b\na")]);
        assert!(!swapped.is_empty(), "the order of lines matters");
        assert_eq!(described(&[("xml", "<a>\n</a>")], &[]), ["xml: <a> → -", "xml: </a> → -"]);
    }
}
