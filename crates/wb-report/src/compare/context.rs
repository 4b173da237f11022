//! Lists other differences between two builds (metadata, programs, environment) by section, with counts.

use serde::Serialize;
use wb_model::pluralize;
use wb_results::comparison::{ContextDifferences, MachineRef, SectionDifference, ValueChange};

use crate::text::Style;

/// Maximum number of lines per section; the JSON output has all.
const MAX_SECTION_LINES: usize = 10;
const MAX_LINES: usize = 60;
const MAX_VALUE_CHARS: usize = 160;

pub(super) struct ContextSection {
    /// Environment, name and count: `Localhost, packages: 3 differences`.
    pub(super) title: String,
    pub(super) rows: Vec<DifferenceRow>,
}

#[derive(Serialize)]
pub(super) struct DifferenceRow {
    /// Empty if the section has only one item.
    pub(super) name: String,
    pub(super) before: String,
    pub(super) after: String,
    /// The number of affected cells; empty if not applicable.
    pub(super) cells: String,
}

impl DifferenceRow {
    pub(super) fn new(change: &ValueChange) -> Self {
        let [before, after] = match (&change.before, &change.after) {
            (Some(before), Some(after)) => shorten_pair(before, after),
            (before, after) => {
                [before, after].map(|side| side.as_deref().map_or_else(|| "nothing".to_owned(), truncate))
            }
        };
        let cells = match change.cells.len() {
            0 => String::new(),
            cells => format!(" ({})", pluralize(cells, "cell")),
        };
        Self { name: change.name.clone(), before, after, cells }
    }

    fn line(&self) -> String {
        let Self { name, before, after, cells } = self;
        let space = if name.is_empty() { "" } else { "  " };
        format!("{name}{space}{before} → {after}{cells}")
    }
}

/// The sections in order of importance: metadata, programs, environment.
pub(super) fn sections(all: &ContextDifferences) -> Vec<ContextSection> {
    let metadata = ("metadata".to_owned(), &all.metadata);
    let programs = ("programs".to_owned(), &all.programs);
    let environment = all.environment.iter().map(|section| (title(section), &section.changes));
    let sections = [metadata, programs].into_iter().chain(environment).filter(|(_, changes)| !changes.is_empty());
    let section = |(title, changes): (String, &Vec<ValueChange>)| ContextSection {
        title: format!("{title}: {}", pluralize(changes.len(), "difference")),
        rows: changes.iter().map(DifferenceRow::new).collect(),
    };
    sections.map(section).collect()
}

/// Renders the differences for a terminal; empty if nothing differs.
pub(super) fn render_context(all: &ContextDifferences, style: Style) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = style.heading("other differences");
    let mut remaining = MAX_LINES;
    for ContextSection { title, rows } in sections(all) {
        text += &style.indent(2, &title);
        let shown = rows.len().min(MAX_SECTION_LINES).min(remaining);
        remaining -= shown;
        text.extend(rows[..shown].iter().map(|row| style.indent(4, &row.line())));
        if rows.len() > shown {
            text += &style.indent(4, &format!("… and {} more, in --json", rows.len() - shown));
        }
    }
    text
}

/// The machines by profile on which a section differs, and its name: `Localhost (vm1, vm2), kernel`.
fn title(section: &SectionDifference) -> String {
    let by_profile = section.machines.chunk_by(|left, right| left.profile == right.profile).map(|machines| {
        let workers: Vec<&str> = machines.iter().filter_map(|machine| machine.worker.as_deref()).collect();
        let Some(MachineRef { profile, .. }) = machines.first() else { return String::new() };
        if workers.is_empty() { profile.clone() } else { format!("{profile} ({})", workers.join(", ")) }
    });
    let by_profile: Vec<String> = by_profile.collect();
    format!("{}, {}", by_profile.join(", "), section.section)
}

/// Shortens both values of a change to fit a line: hashes to their prefix, long values to the differing words.
fn shorten_pair(before: &str, after: &str) -> [String; 2] {
    const HASH: usize = 12;
    let is_hash = |value: &str| value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash(before) && is_hash(after) && before[..HASH] != after[..HASH] {
        return [before, after].map(|hash| format!("{}…", &hash[..HASH]));
    }
    // Indentation matters only if nothing else differs.
    let [before, after] = if before.trim() == after.trim() { [before, after] } else { [before.trim(), after.trim()] };
    if before.chars().count().max(after.chars().count()) <= MAX_VALUE_CHARS {
        return [before, after].map(str::to_owned);
    }
    let [old, new] = [before, after].map(|value| value.split_whitespace().collect::<Vec<_>>());
    let unique_words = |side: &[&str], other: &[&str]| {
        let words: Vec<&str> = side.iter().filter(|word| !other.contains(word)).copied().collect();
        format!("… {} …", words.join(" "))
    };
    let words = [unique_words(&old, &new), unique_words(&new, &old)];
    // The words may differ only in order.
    if words.iter().all(|side| side == "…  …") {
        [before, after].map(truncate)
    } else {
        words.map(|side| truncate(&side))
    }
}

fn truncate(value: &str) -> String {
    let short: String = value.chars().take(MAX_VALUE_CHARS).collect();
    if short.len() < value.len() { short + "…" } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, before: Option<&str>, after: Option<&str>) -> ValueChange {
        ValueChange {
            name: name.to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            cells: Vec::new(),
        }
    }

    #[test]
    fn sections_have_counts_machines_and_a_line_for_each_difference() {
        let machine = |profile: &str, worker: Option<&str>| MachineRef {
            profile: profile.to_owned(),
            worker: worker.map(str::to_owned),
        };
        let packages = (0..12).map(|number| change(&format!("package-{number:02}"), Some("1"), None)).collect();
        let hash = |digit: &str| Some(digit.repeat(64));
        let all = ContextDifferences {
            metadata: vec![change("distro", Some("Debian 12"), Some("Debian 13"))],
            programs: vec![ValueChange {
                name: "compile-c: affine sha256".to_owned(),
                before: hash("a"),
                after: hash("b"),
                cells: vec!["one".to_owned(), "two".to_owned()],
            }],
            environment: vec![
                SectionDifference {
                    machines: vec![
                        machine("Localhost", None),
                        machine("Tuned", Some("vm1")),
                        machine("Tuned", Some("vm2")),
                    ],
                    section: "kernel".to_owned(),
                    changes: vec![change("release", Some("5.0.9"), Some("5.6.13"))],
                },
                SectionDifference {
                    machines: vec![machine("Localhost", None)],
                    section: "packages".to_owned(),
                    changes: packages,
                },
            ],
        };
        insta::assert_snapshot!(render_context(&all, Style { width: 100, colour: false, is_terminal: true }), @r"
        other differences
          metadata: 1 difference
            distro  Debian 12 → Debian 13
          programs: 1 difference
            compile-c: affine sha256  aaaaaaaaaaaa… → bbbbbbbbbbbb… (2 cells)
          Localhost, Tuned (vm1, vm2), kernel: 1 difference
            release  5.0.9 → 5.6.13
          Localhost, packages: 12 differences
            package-00  1 → nothing
            package-01  1 → nothing
            package-02  1 → nothing
            package-03  1 → nothing
            package-04  1 → nothing
            package-05  1 → nothing
            package-06  1 → nothing
            package-07  1 → nothing
            package-08  1 → nothing
            package-09  1 → nothing
            … and 2 more, in --json
        ");
        assert_eq!(
            render_context(&ContextDifferences::default(), Style { width: 100, colour: false, is_terminal: true }),
            ""
        );
    }

    #[test]
    fn long_values_are_shortened_to_differing_words() {
        let line = |last: &str| format!("{} {last}", "word ".repeat(40));
        assert_eq!(
            shorten_pair(&line("quiet"), &line("nosmt mitigations=off")),
            ["… quiet …", "… nosmt mitigations=off …"]
        );
    }
}
