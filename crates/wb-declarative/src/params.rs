//! Parameters of a definition: kinds, arguments in commands, and values that depend on the machine.

use std::collections::BTreeMap;

use toml::Spanned;
use wb_diagnostics::{Diagnostic, SourceText};
use wb_model::{Declaration, Facts, Param, ParamKind, ParamValue, Params};
use wb_test::SharedParams;

use super::error::unknown_name;
use super::raw::{self, MachineProperty, ParamType};
use super::template::{ArgumentShape, Builtin};

const RESERVED: [&str; 5] = ["name", "id", "tools", "metrics", "thresholds"];

#[derive(Debug, Default)]
pub(super) struct ParsedParams {
    /// Declared parameters, then those of every test.
    pub(super) params: Vec<Param>,
    /// How each is expanded in a command.
    pub(super) argument_shapes: BTreeMap<String, ArgumentShape>,
    pub(super) machine_params: Vec<MachineParam>,
}

/// A parameter whose default depends on the machine.
#[derive(Debug, Clone)]
pub(super) struct MachineParam {
    name: String,
    kind: ParamKind,
    property: MachineProperty,
    factor: f64,
}

impl ParsedParams {
    pub(super) fn parse(text: &SourceText, raw: &[Spanned<raw::Param>]) -> Result<Self, Diagnostic> {
        let mut parsed = Self::default();
        let placement = SharedParams::declarations();
        for param in raw {
            parsed.add(text, param.get_ref(), &placement)?;
        }
        for param in placement {
            let shape = match param.kind {
                ParamKind::List { .. } => ArgumentShape::List,
                ref kind => ArgumentShape::One(kind.clone()),
            };
            // Parameters without default are not available in commands.
            if param.default.is_some() {
                parsed.argument_shapes.insert(param.name.clone(), shape);
            }
            parsed.params.push(param);
        }
        Ok(parsed)
    }

    fn add(&mut self, text: &SourceText, raw: &raw::Param, placement: &[Param]) -> Result<(), Diagnostic> {
        let at_name = |diagnostic| text.locate(raw.name.span(), diagnostic);
        let name = raw.name.get_ref();
        for alias in std::iter::once(name).chain(&raw.aliases) {
            let is_named = |param: &Param| param.name == *alias || param.aliases.contains(alias);
            let conflict = if !is_valid_name(alias) {
                Some(
                    Diagnostic::new(format!("invalid name `{alias}`"))
                        .with_help("expected lower-case letters, digits and `-`"),
                )
            } else if RESERVED.contains(&alias.as_str()) {
                Some(Diagnostic::new(format!("name `{alias}` is reserved in plans")).with_help("choose another name"))
            } else if placement.iter().any(is_named) {
                Some(
                    Diagnostic::new(format!("name `{alias}` is a parameter of every test"))
                        .with_help("choose another name"),
                )
            } else if Builtin::from_name(alias).is_some() {
                Some(
                    Diagnostic::new(format!("name `{alias}` is a built-in placeholder"))
                        .with_help("choose another name"),
                )
            } else {
                self.params
                    .iter()
                    .any(is_named)
                    .then(|| Diagnostic::new(format!("duplicate parameter or alias `{alias}`")))
            };
            if let Some(diagnostic) = conflict {
                return Err(at_name(diagnostic));
            }
        }
        if raw.help.get_ref().trim().is_empty() {
            return Err(text.locate(raw.help.span(), Diagnostic::new(format!("missing help of parameter `{name}`"))));
        }
        let kind = parse_kind(text, raw)?;
        let default = match &raw.default {
            None => None,
            Some(default) => Some(kind.normalise(default.get_ref()).map_err(|error| {
                let diagnostic = Diagnostic::new(format!("invalid default of parameter `{name}`: {error}"));
                text.locate(default.span(), diagnostic)
            })?),
        };
        match (&default, &raw.resolved) {
            (None, None) => {
                let diagnostic = Diagnostic::new(format!("missing default of parameter `{name}`"));
                return Err(at_name(diagnostic.with_help("add `default`, or `resolved` if it depends on the machine")));
            }
            (Some(_), Some(resolved)) => {
                let diagnostic =
                    Diagnostic::new(format!("`default` and `resolved` of parameter `{name}` are mutually exclusive"))
                        .with_help("remove one");
                return Err(text.locate(resolved.span(), diagnostic));
            }
            _ => {}
        }
        let resolved =
            raw.resolved.as_ref().map(|resolved| self.add_machine_param(text, raw, &kind, resolved)).transpose()?;
        self.argument_shapes.insert(name.clone(), parse_argument_shape(text, raw, &kind)?);
        self.params.push(Param {
            name: name.clone(),
            aliases: raw.aliases.clone(),
            help: raw.help.get_ref().trim().to_owned(),
            kind,
            default,
            resolved_from: resolved,
            axis: raw.axis,
        });
        Ok(())
    }

    /// Adds a parameter whose default depends on the machine; returns a description of the default.
    fn add_machine_param(
        &mut self,
        text: &SourceText,
        raw: &raw::Param,
        kind: &ParamKind,
        resolved: &Spanned<MachineProperty>,
    ) -> Result<String, Diagnostic> {
        let property = *resolved.get_ref();
        let is_size = matches!(
            property,
            MachineProperty::Memory | MachineProperty::MemoryAvailable | MachineProperty::LastLevelCache
        );
        let is_compatible =
            if is_size { matches!(kind, ParamKind::Bytes { .. }) } else { matches!(kind, ParamKind::Integer { .. }) };
        if !is_compatible {
            let expected = if is_size { "bytes" } else { "integer" };
            let diagnostic = Diagnostic::new(format!("invalid `resolved` of parameter `{}`", raw.name.get_ref()));
            return Err(
                text.locate(resolved.span(), diagnostic.with_help(format!("it requires `kind = \"{expected}\"`")))
            );
        }
        let factor = raw.factor.as_ref().map_or(1.0, |factor| *factor.get_ref());
        if !(factor.is_finite() && factor > 0.0) {
            let position = raw.factor.as_ref().map_or(resolved.span(), Spanned::span);
            return Err(
                text.locate(position, Diagnostic::new(format!("invalid factor {factor}: expected a positive number")))
            );
        }
        self.machine_params.push(MachineParam {
            name: raw.name.get_ref().clone(),
            kind: kind.clone(),
            property,
            factor,
        });
        let description = property.description();
        Ok(if factor == 1.0 { description.to_owned() } else { format!("{factor} × {description}") })
    }
}

impl MachineProperty {
    fn description(self) -> &'static str {
        match self {
            Self::Cpus => "the number of usable CPUs",
            Self::Cores => "the number of usable cores",
            Self::OneAndCores => "one, and the number of usable cores",
            Self::Memory => "the worker's memory",
            Self::MemoryAvailable => "the worker's available memory",
            Self::LastLevelCache => "the worker's last-level cache",
        }
    }
}

impl MachineParam {
    /// Why a cell without a value of the parameter is unsupported: the machine's property is unknown.
    pub(super) fn unsupported(&self, params: &Params, facts: &Facts) -> Option<String> {
        let is_unknown = !params.contains_key(&self.name) && self.values(params, facts).is_none();
        let (name, property) = (&self.name, self.property.description());
        is_unknown.then(|| format!("`{name}` has no default here, {property} is unknown: give it a value"))
    }

    /// Name of the parameter, and its default values on a machine; none if the machine's property is unknown.
    pub(super) fn values(&self, given: &Params, facts: &Facts) -> Option<(String, Vec<ParamValue>)> {
        let (cpus, cores) = cpu_and_core_counts(given, facts);
        let numbers = match self.property {
            MachineProperty::Cpus => vec![cpus],
            MachineProperty::Cores => vec![cores],
            MachineProperty::OneAndCores if cores == 1 => vec![1],
            MachineProperty::OneAndCores => vec![1, cores],
            MachineProperty::Memory => vec![facts.memory.0],
            MachineProperty::MemoryAvailable => vec![facts.memory_available.0],
            MachineProperty::LastLevelCache => vec![facts.last_level_cache().0],
        };
        // The facts have zero for what is unknown.
        if numbers.contains(&0) {
            return None;
        }
        let value = |number: u64| {
            let scaled = (number as f64 * self.factor).floor().max(1.0) as i64;
            self.kind.normalise(&ParamValue::Integer(scaled)).unwrap_or(ParamValue::Integer(scaled))
        };
        let mut values: Vec<ParamValue> = numbers.into_iter().map(value).collect();
        values.dedup();
        Some((self.name.clone(), values))
    }
}

/// Number of CPUs that measured processes may use, and of their cores.
pub(super) fn cpu_and_core_counts(given: &Params, facts: &Facts) -> (u64, u64) {
    let only: Option<Vec<u32>> = match given.get("cpus") {
        Some(ParamValue::List(cpus)) if !cpus.is_empty() => {
            Some(cpus.iter().filter_map(|cpu| cpu.to_string().parse().ok()).collect())
        }
        _ => None,
    };
    let allowed = facts.cpus.iter().filter(|cpu| only.as_ref().is_none_or(|only| only.contains(&cpu.id)));
    let mut cores: Vec<(u32, u32)> = allowed.map(|cpu| (cpu.package, cpu.core)).collect();
    let cpus = cores.len().max(1) as u64;
    cores.sort_unstable();
    cores.dedup();
    (cpus, cores.len().max(1) as u64)
}

/// Default values of parameters, except those that depend on the machine.
pub(super) fn defaults(declaration: &Declaration) -> Params {
    declaration.params.iter().filter_map(|param| Some((param.name.clone(), param.default.clone()?))).collect()
}

fn is_valid_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_allowed)
}

fn parse_kind(text: &SourceText, raw: &raw::Param) -> Result<ParamKind, Diagnostic> {
    let error = |diagnostic| Err(text.locate(raw.kind.span(), diagnostic));
    let name = raw.name.get_ref();
    let kind = *raw.kind.get_ref();
    let element = raw.of.as_ref().map(|of| *of.get_ref());
    let inner = if kind == ParamType::List { element.unwrap_or(ParamType::Text) } else { kind };
    if kind != ParamType::List && element.is_some() {
        return error(Diagnostic::new(format!("`of` of parameter `{name}` requires `kind = \"list\"`")));
    }
    if (inner == ParamType::Choice) == raw.choices.is_empty() {
        return error(Diagnostic::new(format!(
            "`kind = \"choice\"` and `choices` of parameter `{name}` require each other"
        )));
    }
    let is_number = matches!(inner, ParamType::Integer | ParamType::Number);
    if !is_number && (raw.min.is_some() || raw.max.is_some()) {
        return error(Diagnostic::new(format!("`min` and `max` of parameter `{name}` require a numeric kind")));
    }
    let to_integer = |bound: Option<f64>| bound.map(|bound| bound as i64);
    let inner = match inner {
        ParamType::Bool => ParamKind::Bool,
        ParamType::Integer => ParamKind::Integer { min: to_integer(raw.min), max: to_integer(raw.max) },
        ParamType::Number => ParamKind::Number { min: raw.min, max: raw.max },
        ParamType::Bytes => ParamKind::Bytes { min: None },
        ParamType::Duration => ParamKind::Duration { min: None },
        ParamType::Choice => ParamKind::Choice { values: raw.choices.clone() },
        ParamType::Text => ParamKind::Text,
        ParamType::Words if kind == ParamType::Words => ParamKind::Text,
        ParamType::Words | ParamType::List => {
            return error(Diagnostic::new(format!("unsupported `of` of parameter `{name}`")));
        }
    };
    Ok(if kind == ParamType::List { ParamKind::List { of: Box::new(inner) } } else { inner })
}

fn parse_argument_shape(text: &SourceText, raw: &raw::Param, kind: &ParamKind) -> Result<ArgumentShape, Diagnostic> {
    let default_shape = match (raw.kind.get_ref(), kind) {
        (ParamType::Words, _) => ArgumentShape::Words,
        (_, ParamKind::List { .. }) => ArgumentShape::List,
        (_, kind) => ArgumentShape::One(kind.clone()),
    };
    let Some(arguments) = &raw.arguments else { return Ok(default_shape) };
    let error = |diagnostic| Err(text.locate(arguments.span(), diagnostic));
    let values: Vec<&str> = match kind {
        ParamKind::Bool => vec!["true", "false"],
        ParamKind::Choice { values } => values.iter().map(String::as_str).collect(),
        _ => return error(Diagnostic::new("`arguments` requires `kind = \"bool\"` or `kind = \"choice\"`")),
    };
    let table = arguments.get_ref();
    if let Some(unknown) = table.keys().find(|value| !values.contains(&value.as_str())) {
        let message = format!("unknown value `{unknown}` of parameter `{}`", raw.name.get_ref());
        return error(unknown_name(message, unknown, values));
    }
    if let Some(missing) = values.iter().find(|value| !table.contains_key(**value)) {
        return error(
            Diagnostic::new(format!("missing arguments for `{missing}`")).with_help("an empty list means none"),
        );
    }
    Ok(ArgumentShape::Table(table.iter().map(|(value, words)| (value.clone(), words.0.clone())).collect()))
}
