//! The builds side by side: what all have in common, and a line for each with the rest.

use std::collections::BTreeSet;

use serde::Serialize;
use wb_compare::ComparisonResult;
use wb_compare::comparison::{BuildHistory, BuildSummary, Totals};

use super::environment::EnvironmentView;
use super::figures::format_percent;
use super::links::{self, Hyperlink};
use crate::page::components::{NamedLinks, NamedText, named_text};

/// All of them.
#[derive(Serialize)]
pub(super) struct BuildTable {
    /// What is the same in all.
    pub(super) same: Vec<NamedLinks>,
    heads: Vec<String>,
    rows: Vec<BuildRow>,
    /// Each command that was typed, and by which builds.
    pub(super) commands: Vec<NamedText>,
}

#[derive(Serialize)]
struct BuildRow {
    link: Hyperlink,
    runs: usize,
    metadata: Vec<Vec<Hyperlink>>,
    letters: Vec<String>,
    /// None for the first build, which is held against nothing.
    verdict: Option<BuildVerdict>,
}

#[derive(Serialize)]
struct BuildVerdict {
    failures: usize,
    groups: usize,
    not_primary: usize,
    score: Option<String>,
    /// How good the score is: the name of a style.
    tint: &'static str,
}

/// What is said elsewhere on the page, or differs always and explains nothing.
const HIDDEN_METADATA: [&str; 7] =
    ["build", "command", "machine", "machine url", "machine-url-base", "machine_url_base", "url"];

impl BuildTable {
    pub(super) fn new(
        outcome: &ComparisonResult,
        history: &BuildHistory<'_>,
        environments: &[EnvironmentView],
    ) -> Self {
        let builds = &outcome.builds;
        let (same, differing): (Vec<_>, Vec<_>) = metadata_by_build(builds).into_iter().partition(|(_, of_builds)| {
            let first = &of_builds[0];
            of_builds.iter().all(|of_build| of_build == first)
        });
        let rows = builds.iter().enumerate().map(|(at, build)| BuildRow {
            link: links::build_link(build),
            runs: build.runs.len(),
            metadata: differing.iter().map(|(_, of_builds)| of_builds[at].clone()).collect(),
            letters: environments.iter().map(|environment| environment.letters[at].clone()).collect(),
            verdict: (at > 0).then(|| BuildVerdict::of(history, at)),
        });
        Self {
            heads: differing.iter().map(|(name, _)| name.clone()).collect(),
            rows: rows.collect(),
            commands: commands(builds),
            same: same.into_iter().map(|(name, mut all)| NamedLinks { name, text: all.swap_remove(0) }).collect(),
        }
    }
}

/// Everything that was said of any build, by build: the machines first.
fn metadata_by_build(builds: &[BuildSummary]) -> Vec<(String, Vec<Vec<Hyperlink>>)> {
    let machines: Vec<Vec<Hyperlink>> = builds.iter().map(links::machine_links).collect();
    let names = builds.iter().flat_map(|build| &build.runs).flat_map(|run| run.metadata.keys());
    let names: BTreeSet<&String> = names.filter(|name| !HIDDEN_METADATA.contains(&name.as_str())).collect();
    let others = [("number", "build")].into_iter().chain(names.into_iter().map(|name| (name.as_str(), name.as_str())));
    let others = others.map(|(head, name)| {
        let of = |build: &BuildSummary| {
            let mut texts: Vec<&String> = build.runs.iter().filter_map(|run| run.metadata.get(name)).collect();
            texts.dedup();
            texts.into_iter().map(Hyperlink::plain).collect()
        };
        (head.to_owned(), builds.iter().map(of).collect())
    });
    let all = std::iter::once(("machine".to_owned(), machines)).chain(others);
    all.filter(|(_, of_builds): &(_, Vec<Vec<Hyperlink>>)| of_builds.iter().any(|of_build| !of_build.is_empty()))
        .collect()
}

/// Each command once, with the builds that used it.
fn commands(builds: &[BuildSummary]) -> Vec<NamedText> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for build in builds {
        for command in build.runs.iter().filter_map(|run| run.metadata.get("command")) {
            match commands.iter_mut().find(|(known, _)| known == command) {
                Some((_, names)) if names.contains(&build.name.as_str()) => {}
                Some((_, names)) => names.push(&build.name),
                None => commands.push((command, vec![&build.name])),
            }
        }
    }
    let whose = |names: &[&str]| if names.len() == builds.len() { "all builds".to_owned() } else { names.join(", ") };
    commands.into_iter().map(|(command, names)| named_text(whose(&names), command)).collect()
}

impl BuildVerdict {
    fn of(history: &BuildHistory<'_>, build: usize) -> Self {
        let totals = history.totals(build);
        let score = history.score(build);
        Self {
            failures: totals.losses + totals.missing + totals.invalid + totals.incomparable + totals.errors,
            groups: totals.groups_lost,
            not_primary: totals.not_primary_failed,
            score: score.map(format_percent),
            tint: score.map_or("", |score| tint(score, history.tolerances.options.tolerance, &totals)),
        }
    }
}

/// A colour for a score: none within a quarter of the tolerance, a strong one beyond all of it where a check or a group
/// says the same.
fn tint(score: f64, tolerance: f64, totals: &Totals) -> &'static str {
    let (better, worse) = (totals.gains + totals.groups_gained > 0, totals.losses + totals.groups_lost > 0);
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
        let both = Totals { gains: 1, groups_lost: 1, ..Totals::default() };
        let tints = [6.0, 2.0, 1.0, 0.0, -2.0, -6.0].map(|score| tint(score, 5.0, &both));
        assert_eq!(tints, ["much-better", "better", "", "", "worse", "much-worse"]);
        // Where nothing failed, nothing looks as if it had.
        assert_eq!([6.0, -6.0].map(|score| tint(score, 5.0, &Totals::default())), ["better", "worse"]);
    }
}
