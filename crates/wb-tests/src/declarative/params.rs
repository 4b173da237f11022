//! Parameters of a definition: what they take, what they become in commands, what the machine decides.

use std::collections::BTreeMap;

use toml::Spanned;
use wb_model::{Declaration, Facts, Param, ParamKind, ParamValue, Params};

use super::error::{DefinitionError, Diagnostic, SourceText};
use super::raw::{self, MachineProperty, ParamType};
use super::template::{ArgumentShape, Builtin};
use crate::test::shared_params;

/// Names that plans use for something else.
const RESERVED: [&str; 3] = ["name", "id", "tools"];

/// The parameters of a test.
#[derive(Debug, Default)]
pub(super) struct ParsedParams {
    /// As they are declared, those of the placement last.
    pub(super) params: Vec<Param>,
    /// What each becomes in a command.
    pub(super) argument_shapes: BTreeMap<String, ArgumentShape>,
    /// What the machine decides.
    pub(super) machine_params: Vec<MachineParam>,
}

/// A parameter that the machine decides.
#[derive(Debug, Clone)]
pub(super) struct MachineParam {
    name: String,
    kind: ParamKind,
    property: MachineProperty,
    factor: f64,
}

impl ParsedParams {
    /// Reads the parameters.
    pub(super) fn parse(text: &SourceText<'_>, raw: &[Spanned<raw::Param>]) -> Result<Self, DefinitionError> {
        let mut declared = Self::default();
        let placement = shared_params();
        for param in raw {
            declared.add(text, param.get_ref(), &placement)?;
        }
        for param in placement {
            let shape = match param.kind {
                ParamKind::List { .. } => ArgumentShape::List,
                ref kind => ArgumentShape::One(kind.clone()),
            };
            // What a test need not have stands in no command.
            if param.default.is_some() {
                declared.argument_shapes.insert(param.name.clone(), shape);
            }
            declared.params.push(param);
        }
        Ok(declared)
    }

    fn add(&mut self, text: &SourceText<'_>, raw: &raw::Param, placement: &[Param]) -> Result<(), DefinitionError> {
        let at_name = |fault| text.error_at(raw.name.span(), fault);
        let name = raw.name.get_ref();
        for each in std::iter::once(name).chain(&raw.aliases) {
            let known = |param: &Param| param.name == *each || param.aliases.contains(each);
            let taken = if !is_valid_name(each) {
                Some(
                    Diagnostic::new(format!("`{each}` is not a name"))
                        .with_help("lower-case letters, digits and `-` are allowed"),
                )
            } else if RESERVED.contains(&each.as_str()) {
                Some(Diagnostic::new(format!("`{each}` has another meaning in plans")).with_help("choose another name"))
            } else if placement.iter().any(known) {
                Some(
                    Diagnostic::new(format!("every test has a parameter `{each}` already"))
                        .with_help("choose another name"),
                )
            } else if Builtin::from_name(each).is_some() {
                Some(
                    Diagnostic::new(format!("`{{{each}}}` has another meaning in commands"))
                        .with_help("choose another name"),
                )
            } else {
                self.params.iter().any(known).then(|| Diagnostic::new(format!("`{each}` means two things")))
            };
            if let Some(fault) = taken {
                return Err(at_name(fault));
            }
        }
        if raw.help.get_ref().trim().is_empty() {
            return Err(text.error_at(raw.help.span(), Diagnostic::new(format!("`{name}` has no help"))));
        }
        let kind = parse_kind(text, raw)?;
        let default = match &raw.default {
            None => None,
            Some(default) => Some(kind.normalise(default.get_ref()).map_err(|bad| {
                let fault = Diagnostic::new(format!("`{name}` cannot have this default: {bad}"));
                text.error_at(default.span(), fault)
            })?),
        };
        match (&default, &raw.resolved) {
            (None, None) => {
                let fault = Diagnostic::new(format!("`{name}` has no value where none is given"));
                return Err(at_name(fault.with_help("add `default`, or `resolved` if the machine decides")));
            }
            (Some(_), Some(resolved)) => {
                let fault =
                    Diagnostic::new(format!("`{name}` has a default already")).with_help("remove one of the two");
                return Err(text.error_at(resolved.span(), fault));
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

    /// Notes that the machine decides a parameter, and says how.
    fn add_machine_param(
        &mut self,
        text: &SourceText<'_>,
        raw: &raw::Param,
        kind: &ParamKind,
        resolved: &Spanned<MachineProperty>,
    ) -> Result<String, DefinitionError> {
        let what = *resolved.get_ref();
        let is_size = matches!(
            what,
            MachineProperty::Memory | MachineProperty::MemoryAvailable | MachineProperty::LastLevelCache
        );
        let fits =
            if is_size { matches!(kind, ParamKind::Bytes { .. }) } else { matches!(kind, ParamKind::Integer { .. }) };
        if !fits {
            let expected = if is_size { "bytes" } else { "integer" };
            let fault = Diagnostic::new(format!("`{}` cannot be decided by that", raw.name.get_ref()));
            return Err(text.error_at(resolved.span(), fault.with_help(format!("its kind must be `{expected}`"))));
        }
        let times = raw.factor.as_ref().map_or(1.0, |times| *times.get_ref());
        if !(times.is_finite() && times > 0.0) {
            let at = raw.factor.as_ref().map_or(resolved.span(), Spanned::span);
            return Err(text.error_at(at, Diagnostic::new(format!("{times} is not a positive factor"))));
        }
        self.machine_params.push(MachineParam {
            name: raw.name.get_ref().clone(),
            kind: kind.clone(),
            property: what,
            factor: times,
        });
        let words = match what {
            MachineProperty::Cpus => "the CPUs it may use",
            MachineProperty::Cores => "the cores it may use",
            MachineProperty::OneAndCores => "one, and the cores it may use",
            MachineProperty::Memory => "the worker's memory",
            MachineProperty::MemoryAvailable => "the worker's available memory",
            MachineProperty::LastLevelCache => "the worker's last-level cache",
        };
        Ok(if times == 1.0 { words.to_owned() } else { format!("{times} × {words}") })
    }
}

impl MachineParam {
    /// The parameter and its values on this machine.
    pub(super) fn values(&self, given: &Params, facts: &Facts) -> (String, Vec<ParamValue>) {
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
        let value = |number: u64| {
            let scaled = (number as f64 * self.factor).floor().max(1.0) as i64;
            self.kind.normalise(&ParamValue::Integer(scaled)).unwrap_or(ParamValue::Integer(scaled))
        };
        let mut values: Vec<ParamValue> = numbers.into_iter().map(value).collect();
        values.dedup();
        (self.name.clone(), values)
    }
}

/// How many CPUs measured processes may use, and of how many cores they are.
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

/// Parameters at their defaults, as far as those are known without a machine.
pub(super) fn defaults(declaration: &Declaration) -> Params {
    declaration.params.iter().filter_map(|param| Some((param.name.clone(), param.default.clone()?))).collect()
}

fn is_valid_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fine)
}

fn parse_kind(text: &SourceText<'_>, raw: &raw::Param) -> Result<ParamKind, DefinitionError> {
    let wrong = |fault| Err(text.error_at(raw.kind.span(), fault));
    let name = raw.name.get_ref();
    let kind = *raw.kind.get_ref();
    let element = raw.of.as_ref().map(|of| *of.get_ref());
    let inner = if kind == ParamType::List { element.unwrap_or(ParamType::Text) } else { kind };
    if kind != ParamType::List && element.is_some() {
        return wrong(Diagnostic::new(format!("`{name}` is no list, and `of` is for lists")));
    }
    if (inner == ParamType::Choice) == raw.choices.is_empty() {
        return wrong(Diagnostic::new(format!("`{name}` is a choice and has no `choices`, or has them and is none")));
    }
    let is_number = matches!(inner, ParamType::Integer | ParamType::Number);
    if !is_number && (raw.min.is_some() || raw.max.is_some()) {
        return wrong(Diagnostic::new(format!("`{name}` is no number, and `min` and `max` are for numbers")));
    }
    let whole = |bound: Option<f64>| bound.map(|bound| bound as i64);
    let inner = match inner {
        ParamType::Bool => ParamKind::Bool,
        ParamType::Integer => ParamKind::Integer { min: whole(raw.min), max: whole(raw.max) },
        ParamType::Number => ParamKind::Number { min: raw.min, max: raw.max },
        ParamType::Bytes => ParamKind::Bytes { min: None },
        ParamType::Duration => ParamKind::Duration { min: None },
        ParamType::Choice => ParamKind::Choice { values: raw.choices.clone() },
        ParamType::Text => ParamKind::Text,
        ParamType::Words if kind == ParamType::Words => ParamKind::Text,
        ParamType::Words | ParamType::List => {
            return wrong(Diagnostic::new(format!("`{name}` cannot be a list of that")));
        }
    };
    Ok(if kind == ParamType::List { ParamKind::List { of: Box::new(inner) } } else { inner })
}

fn parse_argument_shape(
    text: &SourceText<'_>,
    raw: &raw::Param,
    kind: &ParamKind,
) -> Result<ArgumentShape, DefinitionError> {
    let plain = match (raw.kind.get_ref(), kind) {
        (ParamType::Words, _) => ArgumentShape::Words,
        (_, ParamKind::List { .. }) => ArgumentShape::List,
        (_, kind) => ArgumentShape::One(kind.clone()),
    };
    let Some(arguments) = &raw.arguments else { return Ok(plain) };
    let wrong = |fault| Err(text.error_at(arguments.span(), fault));
    let values: Vec<&str> = match kind {
        ParamKind::Bool => vec!["true", "false"],
        ParamKind::Choice { values } => values.iter().map(String::as_str).collect(),
        _ => return wrong(Diagnostic::new("only a bool or a choice can have `arguments`")),
    };
    let table = arguments.get_ref();
    if let Some(unknown) = table.keys().find(|value| !values.contains(&value.as_str())) {
        let what = format!("`{}` has no value `{unknown}`", raw.name.get_ref());
        return wrong(Diagnostic::unknown(what, unknown, values));
    }
    if let Some(missing) = values.iter().find(|value| !table.contains_key(**value)) {
        return wrong(
            Diagnostic::new(format!("the arguments for `{missing}` are missing")).with_help("an empty list means none"),
        );
    }
    Ok(ArgumentShape::Table(table.iter().map(|(value, words)| (value.clone(), words.0.clone())).collect()))
}
