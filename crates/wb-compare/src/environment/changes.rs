//! Differences between two sets of values.

use std::collections::{BTreeMap, BTreeSet};

use similar::{ChangeTag, DiffOp, TextDiff};
use wb_model::Sha256;
use wb_results::comparison::ValueChange;

use super::values::Values;

pub(crate) fn changes(before: &Values, after: &Values) -> Vec<ValueChange> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let (mut all, mut removed, mut added) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
        match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) => all.extend(value_changes(name, before, after)),
            (Some(before), None) => drop(removed.insert(name.as_str(), before)),
            (None, Some(after)) => drop(added.insert(name.as_str(), after)),
            (None, None) => {}
        }
    }
    for (old, new) in match_renamed(&removed, &added) {
        let (Some(before), Some(after)) = (removed.remove(old), added.remove(new)) else { continue };
        all.push(ValueChange::new(&format!("{old} → {new}"), Some(format_values(before)), Some(format_values(after))));
    }
    let none = BTreeSet::new();
    all.extend(removed.into_iter().flat_map(|(name, before)| value_changes(name, before, &none)));
    all.extend(added.into_iter().flat_map(|(name, after)| value_changes(name, &none, after)));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn value_changes(name: &str, before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<ValueChange> {
    let is_text = before.iter().chain(after).any(|value| value.contains('\n'));
    if is_text && before.len() <= 1 && after.len() <= 1 {
        let text = |side: &BTreeSet<String>| side.first().cloned().unwrap_or_default();
        return line_changes(name, &text(before), &text(after));
    }
    let side = |side: &BTreeSet<String>| (!side.is_empty()).then(|| format_values(side));
    vec![ValueChange::new(name, side(before), side(after))]
}

/// The differing lines of a text; lines that replace each other are paired.
fn line_changes(name: &str, before: &str, after: &str) -> Vec<ValueChange> {
    let [before, after] = [before, after].map(|text| text.lines().collect::<Vec<_>>());
    let diff = TextDiff::from_slices(&before, &after);
    let mut all = Vec::new();
    for op in diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let lines_of = |tag: ChangeTag| {
            let lines = diff.iter_changes(op).filter(move |change| change.tag() == tag);
            lines.map(|change| change.value().to_owned()).collect::<Vec<String>>()
        };
        let (removed, added) = (lines_of(ChangeTag::Delete), lines_of(ChangeTag::Insert));
        if removed.len() == added.len() {
            all.extend(
                removed.into_iter().zip(added).map(|(before, after)| ValueChange::new(name, Some(before), Some(after))),
            );
        } else {
            all.extend(removed.into_iter().map(|before| ValueChange::new(name, Some(before), None)));
            all.extend(added.into_iter().map(|after| ValueChange::new(name, None, Some(after))));
        }
    }
    all
}

/// Formats values in one line; several lines become length and hash, since several texts cannot be compared by line.
fn format_values(values: &BTreeSet<String>) -> String {
    let short = |value: &String| match value.lines().count() {
        0 | 1 => value.clone(),
        lines => format!("{lines} lines, sha256 {}", &Sha256::digest(value.as_bytes()).as_str()[..12]),
    };
    values.iter().map(short).collect::<Vec<_>>().join(" | ")
}

/// Pairs of old and new names that only differ in their numbers, such as those of kernel packages, if unambiguous.
fn match_renamed<'a>(
    removed: &BTreeMap<&'a str, &BTreeSet<String>>,
    added: &BTreeMap<&'a str, &BTreeSet<String>>,
) -> Vec<(&'a str, &'a str)> {
    let stem = |name: &str| {
        // Without a version, a number is part of the identity: `sda1`, `policy0`.
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
    let unique_stems = |names: &BTreeMap<&'a str, &BTreeSet<String>>| {
        let mut stems: BTreeMap<String, Vec<&'a str>> = BTreeMap::new();
        for name in names.keys() {
            if let Some(stem) = stem(name) {
                stems.entry(stem).or_default().push(name);
            }
        }
        stems.retain(|_, names| names.len() == 1);
        stems
    };
    let (removed, added) = (unique_stems(removed), unique_stems(added));
    removed.iter().filter_map(|(stem, old)| Some((*old.first()?, *added.get(stem)?.first()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: &[(&str, &str)]) -> Values {
        all.iter().map(|(name, value)| ((*name).to_owned(), BTreeSet::from([(*value).to_owned()]))).collect()
    }

    fn described(before: &[(&str, &str)], after: &[(&str, &str)]) -> Vec<String> {
        let side = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
        let format_change =
            |change: ValueChange| format!("{}: {} → {}", change.name, side(change.before), side(change.after));
        changes(&values(before), &values(after)).into_iter().map(format_change).collect()
    }

    #[test]
    fn upgrades_are_one_change_even_if_the_package_name_has_the_version() {
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
