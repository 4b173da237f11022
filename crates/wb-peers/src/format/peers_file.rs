//! Our own file: axes, rules, endpoints, baselines and aliases.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wb_diagnostics::{help_with_suggestion, suggest};

use super::endpoint::EndpointEntry;
use crate::matrix::{Aliases, Axis, Endpoint, ExpectedFailure, Matrix, Rule, Scenario, Suite};

/// A peers file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PeersFile {
    axes: Vec<String>,
    #[serde(default)]
    rules: Vec<RuleEntry>,
    endpoints: Vec<EndpointEntry>,
    #[serde(default)]
    baselines: Vec<EndpointEntry>,
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    #[serde(default)]
    expected_failures: Vec<FailureEntry>,
    #[serde(default)]
    root: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureEntry {
    cells: String,
    reason: String,
    until: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    when: BTreeMap<String, OneOrMany>,
    drop: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The matrix that a file defines.
pub(super) fn to_matrix(file: PeersFile) -> Result<Matrix, String> {
    let PeersFile { axes, rules, endpoints, baselines, aliases, expected_failures, root } = file;
    if let Some(twice) = first_duplicate(&axes) {
        return Err(format!("invalid axes: `{twice}` occurs twice"));
    }
    let rules = rules.into_iter().map(|rule| to_rule(rule, &axes)).collect::<Result<_, _>>()?;
    let endpoints_of = |entries: Vec<EndpointEntry>| {
        entries.into_iter().map(|entry| to_endpoint(entry, &axes)).collect::<Result<Vec<_>, _>>()
    };
    let (endpoints, baselines) = (endpoints_of(endpoints)?, endpoints_of(baselines)?);
    let axes = axes.into_iter().map(Axis).collect();
    let expected_failures = expected_failures.into_iter().map(to_expected_failure).collect::<Result<_, _>>()?;
    let aliases = Aliases(aliases);
    let matrix =
        Matrix { suite: Suite::Weighbridge, axes, rules, endpoints, baselines, aliases, expected_failures, root };
    check_ids(&matrix)?;
    Ok(matrix)
}

fn to_rule(rule: RuleEntry, axes: &[String]) -> Result<Rule, String> {
    let position = |name: &str| find_axis(axes, name, "rule");
    let mut when = Vec::new();
    for (name, values) in rule.when {
        let values = match values {
            OneOrMany::One(value) => vec![value],
            OneOrMany::Many(values) => values,
        };
        when.push((position(&name)?, values));
    }
    let drop = rule.drop.iter().map(|name| position(name)).collect::<Result<Vec<_>, _>>()?;
    let last = when.iter().map(|(axis, _)| *axis).max().ok_or("invalid rule: expected `when` to name an axis")?;
    if let Some(early) = drop.iter().find(|axis| **axis <= last) {
        return Err(format!(
            "invalid rule: `{}` is dropped by the value of `{}`, which must come before it in `axes`",
            axes[*early], axes[last]
        ));
    }
    Ok(Rule { when, drop })
}

fn to_endpoint(entry: EndpointEntry, axes: &[String]) -> Result<Endpoint, String> {
    let mut by_axis = vec![Vec::new(); axes.len()];
    let id = &entry.id;
    for (name, values) in &entry.supports {
        if let Some(twice) = first_duplicate(values) {
            return Err(format!("invalid endpoint `{id}`: `{twice}` occurs twice in `{name}`"));
        }
        by_axis[find_axis(axes, name, &format!("endpoint `{id}`"))?].clone_from(values);
    }
    let launch = entry.launch(axes).map_err(|reason| format!("invalid endpoint `{id}`: {reason}"))?;
    let EndpointEntry { id, version, protocol, scenarios, .. } = entry;
    let scenarios = scenarios.unwrap_or_else(|| Scenario::ALL.to_vec());
    Ok(Endpoint { id, version, protocol, supports: by_axis, scenarios, launch })
}

fn to_expected_failure(entry: FailureEntry) -> Result<ExpectedFailure, String> {
    let FailureEntry { cells, reason, until } = entry;
    let is_day = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        let digits = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
    };
    if !is_day(&until) {
        return Err(format!("invalid `until` `{until}` of an expected failure: expected a day, YYYY-MM-DD"));
    }
    Ok(ExpectedFailure { cells, reason, until })
}

fn find_axis(axes: &[String], name: &str, subject: &str) -> Result<usize, String> {
    axes.iter().position(|axis| axis == name).ok_or_else(|| {
        let help = help_with_suggestion(suggest(name, axes).as_ref(), &format!("the axes are {}", axes.join(", ")));
        format!("invalid {subject}: unknown axis `{name}`: {help}")
    })
}

fn first_duplicate(names: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

/// Checks that ids are unique, and that filters can name them.
pub(super) fn check_ids(matrix: &Matrix) -> Result<(), String> {
    let ids: Vec<String> =
        matrix.baselines.iter().chain(&matrix.endpoints).map(|endpoint| endpoint.id.clone()).collect();
    if let Some(twice) = first_duplicate(&ids) {
        return Err(format!("invalid endpoints: the id `{twice}` occurs twice"));
    }
    let reserved = |id: &&String| id.is_empty() || id.contains(['|', '(', ')']) || id.starts_with(['!', '~']);
    match ids.iter().find(reserved) {
        Some(id) => {
            Err(format!("invalid id `{id}`: expected a name without `|`, `(`, `)`, and without `!` or `~` in front"))
        }
        None => Ok(()),
    }
}
