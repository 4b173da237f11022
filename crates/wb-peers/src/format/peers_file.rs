//! Our own file: axes, rules, endpoints, baselines and aliases.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wb_diagnostics::{help_with_suggestion, suggest};
use wb_model::outcome::Gate;
use wb_model::{Bytes, MetricKey};

use super::endpoint::{AxisEntry, EndpointEntry, OneOrMany};
use crate::check::FigureCheck;
use crate::launch::{Dialect, PLACEHOLDERS};
use crate::matrix::{Aliases, Axis, AxisValues, Endpoint, ExpectedFailure, Matrix, Rule, Suite};
use crate::scenario::{CustomScenario, Measure, Scenario};

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
    scenarios: Vec<ScenarioEntry>,
    #[serde(default)]
    servers: BTreeMap<String, String>,
    #[serde(default)]
    checks: Vec<CheckEntry>,
    #[serde(default)]
    expected_failures: Vec<FailureEntry>,
    #[serde(default)]
    root: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioEntry {
    id: String,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    send: Bytes,
    #[serde(default)]
    receive: Bytes,
    iterations: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckEntry {
    #[serde(default)]
    cells: String,
    metric: String,
    min: Option<f64>,
    max: Option<f64>,
    gate: Option<Gate>,
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
    when: AxisEntry,
    drop: Vec<String>,
}

struct Names<'a> {
    axes: &'a [String],
    scenarios: &'a [CustomScenario],
    /// Workers by the names of servers.
    servers: &'a BTreeMap<String, String>,
}

pub(super) fn to_matrix(file: PeersFile) -> Result<Matrix, String> {
    let PeersFile { axes, rules, endpoints, baselines, aliases, scenarios, servers, checks, expected_failures, root } =
        file;
    if let Some(twice) = first_duplicate(&axes) {
        return Err(format!("invalid axes: `{twice}` occurs twice"));
    }
    if let Some(axis) = axes.iter().find(|axis| !is_name(axis)) {
        return Err(format!("invalid axis `{axis}`: expected a name of letters, digits, `-`, `_` and `.`"));
    }
    if let Some(axis) = axes.iter().find(|axis| PLACEHOLDERS.contains(&axis.as_str())) {
        return Err(format!("invalid axis `{axis}`: it is the name of a placeholder of commands"));
    }
    let rules = rules.into_iter().map(|rule| to_rule(rule, &axes)).collect::<Result<_, _>>()?;
    let scenarios = scenarios.into_iter().map(to_scenario).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = Scenario::STANDARD
        .iter()
        .map(Scenario::name)
        .chain(scenarios.iter().map(|one| &*one.name))
        .map(str::to_owned)
        .collect();
    if let Some(twice) = first_duplicate(&names) {
        return Err(format!("invalid scenarios: `{twice}` occurs twice"));
    }
    let checks = checks.into_iter().map(to_check).collect::<Result<_, _>>()?;
    let names = Names { axes: &axes, scenarios: &scenarios, servers: &servers };
    let endpoints_of = |entries: Vec<EndpointEntry>| {
        entries.into_iter().map(|entry| to_endpoint(entry, &names)).collect::<Result<Vec<_>, _>>()
    };
    let (endpoints, baselines) = (endpoints_of(endpoints)?, endpoints_of(baselines)?);
    if let Some(endpoint) = endpoints.iter().find(|one| one.ceiling.is_some() || one.comparison.is_some()) {
        return Err(format!("invalid endpoint `{}`: `ceiling` and `comparison` are keys of baselines", endpoint.id));
    }
    let axes = axes.into_iter().map(Axis).collect();
    let expected_failures = expected_failures.into_iter().map(to_expected_failure).collect::<Result<_, _>>()?;
    let aliases = Aliases(aliases);
    let suite = Suite::Weighbridge;
    let matrix =
        Matrix { suite, axes, rules, endpoints, baselines, aliases, scenarios, checks, expected_failures, root };
    check_ids(&matrix)?;
    check_scopes(&matrix)?;
    Ok(matrix)
}

/// Checks that the endpoints beside which baselines are shown exist.
fn check_scopes(matrix: &Matrix) -> Result<(), String> {
    for baseline in &matrix.baselines {
        for (axis, values) in [&baseline.ceiling, &baseline.comparison].into_iter().flatten().flatten() {
            let possible = matrix.values(*axis);
            if let Some(unknown) = values.iter().find(|value| !possible.contains(&value.as_str())) {
                let help = format!("expected one of {}", possible.join(", "));
                let help = help_with_suggestion(suggest(unknown, &possible).as_ref(), &help);
                let axis = &matrix.axes[*axis].0;
                return Err(format!("invalid baseline `{}`: no endpoint has {axis} `{unknown}`: {help}", baseline.id));
            }
        }
    }
    Ok(())
}

fn to_rule(rule: RuleEntry, axes: &[String]) -> Result<Rule, String> {
    let when = to_axis_values(rule.when, axes, "rule")?;
    let drop = rule.drop.iter().map(|name| find_axis(axes, name, "rule")).collect::<Result<Vec<_>, _>>()?;
    let last = when.iter().map(|(axis, _)| *axis).max().ok_or("invalid rule: expected `when` to name an axis")?;
    if let Some(early) = drop.iter().find(|axis| **axis <= last) {
        return Err(format!(
            "invalid rule: `{}` is dropped by the value of `{}`, which must come before it in `axes`",
            axes[*early], axes[last]
        ));
    }
    Ok(Rule { when, drop })
}

fn to_axis_values(entry: AxisEntry, axes: &[String], subject: &str) -> Result<AxisValues, String> {
    let to_values = |values| match values {
        OneOrMany::One(value) => vec![value],
        OneOrMany::Many(values) => values,
    };
    entry.into_iter().map(|(name, values)| Ok((find_axis(axes, &name, subject)?, to_values(values)))).collect()
}

fn to_scenario(entry: ScenarioEntry) -> Result<CustomScenario, String> {
    let ScenarioEntry { id, measure, send, receive, iterations } = entry;
    if !is_name(&id) {
        return Err(format!("invalid scenario `{id}`: expected a name of letters, digits, `-`, `_` and `.`"));
    }
    if iterations == 0 || (send.0, receive.0) == (0, 0) {
        return Err(format!("invalid scenario `{id}`: expected iterations, and bytes to send or to receive"));
    }
    Ok(CustomScenario { name: id.into(), measure, send, receive, iterations })
}

fn to_check(entry: CheckEntry) -> Result<FigureCheck, String> {
    let CheckEntry { cells, metric, min, max, gate } = entry;
    let key = metric.parse().ok().filter(|_| !metric.contains(' '));
    let expected = "expected CLASS/NAME, such as throughput/upload";
    let metric: MetricKey = key.ok_or_else(|| format!("invalid metric `{metric}` of a check: {expected}"))?;
    match (min, max) {
        (None, None) => return Err(format!("invalid check of `{metric}`: expected `min` or `max`")),
        (Some(min), Some(max)) if min > max => {
            return Err(format!("invalid check of `{metric}`: expected `min` {min} to be at most `max` {max}"));
        }
        _ => {}
    }
    Ok(FigureCheck { cells, gate: gate.unwrap_or(Gate::Plausibility), metric, min, max })
}

fn to_endpoint(entry: EndpointEntry, names: &Names<'_>) -> Result<Endpoint, String> {
    let axes = names.axes;
    let mut by_axis = vec![Vec::new(); axes.len()];
    let id = &entry.id;
    for (name, values) in &entry.supports {
        if let Some(twice) = first_duplicate(values) {
            return Err(format!("invalid endpoint `{id}`: `{twice}` occurs twice in `{name}`"));
        }
        by_axis[find_axis(axes, name, &format!("endpoint `{id}`"))?].clone_from(values);
    }
    let launch = entry.launch(axes).map_err(|reason| format!("invalid endpoint `{id}`: {reason}"))?;
    let subject = format!("endpoint `{id}`");
    let scenarios = to_scenarios(&entry, names).map_err(|reason| format!("invalid {subject}: {reason}"))?;
    let server = entry.server.as_deref().map(|server| find_server(server, names.servers, &subject)).transpose()?;
    let EndpointEntry { id, version, protocol, ceiling, comparison, .. } = entry;
    let axis_values = |entry: Option<AxisEntry>| entry.map(|entry| to_axis_values(entry, axes, &subject)).transpose();
    let (ceiling, comparison) = (axis_values(ceiling)?, axis_values(comparison)?);
    Ok(Endpoint { id, version, protocol, supports: by_axis, scenarios, server, ceiling, comparison, launch })
}

/// The scenarios that an endpoint names, or else all that its dialect supports.
fn to_scenarios(entry: &EndpointEntry, names: &Names<'_>) -> Result<Vec<Scenario>, String> {
    let custom = names.scenarios.iter().map(CustomScenario::scenario);
    let has_custom = entry.dialect() == Dialect::Weighbridge;
    let possible: Vec<Scenario> = Scenario::STANDARD.into_iter().chain(custom.filter(|_| has_custom)).collect();
    let Some(named) = &entry.scenarios else { return Ok(possible) };
    let find = |name: &String| {
        possible.iter().find(|scenario| scenario.name() == name).cloned().ok_or_else(|| {
            let all: Vec<&str> = possible.iter().map(Scenario::name).collect();
            let help = format!("expected one of {}", all.join(", "));
            format!("unknown scenario `{name}`: {}", help_with_suggestion(suggest(name, &all).as_ref(), &help))
        })
    };
    named.iter().map(find).collect()
}

fn find_server(name: &str, servers: &BTreeMap<String, String>, subject: &str) -> Result<String, String> {
    servers.get(name).cloned().ok_or_else(|| {
        let help = if servers.is_empty() {
            "the file has no `servers`".to_owned()
        } else {
            format!("expected one of {}", servers.keys().cloned().collect::<Vec<_>>().join(", "))
        };
        let help = help_with_suggestion(suggest(name, servers.keys()).as_ref(), &help);
        format!("invalid {subject}: unknown server `{name}`: {help}")
    })
}

fn to_expected_failure(entry: FailureEntry) -> Result<ExpectedFailure, String> {
    let FailureEntry { cells, reason, until } = entry;
    // Days are compared as texts.
    let is_day = |text: &str| text.parse::<jiff::civil::Date>().is_ok_and(|day| day.to_string() == text);
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

/// Whether a text consists of letters, digits, `-`, `_` and `.`.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
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
