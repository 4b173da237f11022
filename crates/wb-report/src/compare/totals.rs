//! How many came to what.

use std::collections::BTreeSet;

use wb_compare::outcome::BuildTold;
use wb_compare::{Outcome, SampleCounts};

use super::figures::regressed_by;
use crate::text::{Style, definitions};

/// What differs around the builds, and the totals.
pub(super) fn totals(outcome: &Outcome, style: Style) -> String {
    let totals = &outcome.totals;
    let counted = [
        ("gains", totals.gains),
        ("minor gains", totals.minor_gains),
        ("equals", totals.equals),
        ("minor losses", totals.minor_losses),
        ("losses", totals.losses),
        ("differing", totals.differing),
        ("inconclusive", totals.inconclusive),
        ("not primary", totals.not_primary),
        ("groups lost", totals.groups_lost),
        ("groups gained", totals.groups_gained),
    ];
    let always = ["gains", "minor gains", "equals", "minor losses", "losses"];
    let shown = counted.iter().filter(|(name, count)| *count > 0 || always.contains(name));
    let errors = [
        ("missing", totals.missing),
        ("invalid", totals.invalid),
        ("defined otherwise", totals.incomparable),
        ("ended in an error", totals.errors),
    ];
    let kinds: Vec<String> =
        errors.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    let errors = errors.iter().map(|(_, count)| count).sum::<usize>().to_string();
    let errors = if kinds.is_empty() { errors } else { format!("{errors}: {}", kinds.join(", ")) };
    let pairs = shown
        .map(|(name, count)| (*name, count.to_string()))
        .chain([("errors", errors)])
        .chain(disturbed_samples(outcome).map(|counts| ("disturbed samples", counts)))
        .chain(regressed_by(outcome).map(|methods| ("regression by", methods)));
    surroundings(outcome, style) + &style.section("totals") + &definitions(pairs, style)
}

/// How many samples of the first and the last build were disturbed; none where neither records it.
fn disturbed_samples(outcome: &Outcome) -> Option<String> {
    let [src, .., dst] = &outcome.builds[..] else { return None };
    let counts = [src, dst].into_iter().filter_map(|build| {
        let SampleCounts { counted, disturbed } = build.samples?;
        Some(format!("{disturbed} of {counted} in {}", build.name))
    });
    Some(counts.collect::<Vec<_>>().join(", ")).filter(|counts| !counts.is_empty())
}

/// What was said of the first and the last build, and their environments, where they differ.
fn surroundings(outcome: &Outcome, style: Style) -> String {
    let [src, .., dst] = &outcome.builds[..] else { return String::new() };
    let differing = surrounding_differences(src, dst);
    let lines: String =
        differing.iter().take(SHOWN).map(|(name, src, dst)| style.remark(name, &format!("{src} → {dst}"))).collect();
    let more = match differing.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => style.indented(2, &format!("… and {more} more, in --json")),
    };
    if lines.is_empty() { lines } else { style.section("what else differs") + &lines + &more }
}

/// Each thing in which two builds' first runs differ, with both sides.
pub(super) fn surrounding_differences(src: &BuildTold, dst: &BuildTold) -> Vec<(String, String, String)> {
    let ([src, ..], [dst, ..]) = (&src.runs[..], &dst.runs[..]) else { return Vec::new() };
    let none = || "nothing".to_owned();
    let names: BTreeSet<&String> = src.metadata.keys().chain(dst.metadata.keys()).collect();
    let said = names.into_iter().filter(|name| !EXPECTED.contains(&name.as_str())).filter_map(|name| {
        let (src, dst) = (src.metadata.get(name), dst.metadata.get(name));
        (src != dst).then(|| (name.clone(), src.cloned().unwrap_or_else(none), dst.cloned().unwrap_or_else(none)))
    });
    let mut all: Vec<_> = said.collect();
    for (whose, machines) in &src.environment {
        let others = dst.environment.get(whose).map_or(&[][..], Vec::as_slice);
        for (src, dst) in machines.iter().zip(others) {
            let sections: BTreeSet<&String> = src.keys().chain(dst.keys()).collect();
            for section in sections
                .into_iter()
                .filter(|section| section.as_str() != MOMENTARY && src.get(*section) != dst.get(*section))
            {
                let text =
                    |of: &std::collections::BTreeMap<String, String>| of.get(section).cloned().unwrap_or_default();
                all.extend(differing_lines(&format!("{whose}, {section}"), &text(src), &text(dst)));
            }
        }
    }
    all
}

/// So many differences are told.
const SHOWN: usize = 40;

/// The section of an environment that is never the same twice.
pub(super) const MOMENTARY: &str = "momentary";

/// What differs between any two builds, and explains nothing.
const EXPECTED: [&str; 5] = ["build", "url", "started", "command", "machine url"];

/// Lines of one text that the other has not, side by side where both begin with the same name.
fn differing_lines(name: &str, src: &str, dst: &str) -> Vec<(String, String, String)> {
    let only = |of: &str, other: &str| -> Vec<String> {
        let known: BTreeSet<&str> = other.lines().collect();
        of.lines().filter(|line| !known.contains(line)).map(str::to_owned).collect()
    };
    let (mut gone, come) = (only(src, dst), only(dst, src));
    let key = |line: &str| line.split_once(':').map_or(line.to_owned(), |(key, _)| key.to_owned());
    let mut all = Vec::new();
    for line in come {
        let before = gone.iter().position(|other| key(other) == key(&line)).map(|at| gone.remove(at));
        let named = |line: &str| line.split_once(':').map_or(line, |(_, value)| value).trim().to_owned();
        match before {
            Some(before) => all.push((format!("{name}, {}", key(&line)), named(&before), named(&line))),
            None => all.push((name.to_owned(), "nothing".to_owned(), line)),
        }
    }
    all.extend(gone.into_iter().map(|line| (name.to_owned(), line, "nothing".to_owned())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_stand_side_by_side() {
        let told = differing_lines("World, kernel", "release: 6.1\nsmt: on\nold: 1", "release: 6.2\nsmt: on\nnew: 2");
        let wanted = [
            ("World, kernel, release", "6.1", "6.2"),
            ("World, kernel", "nothing", "new: 2"),
            ("World, kernel", "old: 1", "nothing"),
        ];
        assert_eq!(told, wanted.map(|(name, src, dst)| (name.to_owned(), src.to_owned(), dst.to_owned())));
    }
}
