//! Our own file: axes, rules, endpoints, baselines and aliases.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wb_diagnostics::suggest;
use wb_model::outcome::Gate;
use wb_model::{Bytes, MetricKey};

use super::endpoint::{AxisEntry, EndpointEntry, OneOrMany};
use super::entry_error::{EntryError, convert_items};
use crate::check::FigureCheck;
use crate::launch::{Dialect, PLACEHOLDERS};
use crate::matrix::{Aliases, Axis, AxisValues, Endpoint, ExpectedFailure, Matrix, Rule, Suite};
use wb_results::{Measure, Scenario};

use crate::scenario::CustomScenario;

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

pub(super) fn to_matrix(file: PeersFile) -> Result<Matrix, EntryError> {
    let PeersFile { axes, rules, endpoints, baselines, aliases, scenarios, servers, checks, expected_failures, root } =
        file;
    check_axes(&axes).map_err(|error| error.within("axes"))?;
    let rules = convert_items(rules, "rules", |rule| to_rule(rule, &axes))?;
    let scenarios = to_custom_scenarios(scenarios)?;
    let checks = convert_items(checks, "checks", to_check)?;
    let names = Names { axes: &axes, scenarios: &scenarios, servers: &servers };
    let endpoints = convert_items(endpoints, "endpoints", |entry| to_endpoint(entry, &names, Section::Endpoints))?;
    let baselines = convert_items(baselines, "baselines", |entry| to_endpoint(entry, &names, Section::Baselines))?;
    let axes = axes.into_iter().map(Axis).collect();
    let expected_failures = convert_items(expected_failures, "expected-failures", to_expected_failure)?;
    let aliases = Aliases(aliases);
    let suite = Suite::Weighbridge;
    let matrix =
        Matrix { suite, axes, rules, endpoints, baselines, aliases, scenarios, checks, expected_failures, root };
    check_ids(&matrix, Section::Endpoints.key())?;
    check_scopes(&matrix)?;
    Ok(matrix)
}

/// The list of a file in which an endpoint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Endpoints,
    Baselines,
}

impl Section {
    fn key(self) -> &'static str {
        match self {
            Self::Endpoints => "endpoints",
            Self::Baselines => "baselines",
        }
    }
}

fn check_axes(axes: &[String]) -> Result<(), EntryError> {
    if let Some((index, twice)) = first_duplicate(axes) {
        return Err(EntryError::new(format!("invalid axes: `{twice}` occurs twice")).within(index));
    }
    for (index, axis) in axes.iter().enumerate() {
        let reason = if !is_name(axis) {
            "expected a name of letters, digits, `-`, `_` and `.`"
        } else if PLACEHOLDERS.contains(&axis.as_str()) {
            "it is the name of a placeholder of commands"
        } else {
            continue;
        };
        return Err(EntryError::new(format!("invalid axis `{axis}`: {reason}")).within(index));
    }
    Ok(())
}

/// Checks that the endpoints beside which baselines are shown exist.
fn check_scopes(matrix: &Matrix) -> Result<(), EntryError> {
    for (index, baseline) in matrix.baselines.iter().enumerate() {
        for (key, scope) in [("ceiling", &baseline.ceiling), ("comparison", &baseline.comparison)] {
            for (axis, values) in scope.iter().flatten() {
                let possible = matrix.values(*axis);
                let Some(unknown) = values.iter().find(|value| !possible.contains(&value.as_str())) else { continue };
                let axis = &matrix.axes[*axis].0;
                let message = format!("invalid baseline `{}`: no endpoint has {axis} `{unknown}`", baseline.id);
                let error = EntryError::new(message)
                    .with_help(suggest(unknown, &possible), format!("expected one of {}", possible.join(", ")));
                return Err(error.within(axis.as_str()).within(key).within(index).within(Section::Baselines.key()));
            }
        }
    }
    Ok(())
}

fn to_rule(rule: RuleEntry, axes: &[String]) -> Result<Rule, EntryError> {
    let when = to_axis_values(rule.when, axes).map_err(|error| error.with_subject("invalid rule").within("when"))?;
    let find = |name: String| find_axis(axes, &name).map_err(|error| error.with_subject("invalid rule"));
    let drop = convert_items(rule.drop, "drop", find)?;
    let last = when.iter().map(|(axis, _)| *axis).max();
    let last = last.ok_or_else(|| EntryError::new("invalid rule: expected `when` to name an axis").within("when"))?;
    if let Some(index) = drop.iter().position(|axis| *axis <= last) {
        let message = format!(
            "invalid rule: `{}` is dropped by the value of `{}`, which must come before it in `axes`",
            axes[drop[index]], axes[last]
        );
        return Err(EntryError::new(message).within(index).within("drop"));
    }
    Ok(Rule { when, drop })
}

fn to_axis_values(entry: AxisEntry, axes: &[String]) -> Result<AxisValues, EntryError> {
    let to_values = |values| match values {
        OneOrMany::One(value) => vec![value],
        OneOrMany::Many(values) => values,
    };
    let convert = |(name, values): (String, _)| match find_axis(axes, &name) {
        Ok(axis) => Ok((axis, to_values(values))),
        Err(error) => Err(error.within(name.as_str())),
    };
    entry.into_iter().map(convert).collect()
}

fn to_custom_scenarios(entries: Vec<ScenarioEntry>) -> Result<Vec<CustomScenario>, EntryError> {
    let scenarios = convert_items(entries, "scenarios", to_scenario)?;
    let standard = Scenario::STANDARD.iter().map(Scenario::name);
    let names: Vec<String> =
        standard.clone().chain(scenarios.iter().map(|scenario| &*scenario.name)).map(str::to_owned).collect();
    match first_duplicate(&names) {
        Some((index, twice)) => Err(EntryError::new(format!("invalid scenarios: `{twice}` occurs twice"))
            .within("id")
            .within(index - standard.count())
            .within("scenarios")),
        None => Ok(scenarios),
    }
}

fn to_scenario(entry: ScenarioEntry) -> Result<CustomScenario, EntryError> {
    let ScenarioEntry { id, measure, send, receive, iterations } = entry;
    if !is_name(&id) {
        let message = format!("invalid scenario `{id}`: expected a name of letters, digits, `-`, `_` and `.`");
        return Err(EntryError::new(message).within("id"));
    }
    if iterations == 0 || (send.0, receive.0) == (0, 0) {
        let message = format!("invalid scenario `{id}`: expected iterations, and bytes to send or to receive");
        return Err(EntryError::new(message));
    }
    Ok(CustomScenario { name: id.into(), measure, send, receive, iterations })
}

fn to_check(entry: CheckEntry) -> Result<FigureCheck, EntryError> {
    let CheckEntry { cells, metric, min, max, gate } = entry;
    let key = metric.parse().ok().filter(|_| !metric.contains(' '));
    let metric: MetricKey = key.ok_or_else(|| {
        let message = format!("invalid metric `{metric}` of a check: expected CLASS/NAME, such as throughput/upload");
        EntryError::new(message).within("metric")
    })?;
    match (min, max) {
        (None, None) => return Err(EntryError::new(format!("invalid check of `{metric}`: expected `min` or `max`"))),
        (Some(min), Some(max)) if min > max => {
            let message = format!("invalid check of `{metric}`: expected `min` {min} to be at most `max` {max}");
            return Err(EntryError::new(message).within("min"));
        }
        _ => {}
    }
    Ok(FigureCheck { cells, gate: gate.unwrap_or(Gate::Plausibility), metric, min, max })
}

fn to_endpoint(entry: EndpointEntry, names: &Names<'_>, section: Section) -> Result<Endpoint, EntryError> {
    let subject = format!("invalid endpoint `{}`", entry.id);
    convert_endpoint(entry, names, section).map_err(|error| error.with_subject(&subject))
}

fn convert_endpoint(entry: EndpointEntry, names: &Names<'_>, section: Section) -> Result<Endpoint, EntryError> {
    let axes = names.axes;
    let mut by_axis = vec![Vec::new(); axes.len()];
    for (name, values) in &entry.supports {
        let within = |error: EntryError| error.within(name.as_str()).within("supports");
        if let Some((index, twice)) = first_duplicate(values) {
            return Err(within(EntryError::new(format!("`{twice}` occurs twice in `{name}`")).within(index)));
        }
        by_axis[find_axis(axes, name).map_err(within)?].clone_from(values);
    }
    let launch = entry.launch(axes)?;
    let scenarios = to_scenarios(&entry, names)?;
    let server = entry.server.as_deref().map(|server| find_server(server, names.servers)).transpose()?;
    let EndpointEntry { id, version, protocol, ceiling, comparison, .. } = entry;
    let axis_values = |key: &str, entry: Option<AxisEntry>| match entry {
        Some(_) if section == Section::Endpoints => {
            Err(EntryError::new("`ceiling` and `comparison` are keys of baselines").within(key))
        }
        entry => entry.map(|entry| to_axis_values(entry, axes).map_err(|error| error.within(key))).transpose(),
    };
    let (ceiling, comparison) = (axis_values("ceiling", ceiling)?, axis_values("comparison", comparison)?);
    Ok(Endpoint { id, version, protocol, supports: by_axis, scenarios, server, ceiling, comparison, launch })
}

/// The scenarios that an endpoint names, or else all that its dialect supports.
fn to_scenarios(entry: &EndpointEntry, names: &Names<'_>) -> Result<Vec<Scenario>, EntryError> {
    let custom = names.scenarios.iter().map(CustomScenario::scenario);
    let has_custom = entry.dialect() == Dialect::Weighbridge;
    let possible: Vec<Scenario> = Scenario::STANDARD.into_iter().chain(custom.filter(|_| has_custom)).collect();
    let Some(named) = &entry.scenarios else { return Ok(possible) };
    convert_items(named, "scenarios", |name| {
        possible.iter().find(|scenario| scenario.name() == name).cloned().ok_or_else(|| {
            let all: Vec<&str> = possible.iter().map(Scenario::name).collect();
            EntryError::new(format!("unknown scenario `{name}`"))
                .with_help(suggest(name, &all), format!("expected one of {}", all.join(", ")))
        })
    })
}

fn find_server(name: &str, servers: &BTreeMap<String, String>) -> Result<String, EntryError> {
    servers.get(name).cloned().ok_or_else(|| {
        let help = if servers.is_empty() {
            "the file has no `servers`".to_owned()
        } else {
            format!("expected one of {}", servers.keys().cloned().collect::<Vec<_>>().join(", "))
        };
        let error = EntryError::new(format!("unknown server `{name}`"));
        error.with_help(suggest(name, servers.keys()), help).within("server")
    })
}

fn to_expected_failure(entry: FailureEntry) -> Result<ExpectedFailure, EntryError> {
    let FailureEntry { cells, reason, until } = entry;
    // Days are compared as texts.
    let is_day = |text: &str| text.parse::<jiff::civil::Date>().is_ok_and(|day| day.to_string() == text);
    if !is_day(&until) {
        let message = format!("invalid `until` `{until}` of an expected failure: expected a day, YYYY-MM-DD");
        return Err(EntryError::new(message).within("until"));
    }
    Ok(ExpectedFailure { cells, reason, until })
}

fn find_axis(axes: &[String], name: &str) -> Result<usize, EntryError> {
    axes.iter().position(|axis| axis == name).ok_or_else(|| {
        EntryError::new(format!("unknown axis `{name}`"))
            .with_help(suggest(name, axes), format!("the axes are {}", axes.join(", ")))
    })
}

/// Whether a text consists of letters, digits, `-`, `_` and `.`.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The first name that occurred before, with its index.
fn first_duplicate(names: &[String]) -> Option<(usize, &String)> {
    let mut seen = BTreeSet::new();
    names.iter().enumerate().find(|(_, name)| !seen.insert(*name))
}

/// Checks that ids are unique, and that filters can name them. `endpoints` is the list of the file with the endpoints that
/// are no baselines.
pub(super) fn check_ids(matrix: &Matrix, endpoints: &str) -> Result<(), EntryError> {
    let baselines = matrix.baselines.len();
    let ids: Vec<String> =
        matrix.baselines.iter().chain(&matrix.endpoints).map(|endpoint| endpoint.id.clone()).collect();
    let at = |index: usize, message: String| {
        let error = EntryError::new(message).within("id");
        match index.checked_sub(baselines) {
            Some(index) => error.within(index).within(endpoints),
            None => error.within(index).within(Section::Baselines.key()),
        }
    };
    if let Some((index, twice)) = first_duplicate(&ids) {
        return Err(at(index, format!("invalid endpoints: the id `{twice}` occurs twice")));
    }
    let reserved = |id: &String| id.is_empty() || id.contains(['|', '(', ')']) || id.starts_with(['!', '~']);
    match ids.iter().position(reserved) {
        Some(index) => {
            let id = &ids[index];
            let expected = "expected a name without `|`, `(`, `)`, and without `!` or `~` in front";
            Err(at(index, format!("invalid id `{id}`: {expected}")))
        }
        None => Ok(()),
    }
}
