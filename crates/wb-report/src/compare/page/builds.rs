//! Table of the builds: their common properties, and a row for each with the others.

use std::collections::BTreeSet;

use serde::Serialize;
use wb_results::comparison::{BuildSummary, ComparisonResult, Totals};

use super::check_table::CheckTable;
use super::environment::EnvironmentView;
use super::figures::format_percent;
use super::links::{self, Hyperlink};
use crate::compare::averages::{GEOMETRIC_AVERAGE, INVERSION};
use crate::page::components::{NamedLinks, NamedText, named_text};

#[derive(Serialize)]
pub(super) struct BuildTable {
    pub(super) same: Vec<NamedLinks>,
    heads: Vec<String>,
    /// Whether averages are geometric, and not run-perf's scores.
    is_geometric: bool,
    /// What geometric averages are of.
    average: String,
    rows: Vec<BuildRow>,
    /// Each distinct command, with the builds that used it.
    pub(super) commands: Vec<NamedText>,
}

#[derive(Serialize)]
struct BuildRow {
    link: Hyperlink,
    runs: usize,
    metadata: Vec<Vec<Hyperlink>>,
    letters: Vec<String>,
    /// `None` for the first build, which is the baseline.
    verdict: Option<BuildVerdict>,
}

#[derive(Serialize)]
struct BuildVerdict {
    failures: usize,
    /// The number of primary checks that the first build does not have; they are not failures.
    new: usize,
    groups: usize,
    not_primary: usize,
    score: Option<String>,
    /// The CSS class for the score; empty for an average without an interval or a tolerance.
    tint: &'static str,
}

/// Metadata that is shown elsewhere on the page, or always differs without meaning.
const HIDDEN_METADATA: [&str; 7] =
    ["build", "command", "machine", "machine url", "machine-url-base", "machine_url_base", "url"];

impl BuildTable {
    pub(super) fn new(outcome: &ComparisonResult, table: &CheckTable<'_>, environments: &[EnvironmentView]) -> Self {
        let builds = &outcome.builds;
        let (same, differing): (Vec<_>, Vec<_>) = metadata_by_build(builds).into_iter().partition(|(_, of_builds)| {
            let first = &of_builds[0];
            of_builds.iter().all(|of_build| of_build == first)
        });
        let rows = table.names.iter().enumerate().map(|(column, name)| {
            let index = table.build(column);
            BuildRow {
                link: Hyperlink { text: (*name).to_owned(), ..links::build_link(&builds[index]) },
                runs: builds[index].runs.len(),
                metadata: differing.iter().map(|(_, of_builds)| of_builds[index].clone()).collect(),
                letters: environments.iter().map(|environment| environment.letters[index].clone()).collect(),
                verdict: (column > 0).then(|| BuildVerdict::new(table, column)),
            }
        });
        Self {
            heads: differing.iter().map(|(name, _)| name.clone()).collect(),
            is_geometric: !table.history.has_run_perf_score(),
            average: format!("{GEOMETRIC_AVERAGE}, {INVERSION}"),
            rows: rows.collect(),
            commands: commands(builds),
            same: same.into_iter().map(|(name, mut all)| NamedLinks { name, text: all.swap_remove(0) }).collect(),
        }
    }
}

fn metadata_by_build(builds: &[BuildSummary]) -> Vec<(String, Vec<Vec<Hyperlink>>)> {
    let machines: Vec<Vec<Hyperlink>> = builds.iter().map(links::machine_links).collect();
    let names = builds.iter().flat_map(|build| &build.runs).flat_map(|run| run.metadata.keys());
    let names: BTreeSet<&String> = names.filter(|name| !HIDDEN_METADATA.contains(&name.as_str())).collect();
    let columns = [("number", "build")].into_iter().chain(names.into_iter().map(|name| (name.as_str(), name.as_str())));
    let others = columns.map(|(head, name)| {
        let links = |build: &BuildSummary| {
            let mut texts: Vec<&String> = build.runs.iter().filter_map(|run| run.metadata.get(name)).collect();
            texts.dedup();
            texts.into_iter().map(Hyperlink::plain).collect()
        };
        (head.to_owned(), builds.iter().map(links).collect())
    });
    let all = std::iter::once(("machine".to_owned(), machines)).chain(others);
    all.filter(|(_, of_builds): &(_, Vec<Vec<Hyperlink>>)| of_builds.iter().any(|of_build| !of_build.is_empty()))
        .collect()
}

fn commands(builds: &[BuildSummary]) -> Vec<NamedText> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for build in builds {
        for command in build.runs.iter().filter_map(|run| run.metadata.get("command")) {
            match commands.iter_mut().find(|(existing, _)| existing == command) {
                Some((_, names)) if names.contains(&build.name.as_str()) => {}
                Some((_, names)) => names.push(&build.name),
                None => commands.push((command, vec![&build.name])),
            }
        }
    }
    let label = |names: &[&str]| if names.len() == builds.len() { "all builds".to_owned() } else { names.join(", ") };
    commands.into_iter().map(|(command, names)| named_text(label(&names), command)).collect()
}

impl BuildVerdict {
    fn new(table: &CheckTable<'_>, column: usize) -> Self {
        let history = table.history;
        let totals = table.totals(column);
        let score = history.score(table.build(column));
        let failed = totals.worse + totals.missing + totals.invalid + totals.incomparable + totals.errors;
        Self {
            failures: failed,
            new: totals.new,
            groups: totals.groups_regressed,
            not_primary: totals.not_primary_failed,
            score: score.map(format_percent),
            tint: score
                .filter(|_| history.has_run_perf_score())
                .map_or("", |score| score_class(score, history.tolerances.options.tolerance, &totals)),
        }
    }
}

/// The CSS class of a score: none within a quarter of the tolerance, a strong one beyond the tolerance if a check or a
/// group agrees.
fn score_class(score: f64, tolerance: f64, totals: &Totals) -> &'static str {
    let (better, worse) = (totals.better + totals.groups_improved > 0, totals.worse + totals.groups_regressed > 0);
    match score {
        score if score > tolerance && better => "much-better",
        score if score > tolerance / 4.0 => "better",
        score if score < -tolerance && worse => "much-worse",
        score if score < -tolerance / 4.0 => "worse",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_the_tolerance() {
        let both = Totals { better: 1, groups_regressed: 1, ..Totals::default() };
        let tints = [6.0, 2.0, 1.0, 0.0, -2.0, -6.0].map(|score| score_class(score, 5.0, &both));
        assert_eq!(tints, ["much-better", "better", "", "", "worse", "much-worse"]);
        // Without failures no strong colour is used.
        assert_eq!([6.0, -6.0].map(|score| score_class(score, 5.0, &Totals::default())), ["better", "worse"]);
    }
}
