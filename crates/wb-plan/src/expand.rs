//! Expansion of requested tests into cells.

mod combination;

use std::collections::{BTreeMap, BTreeSet};

use wb_diagnostics::{Diagnostic, DiagnosticCollector, Diagnostics, suggest};
use wb_model::roles::all_workers;
use wb_model::{
    CellId, Criteria, Declaration, DefinitionKey, Facts, Param, ParamKind, ParamValue, Params, ProfileName, Roles,
    Scope, Serial, TestName, WorkerName,
};

use crate::catalog::CellMatrix;
use crate::criteria::require_aggregates;
use crate::plan::{Cell, Plan, SkippedCell};
use crate::programs;
use crate::request::{PropertyGroup, SpannedValue, ValueForm, split_commas};
use crate::role_assignment::RoleAssignment;
use crate::{Catalog, CatalogCell, PlanWorkers, Request, Sampling, SelectableCell, Selection, SpannedParam};
use combination::{Combination, Dimension, combine};

/// The prefix of knobs as parameters: `knobs.thp-enabled`. Every test accepts them; they are axes, applied during each
/// sample.
pub const KNOBS: &str = "knobs.";
/// The parameter for the number of workers that measure a cell at the same time, if there are several.
pub const WORKERS: &str = "workers";
/// The parameter that marks a test whose sides are on different workers.
pub const SIDES: &str = "sides";

/// The value of an integer parameter that stands for the number of CPUs of a worker.
pub const WORKER_CPUS: &str = "worker-cpus";

/// Expands requests into cells for these workers; without workers, machine-dependent values stay unresolved.
pub fn expand(
    requests: &[Request],
    sampling: &Sampling,
    catalog: &dyn Catalog,
    workers: Option<&PlanWorkers>,
    profile: &ProfileName,
    selection: &Selection,
) -> Result<Plan, Diagnostics> {
    let mut expansion = PlanExpansion {
        sampling,
        catalog,
        workers,
        profile,
        selection,
        positions: BTreeMap::new(),
        seen: BTreeSet::new(),
        plan: Plan { cells: Vec::new(), skipped: Vec::new(), sampling: sampling.clone() },
    };
    let mut errors = DiagnosticCollector::default();
    for request in requests {
        errors.ok(expansion.add(request));
    }
    errors.finish()?;
    let mut plan = expansion.plan;
    programs::reject_unused(requests, &plan.cells, catalog)?;
    assign_blocks(&mut plan.cells, sampling.max_prepared);
    Ok(plan)
}

struct PlanExpansion<'a> {
    sampling: &'a Sampling,
    catalog: &'a dyn Catalog,
    workers: Option<&'a PlanWorkers>,
    profile: &'a ProfileName,
    selection: &'a Selection,
    /// By test, the number of requests so far whose serial is a position.
    positions: BTreeMap<TestName, u16>,
    seen: BTreeSet<CellId>,
    plan: Plan,
}

impl PlanExpansion<'_> {
    /// Adds the cells of one request, or none of them if it has an error.
    fn add(&mut self, request: &Request) -> Result<(), Diagnostics> {
        let Self { sampling, catalog, workers, .. } = *self;
        let declaration = declaration_of(request, catalog)?;
        let serial = match &request.id {
            Some(id) => Serial::Id(id.clone()),
            None => {
                let position = self.positions.entry(declaration.name.clone()).or_default();
                *position += 1;
                Serial::Position(*position - 1)
            }
        };
        let (roles, params) = RoleAssignment::from_request(request, declaration)?;
        let involved = workers.map(|workers| roles.participants(request, workers)).transpose()?.unwrap_or_default();
        let facts = |worker: &WorkerName| Some((worker.clone(), workers?.latest_facts(worker)?));
        let involved = involved.iter().filter_map(facts).collect();
        let context = RequestExpansion {
            request,
            params,
            roles,
            declaration,
            catalog,
            workers,
            participants: involved,
            sampling,
        };
        let combinations = context.combinations()?;
        let criteria = context.criteria(&combinations)?;
        for (Combination { case, params, open, matrix_name, server }, criteria) in
            combinations.into_iter().zip(criteria)
        {
            let test = declaration.name.clone();
            let id = CellId { profile: self.profile.clone(), test, serial: serial.clone(), case };
            if !self.seen.insert(id.clone()) {
                let message = format!("duplicate cell `{id}`");
                return Err(Diagnostic::at(&request.source, request.test_span.clone(), message, "from this test")
                    .with_help("list each value once, and use each `id=` for one test only")
                    .into());
            }
            let selectable =
                SelectableCell::new(&id, &params, Some(declaration)).with_matrix_name(matrix_name.as_deref());
            match self.selection.skip_reason(&selectable) {
                Some(reason) => self.plan.skipped.push(SkippedCell { id, params, matrix_name, reason }),
                None => {
                    let cell = context.cell(id, params, open, server.as_deref())?;
                    if cell.roles.len() > 1 {
                        require_aggregates(&criteria, request, &catalog.metrics(&request.test, &cell.params))?;
                    }
                    self.plan.cells.push(Cell { criteria, matrix_name, ..cell });
                }
            }
        }
        Ok(())
    }
}

fn declaration_of<'a>(request: &Request, catalog: &'a dyn Catalog) -> Result<&'a Declaration, Diagnostic> {
    let declaration = catalog.declaration(&request.test).ok_or_else(|| unknown_test(request, catalog))?;
    match request.stages.first() {
        Some(stage) => Err(stages_error(request, stage)),
        None => Ok(declaration),
    }
}

fn unknown_test(request: &Request, catalog: &dyn Catalog) -> Diagnostic {
    Diagnostic::at(&request.source, request.test_span.clone(), format!("unknown test `{}`", request.test), "unknown")
        .with_suggestion(suggest(&request.test, catalog.names()))
        .with_help(format!("expected one of {}", catalog.names().join(", ")))
}

fn stages_error(request: &Request, stage: &PropertyGroup) -> Diagnostic {
    let text = &request.source.text;
    let merged = format!("{},{}", &text[..stage.at.start], &text[stage.at.start + 1..]);
    let (label, help) = if stage.params.is_empty() {
        ("an empty group of properties", "remove the `:`".to_owned())
    } else if text.contains('{') {
        ("a further group of properties", "put all properties into one group".to_owned())
    } else {
        ("a further group of properties", format!("put all properties into one group: `{merged}`"))
    };
    Diagnostic::at(&request.source, stage.at.clone(), format!("test `{}` has a single stage", request.test), label)
        .with_help(help)
}

struct RequestExpansion<'a> {
    request: &'a Request,
    /// Without the role arguments.
    params: Vec<&'a SpannedParam>,
    roles: RoleAssignment<'a>,
    declaration: &'a Declaration,
    catalog: &'a dyn Catalog,
    workers: Option<&'a PlanWorkers>,
    participants: Vec<(WorkerName, &'a Facts)>,
    sampling: &'a Sampling,
}

impl RequestExpansion<'_> {
    fn combinations(&self) -> Result<Vec<Combination>, Diagnostics> {
        let mut given = self.normalize_params()?;
        let unresolved = self.substitute_worker_cpus(&mut given)?;
        let fixed = |values: &(Vec<ParamValue>, bool)| (values.0.len() == 1).then(|| values.0[0].clone());
        let single_values: Params = given.iter().filter_map(|(name, v)| Some((name.clone(), fixed(v)?))).collect();
        let matrix = self.matrix(&given, &single_values)?;
        let resolved = self.resolve_from_machine(&single_values)?;
        let mut open = BTreeMap::new();
        let mut dimensions = Vec::new();
        let knobs: Vec<Param> =
            given.keys().filter(|name| name.starts_with(KNOBS)).map(|name| knob_param(name)).collect();
        for param in self.declaration.params.iter().chain(&knobs) {
            if matrix.as_ref().is_some_and(|matrix| matrix.selection_params.contains(&param.name.as_str())) {
                continue;
            }
            if unresolved.contains(&param.name) {
                if self.workers.is_none() {
                    open.insert(param.name.clone(), "the CPUs of a worker".to_owned());
                }
                continue;
            }
            let from_machine = || resolved.as_ref().and_then(|values| values.get(&param.name));
            let (values, is_list) = match given.get(&param.name) {
                Some((values, is_list)) => (values.clone(), *is_list),
                None => match (from_machine(), &param.resolved_from, &param.default) {
                    // No value describes what the test does.
                    (Some(values), _, _) if values.is_empty() => continue,
                    (Some(values), _, _) => (values.clone(), values.len() > 1),
                    (None, Some(how), None) if self.workers.is_none() => {
                        open.insert(param.name.clone(), how.clone());
                        continue;
                    }
                    (None, _, Some(default)) => (vec![default.clone()], false),
                    (None, _, None) => continue,
                },
            };
            dimensions.push(Dimension { param, values, axis: param.axis || is_list });
        }
        Ok(combine(matrix, &dimensions, &open))
    }

    /// The criteria of each cell. Unselected cells are included: a metric that only they have is not unknown.
    fn criteria(&self, combinations: &[Combination]) -> Result<Vec<Criteria>, Diagnostics> {
        let Request { source, test, criteria, .. } = self.request;
        if criteria.is_empty() {
            return Ok(vec![Criteria::default(); combinations.len()]);
        }
        let metrics = combinations.iter().map(|combination| self.catalog.metrics(test, &combination.params));
        criteria.resolve(source, &self.declaration.name, &metrics.collect::<Vec<_>>())
    }

    fn matrix(
        &self,
        given: &BTreeMap<String, (Vec<ParamValue>, bool)>,
        single_values: &Params,
    ) -> Result<Option<CellMatrix>, Diagnostic> {
        let Request { source, test, test_span, .. } = self.request;
        let located = |error: Diagnostic| match error.location() {
            Some(_) => error,
            None => {
                let located = Diagnostic::at(source, test_span.clone(), error.to_string(), "of this matrix");
                match error.help() {
                    Some(help) => located.with_help(help),
                    None => located,
                }
            }
        };
        let matrix = self.catalog.matrix(test, single_values).map_err(located)?;
        let names = matrix.iter().flat_map(|matrix| &matrix.selection_params);
        match names.into_iter().find(|name| given.get(**name).is_some_and(|(_, is_list)| *is_list)) {
            Some(list) => {
                let message = format!("`{list}` of `{test}` cannot have several values");
                Err(Diagnostic::at(source, test_span.clone(), message, "of this matrix")
                    .with_help("each matrix requires its own [[peers]]"))
            }
            None => Ok(matrix),
        }
    }

    /// Replaces [`WORKER_CPUS`] by the number of CPUs; removes and returns the parameters for which no worker is known.
    fn substitute_worker_cpus(
        &self,
        given: &mut BTreeMap<String, (Vec<ParamValue>, bool)>,
    ) -> Result<BTreeSet<String>, Diagnostic> {
        let mut unresolved = BTreeSet::new();
        for (name, (values, _)) in given.iter_mut() {
            for value in values.iter_mut().filter(|value| **value == ParamValue::Text(WORKER_CPUS.to_owned())) {
                match self.worker_cpus(name)? {
                    Some(cpus) => *value = ParamValue::Integer(cpus),
                    None => drop(unresolved.insert(name.clone())),
                }
            }
        }
        given.retain(|name, _| !unresolved.contains(name));
        Ok(unresolved)
    }

    /// The number of CPUs of each worker of the cell, which must be equal; `None` without workers.
    fn worker_cpus(&self, name: &str) -> Result<Option<i64>, Diagnostic> {
        let Some(((first, facts), others)) = self.participants.split_first() else { return Ok(None) };
        let count = |facts: &Facts| facts.cpus.len() as i64;
        match others.iter().find(|(_, other)| count(other) != count(facts)) {
            None => Ok(Some(count(facts))),
            Some((other, other_facts)) => {
                let (one, two) = (count(facts).to_string(), count(other_facts).to_string());
                Err(self
                    .differing_values(name, (first, &one), (other, &two))
                    .with_help(format!("set `{name}` to a number, or measure on one of them: `on={first}`")))
            }
        }
    }

    /// Resolves values from the machine, which must be the same on all workers; `None` without workers.
    fn resolve_from_machine(
        &self,
        single_values: &Params,
    ) -> Result<Option<BTreeMap<String, Vec<ParamValue>>>, Diagnostic> {
        let resolve_on = |facts: &Facts| self.catalog.resolve(&self.request.test, single_values, facts);
        let Some(((first, facts), others)) = self.participants.split_first() else { return Ok(None) };
        let resolved = resolve_on(facts);
        for (other, facts) in others {
            let other_values = resolve_on(facts);
            let differing =
                resolved.keys().chain(other_values.keys()).find(|name| resolved.get(*name) != other_values.get(*name));
            if let Some(name) = differing {
                let format_values = |of: &BTreeMap<String, Vec<ParamValue>>| {
                    let values: Vec<String> = of.get(name).into_iter().flatten().map(ParamValue::to_string).collect();
                    if values.is_empty() { "nothing".to_owned() } else { values.join(", ") }
                };
                let (one, two) = (format_values(&resolved), format_values(&other_values));
                return Err(self
                    .differing_values(name, (first, &one), (other, &two))
                    .with_help(format!("set `{name}`, or measure on one of them: `on={first}`")));
            }
        }
        Ok(Some(resolved))
    }

    fn differing_values(
        &self,
        name: &str,
        (first, one): (&WorkerName, &str),
        (other, two): (&WorkerName, &str),
    ) -> Diagnostic {
        let message = format!("`{name}` would be {one} on `{first}` and {two} on `{other}`");
        let label = "workers that measure together need the same values";
        Diagnostic::at(&self.request.source, self.request.test_span.clone(), message, label)
    }

    /// The given parameters by canonical name, with normalised values and whether each was a list.
    fn normalize_params(&self) -> Result<BTreeMap<String, (Vec<ParamValue>, bool)>, Diagnostics> {
        let mut all = BTreeMap::new();
        let mut errors = DiagnosticCollector::default();
        for given in self.params.iter().copied() {
            let Some((param, values)) = errors.ok(self.normalize_param(given)) else { continue };
            if all.insert(param.clone(), values).is_some() {
                let message = format!("`{param}` is given twice");
                let duplicate = Diagnostic::at(&self.request.source, given.name_span.clone(), message, "here again")
                    .with_help(format!("`{param}=[a,b]` makes one cell per value"));
                errors.push(duplicate);
            }
        }
        errors.finish()?;
        Ok(all)
    }

    fn normalize_param(&self, given: &SpannedParam) -> Result<(String, (Vec<ParamValue>, bool)), Diagnostics> {
        let param = match given.name.strip_prefix(KNOBS) {
            Some(name) => knob_param(&self.resolve_knob(given, name)?),
            None => self.declaration.param(&given.name).ok_or_else(|| self.unknown_parameter(given))?.clone(),
        };
        let canonical_name = param.name.clone();
        // Errors show the name that the user chose, which may be an alias.
        let named_as_given = Param { name: given.name.clone(), ..param };
        let (values, is_list) = self.normalize_values(&named_as_given, &given.value)?;
        if let Some(knob) = canonical_name.strip_prefix(KNOBS) {
            self.check_knob_values(knob, &given.value, &values)?;
        }
        Ok((canonical_name, (values, is_list)))
    }

    fn normalize_values(&self, param: &Param, written: &SpannedValue) -> Result<(Vec<ParamValue>, bool), Diagnostics> {
        let list = comma_list(param, written);
        let written = list.as_ref().unwrap_or(written);
        let is_list = matches!(param.kind, ParamKind::List { .. });
        let is_nested = |list: &[SpannedValue]| list.iter().any(|entry| matches!(entry.form, ValueForm::List(_)));
        match &written.form {
            ValueForm::List(list) if list.is_empty() && !is_list => {
                let message = format!("`{}` has no values", param.name);
                Err(Diagnostic::at(&self.request.source, written.span.clone(), message, "this list is empty").into())
            }
            ValueForm::List(list) if !is_list || is_nested(list) => {
                let mut errors = DiagnosticCollector::default();
                let values = list
                    .iter()
                    .filter_map(|entry| errors.ok(self.normalize_value(param, &param.kind, entry)))
                    .collect();
                errors.finish()?;
                Ok((values, true))
            }
            _ => Ok((vec![self.normalize_value(param, &param.kind, written)?], false)),
        }
    }

    fn normalize_value(
        &self,
        param: &Param,
        kind: &ParamKind,
        written: &SpannedValue,
    ) -> Result<ParamValue, Diagnostic> {
        match (kind, &written.form) {
            (ParamKind::List { of }, ValueForm::List(list)) => {
                let elements = list.iter().map(|entry| match entry.form {
                    // One entry may denote several values: `0-3`.
                    ValueForm::Single(_) => self.normalize_value(param, kind, entry),
                    ValueForm::List(_) => self.normalize_value(param, of, entry),
                });
                let lists = elements.map(|element| match element? {
                    ParamValue::List(elements) => Ok(elements),
                    one => Ok(vec![one]),
                });
                Ok(ParamValue::List(lists.collect::<Result<Vec<_>, _>>()?.concat()))
            }
            (_, ValueForm::List(_)) => {
                let message = format!("a value of `{}` cannot be a list", param.name);
                Err(Diagnostic::at(&self.request.source, written.span.clone(), message, "a list within a list")
                    .with_help(format!("`{0}=[a,b]` makes one cell per value", param.name)))
            }
            (ParamKind::Integer { .. }, ValueForm::Single(ParamValue::Text(word))) if word == WORKER_CPUS => {
                Ok(ParamValue::Text(word.clone()))
            }
            (kind, ValueForm::Single(value)) => {
                kind.normalise(value).map_err(|bad| self.invalid_value_error(param, written, &bad))
            }
        }
    }

    fn resolve_knob(&self, given: &SpannedParam, name: &str) -> Result<String, Diagnostic> {
        knob_name(self.catalog, name).ok_or_else(|| {
            let name = name.split('@').next().unwrap_or(name);
            let names = self.catalog.knobs();
            Diagnostic::at(&self.request.source, given.name_span.clone(), format!("unknown knob `{name}`"), "unknown")
                .with_suggestion(suggest(name, &names))
                .with_help(format!("expected one of {}", names.join(", ")))
        })
    }

    /// Refuses values of a knob that no machine accepts.
    fn check_knob_values(&self, knob: &str, written: &SpannedValue, values: &[ParamValue]) -> Result<(), Diagnostic> {
        for (number, value) in values.iter().enumerate() {
            if let Err(message) = self.catalog.check_knob(knob, &value.to_string()) {
                let span = match &written.form {
                    ValueForm::List(list) => list.get(number).map_or(&written.span, |entry| &entry.span),
                    ValueForm::Single(_) => &written.span,
                };
                return Err(Diagnostic::at(&self.request.source, span.clone(), message, "invalid")
                    .with_help("docs/tune.md describes the values of each knob"));
            }
        }
        Ok(())
    }

    fn unknown_parameter(&self, given: &SpannedParam) -> Diagnostic {
        let test = &self.declaration.name;
        let names = self.declaration.params.iter().flat_map(|p| std::iter::once(&p.name).chain(&p.aliases));
        let message = format!("unknown parameter `{}` for test `{test}`", given.name);
        Diagnostic::at(&self.request.source, given.name_span.clone(), message, "unknown")
            .with_suggestion(suggest(&given.name, names))
            .with_help(format!("`weighbridge list {test}` shows all {} parameters", self.declaration.params.len()))
    }

    fn invalid_value_error(
        &self,
        param: &Param,
        written: &SpannedValue,
        bad: &wb_model::param::InvalidValue,
    ) -> Diagnostic {
        let message = format!("`{}` of `{}`: {}", param.name, self.declaration.name, bad.message);
        let at = |label: String| Diagnostic::at(&self.request.source, written.span.clone(), message, label);
        match bad.allowed.as_slice() {
            [] => at(format!("expected {}", param.kind.expected())),
            allowed => at("invalid value".to_owned())
                .with_suggestion(suggest(&written.value().to_string(), allowed))
                .with_help(format!("expected one of {}", allowed.join(", "))),
        }
    }

    fn cell(
        &self,
        id: CellId,
        mut params: Params,
        open: BTreeMap<String, String>,
        server: Option<&str>,
    ) -> Result<Cell, Diagnostic> {
        let Declaration { name, version, scope, .. } = self.declaration;
        let test_cell = self.catalog.cell(&self.request.test, &params);
        let test_cell = test_cell.ok_or_else(|| unknown_test(self.request, self.catalog))?;
        let roles = match self.workers {
            Some(workers) => self.roles.assign_roles(self.request, test_cell.topology(), server, workers)?,
            None => Vec::new(),
        };
        let mut programs = self.request.programs.clone();
        if !programs.is_empty() {
            let called = programs::required_programs(self.catalog, name.as_str(), &params);
            programs.retain(|program, _| called.contains(program));
            programs::name_agent(&mut programs);
        }
        params.extend(role_params(&roles));
        Ok(Cell {
            // What decides (criteria) and what else defines the cell (programs, files) is no part of the key: samples
            // can be judged by other metrics later, and two builds of a program or runs with other thresholds be
            // compared.
            key: open.is_empty().then(|| DefinitionKey::new(name, *version, &params)),
            version: *version,
            unsupported: self.unsupported(&roles, test_cell.as_ref()),
            rule: test_cell.rule().unwrap_or_else(|| self.sampling.rule()),
            estimate: test_cell.estimate(self.sampling.min_time),
            matrix_name: None,
            calibration_time: test_cell.calibration_time(self.sampling.min_time),
            is_estimated: test_cell.is_estimated(),
            scope: *scope,
            criteria: Criteria::default(),
            tools: self.request.tools.clone(),
            programs,
            roles,
            block: 0,
            group: None,
            id,
            params,
            unresolved: open,
        })
    }

    /// Why the cell cannot be measured on one of the workers; `None` if it can.
    fn unsupported(&self, roles: &[Roles], test_cell: &dyn CatalogCell) -> Option<String> {
        let several = all_workers(roles).len() > 1;
        all_workers(roles).into_iter().find_map(|worker| {
            let reason = match self.workers?.facts(worker)? {
                Ok(facts) => test_cell.unsupported(facts)?,
                Err(reason) => return Some(reason.to_owned()),
            };
            Some(if several { format!("on `{worker}`: {reason}") } else { reason })
        })
    }
}

/// The shape of a cell's roles, as parameters: unlike the names of the workers, it limits what a cell may be compared
/// with.
fn role_params(roles: &[Roles]) -> Params {
    let count = i64::try_from(roles.len()).unwrap_or(i64::MAX);
    let several = (count > 1).then(|| (WORKERS.to_owned(), ParamValue::Integer(count)));
    let apart =
        roles.iter().any(Roles::has_remote_server).then(|| (SIDES.to_owned(), ParamValue::Text("apart".to_owned())));
    several.into_iter().chain(apart).collect()
}

/// The canonical parameter name of a knob given as `NAME` or `NAME@TARGET`; `None` if the knob is unknown.
pub(crate) fn knob_name(catalog: &dyn Catalog, knob: &str) -> Option<String> {
    let (name, target) = knob.split_at(knob.find('@').unwrap_or(knob.len()));
    catalog.knob(name).map(|name| format!("{KNOBS}{name}{target}"))
}

/// Splits a text with commas (`"read,write"`) into a list, if the parameter takes several values and none of them can
/// contain a comma.
fn comma_list(param: &Param, written: &SpannedValue) -> Option<SpannedValue> {
    let takes_several = param.axis || matches!(param.kind, ParamKind::List { .. });
    match &written.form {
        ValueForm::Single(ParamValue::Text(text))
            if takes_several && !param.kind.may_have_commas() && text.contains(',') =>
        {
            let part = |part: &str| SpannedValue::one(ParamValue::Text(part.to_owned()), written.span.clone());
            Some(SpannedValue {
                form: ValueForm::List(split_commas(text).map(part).collect()),
                span: written.span.clone(),
            })
        }
        _ => None,
    }
}

fn knob_param(name: &str) -> Param {
    Param {
        name: name.to_owned(),
        aliases: Vec::new(),
        help: String::new(),
        kind: ParamKind::Text,
        default: None,
        resolved_from: None,
        axis: true,
    }
}

/// Divides the cells into blocks in which at most `max_prepared` cells stay prepared between samples.
fn assign_blocks(cells: &mut [Cell], max_prepared: usize) {
    let (mut block, mut prepared) = (0, 0);
    for cell in cells {
        if cell.scope == Scope::Cell {
            if prepared == max_prepared {
                (block, prepared) = (block + 1, 0);
            }
            prepared += 1;
        }
        cell.block = block;
    }
}

#[cfg(test)]
mod tests;
