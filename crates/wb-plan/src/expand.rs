//! From what was asked for to the cells that follow.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{
    Case, CellId, Declaration, DefinitionKey, Facts, Nanos, Param, ParamKind, Params, ProfileName, Scope, Serial,
    TestName, Value,
};
use wb_stats::Rule;

use crate::nearest::nearest;
use crate::request::{Form, Stage, Written};
use crate::{Catalogue, Given, PlanError, Request, Sampling, Selection};

/// With this begin the parameters that are knobs of the machine, set while a sample is taken: `knobs.thp-enabled`. Every
/// test has them, and they are axes.
pub const KNOBS: &str = "knobs.";

/// What will be measured: the same requests on the same facts always make the same plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The cells, in the order they were asked for.
    pub cells: Vec<Cell>,
    /// Cells that were asked for and will not be measured.
    pub left_out: Vec<LeftOut>,
    /// How it samples.
    pub sampling: Sampling,
}

/// One cell that will be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Its name.
    pub id: CellId,
    /// What it may be compared and resumed with; none while values are open.
    pub key: Option<DefinitionKey>,
    /// The test's measurement version.
    pub version: u32,
    /// Every effective parameter that is known.
    pub params: Params,
    /// Parameters that the machine decides while no machine is known, and how.
    pub open: BTreeMap<String, String>,
    /// Why it cannot be measured here, if so.
    pub unsupported: Option<String>,
    /// When it is done.
    pub rule: Rule,
    /// How long one sample takes, about.
    pub estimate: Nanos,
    /// How long what its test prepares stays alive.
    pub scope: Scope,
    /// User tools around its samples.
    pub tools: Vec<String>,
    /// Files that are programs in the place of those that the path has, by the programs' names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// The block it is scheduled in, from 0.
    pub block: usize,
}

/// A cell that was asked for and will not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub id: CellId,
    /// Why.
    pub why: String,
}

impl Plan {
    /// How long it takes, about: warm-ups and the fewest samples of every cell that can be measured.
    pub fn estimate(&self) -> Nanos {
        let cells = self.cells.iter().filter(|cell| cell.unsupported.is_none());
        Nanos(cells.map(|cell| self.cell_estimate(cell).0).sum())
    }

    /// How long one cell takes, about, with its fewest samples.
    pub fn cell_estimate(&self, cell: &Cell) -> Nanos {
        let attempts = u64::from(self.sampling.warm_up) + fewest(cell.rule) as u64;
        Nanos(cell.estimate.0.saturating_mul(attempts))
    }

    /// Whether the budget ends a cell, about, before its fewest samples are taken.
    pub fn shortfall(&self, cell: &Cell) -> Option<Shortfall> {
        let wanted = fewest(cell.rule);
        // No attempt is begun once the budget is spent; one that is begun is finished.
        let attempts = self.sampling.budget?.0.div_ceil(cell.estimate.0.max(1));
        let holds = attempts.saturating_sub(u64::from(self.sampling.warm_up)) as usize;
        (cell.unsupported.is_none() && holds < wanted).then_some(Shortfall { holds, wanted })
    }
}

/// A cell whose budget is too small for its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortfall {
    /// So many samples fit into the budget.
    pub holds: usize,
    /// So many are wanted.
    pub wanted: usize,
}

/// The fewest samples that satisfy a rule.
fn fewest(rule: Rule) -> usize {
    match rule {
        Rule::Precision { min_samples, .. } | Rule::Compared { min_samples, .. } => min_samples,
        Rule::MaxStddev { samples, .. } => samples,
    }
}

/// The cells that follow from `requests` on a machine of these facts; without facts, what the machine decides stays
/// open.
pub fn expand(
    requests: &[Request],
    sampling: &Sampling,
    catalogue: &dyn Catalogue,
    facts: Option<&Facts>,
    profile: &ProfileName,
    selection: &Selection,
) -> Result<Plan, PlanError> {
    let mut positions: BTreeMap<&str, u16> = BTreeMap::new();
    let mut plan = Plan { cells: Vec::new(), left_out: Vec::new(), sampling: sampling.clone() };
    let mut seen = BTreeSet::new();
    for request in requests {
        let declaration = declaration_of(request, catalogue)?;
        let serial = match &request.id {
            Some(id) => Serial::Id(id.clone()),
            None => {
                let position = positions.entry(declaration.name.as_str()).or_default();
                *position += 1;
                Serial::Position(*position - 1)
            }
        };
        let context = Context { request, declaration, catalogue, facts, sampling };
        for (case, params, open) in context.combinations()? {
            let test = declaration.name.clone();
            let id = CellId { profile: profile.clone(), test, serial: serial.clone(), case };
            if !seen.insert(id.clone()) {
                let message = format!("the cell `{id}` is asked for twice");
                return Err(PlanError::at(&request.source, request.test_at.clone(), message, "by this test")
                    .with_help("give each value once, and each `id=` to one test only"));
            }
            match selection.leaves_out(&id) {
                Some(why) => plan.left_out.push(LeftOut { id, why }),
                None => plan.cells.push(context.cell(id, params, open)),
            }
        }
    }
    cut_into_blocks(&mut plan.cells, sampling.max_prepared);
    Ok(plan)
}

fn declaration_of<'a>(request: &Request, catalogue: &'a dyn Catalogue) -> Result<&'a Declaration, PlanError> {
    let declaration = catalogue.declaration(&request.test).ok_or_else(|| {
        let near = nearest(&request.test, catalogue.names());
        let label = near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        PlanError::at(&request.source, request.test_at.clone(), format!("there is no test `{}`", request.test), label)
            .with_help(format!("the tests are {}", catalogue.names().join(", ")))
    })?;
    match request.stages.first() {
        Some(stage) => Err(no_stages(request, stage)),
        None => Ok(declaration),
    }
}

fn no_stages(request: &Request, stage: &Stage) -> PlanError {
    let text = &request.source.text;
    let all_in_one = format!("{},{}", &text[..stage.at.start], &text[stage.at.start + 1..]);
    let (label, help) = match stage.given.is_empty() {
        true => ("an empty group of properties", "leave out the `:`".to_owned()),
        false if text.contains('{') => ("a further group of properties", "put all into one group".to_owned()),
        false => ("a further group of properties", format!("put all into one group: `{all_in_one}`")),
    };
    PlanError::at(&request.source, stage.at.clone(), format!("`{}` has no stages", request.test), label).with_help(help)
}

/// The parameters of one request, being combined.
struct Context<'a> {
    request: &'a Request,
    declaration: &'a Declaration,
    catalogue: &'a dyn Catalogue,
    facts: Option<&'a Facts>,
    sampling: &'a Sampling,
}

/// One parameter with the values it takes in turn.
struct Dimension<'a> {
    param: &'a Param,
    values: Vec<Value>,
    axis: bool,
}

type Combination = (Case, Params, BTreeMap<String, String>);

impl Context<'_> {
    fn combinations(&self) -> Result<Vec<Combination>, PlanError> {
        let given = self.given()?;
        let fixed = |values: &(Vec<Value>, bool)| (values.0.len() == 1).then(|| values.0[0].clone());
        let singles: Params = given.iter().filter_map(|(name, v)| Some((name.clone(), fixed(v)?))).collect();
        let resolved = self.facts.map(|facts| self.catalogue.resolve(&self.request.test, &singles, facts));
        let mut open = BTreeMap::new();
        let mut dimensions = Vec::new();
        let knobs: Vec<Param> = given.keys().filter_map(|name| knob(name)).collect();
        for param in self.declaration.params.iter().chain(&knobs) {
            let from_machine = || resolved.as_ref().and_then(|values| values.get(&param.name));
            let (values, listed) = match given.get(&param.name) {
                Some((values, listed)) => (values.clone(), *listed),
                None => match (from_machine(), &param.resolved, &param.default) {
                    (Some(values), _, _) => (values.clone(), values.len() > 1),
                    (None, Some(how), None) if self.facts.is_none() => {
                        open.insert(param.name.clone(), how.clone());
                        continue;
                    }
                    (None, _, Some(default)) => (vec![default.clone()], false),
                    (None, _, None) => continue,
                },
            };
            dimensions.push(Dimension { param, values, axis: param.axis || listed });
        }
        Ok(product(&dimensions).into_iter().map(|(case, params)| (case, params, open.clone())).collect())
    }

    /// The given parameters in canonical form, under their proper names, and whether each was a list.
    fn given(&self) -> Result<BTreeMap<String, (Vec<Value>, bool)>, PlanError> {
        let mut all = BTreeMap::new();
        for given in &self.request.given {
            let param = self.declaration.param(&given.name).cloned().or_else(|| knob(&given.name));
            let param = &param.ok_or_else(|| self.no_such_parameter(given))?;
            let values = self.values(param, &given.value)?;
            if all.insert(param.name.clone(), values).is_some() {
                let message = format!("`{}` is given twice", param.name);
                return Err(PlanError::at(&self.request.source, given.name_at.clone(), message, "here again")
                    .with_help(format!("`{}=[a,b]` makes one cell per value", param.name)));
            }
        }
        Ok(all)
    }

    fn values(&self, param: &Param, written: &Written) -> Result<(Vec<Value>, bool), PlanError> {
        let is_list = matches!(param.kind, ParamKind::List { .. });
        let is_nested = |list: &[Written]| list.iter().any(|entry| matches!(entry.form, Form::Many(_)));
        match &written.form {
            Form::Many(list) if list.is_empty() && !is_list => {
                let message = format!("`{}` has no values", param.name);
                Err(PlanError::at(&self.request.source, written.at.clone(), message, "this list is empty"))
            }
            Form::Many(list) if !is_list || is_nested(list) => {
                let values = list.iter().map(|entry| self.one(param, &param.kind, entry));
                Ok((values.collect::<Result<_, _>>()?, true))
            }
            _ => Ok((vec![self.one(param, &param.kind, written)?], false)),
        }
    }

    /// One value in canonical form.
    fn one(&self, param: &Param, kind: &ParamKind, written: &Written) -> Result<Value, PlanError> {
        match (kind, &written.form) {
            (ParamKind::List { of }, Form::Many(list)) => {
                list.iter().map(|entry| self.one(param, of, entry)).collect::<Result<_, _>>().map(Value::List)
            }
            (_, Form::Many(_)) => {
                let message = format!("a value of `{}` is no list", param.name);
                Err(PlanError::at(&self.request.source, written.at.clone(), message, "a list within a list")
                    .with_help(format!("`{0}=[a,b]` makes one cell per value", param.name)))
            }
            (kind, Form::One(value)) => kind.normalise(value).map_err(|bad| self.bad_value(param, written, &bad)),
        }
    }

    fn no_such_parameter(&self, given: &Given) -> PlanError {
        let test = &self.declaration.name;
        let names = || self.declaration.params.iter().flat_map(|p| std::iter::once(&p.name).chain(&p.aliases));
        let near = nearest(&given.name, names().map(String::as_str));
        let label = near.map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"));
        let message = format!("`{test}` has no parameter `{}`", given.name);
        PlanError::at(&self.request.source, given.name_at.clone(), message, label)
            .with_help(format!("`weighbridge list {test}` shows all {} parameters", self.declaration.params.len()))
    }

    fn bad_value(&self, param: &Param, written: &Written, bad: &wb_model::param::BadValue) -> PlanError {
        let near = nearest(&written.value().to_string(), bad.allowed.iter().map(String::as_str));
        let label = near.map_or_else(|| bad.why.clone(), |near| format!("did you mean `{near}`?"));
        let message = format!("`{}` of `{}`: {}", param.name, self.declaration.name, bad.why);
        let help = match bad.allowed.as_slice() {
            [] => format!("`{}` takes a {}", param.name, param.kind.describe()),
            allowed => format!("`{}` takes {}", param.name, allowed.join(", ")),
        };
        PlanError::at(&self.request.source, written.at.clone(), message, label).with_help(help)
    }

    fn cell(&self, id: CellId, params: Params, open: BTreeMap<String, String>) -> Cell {
        let Declaration { name, version, scope, .. } = self.declaration;
        let known = open.is_empty();
        let unsupported = self.facts.and_then(|facts| self.catalogue.unsupported(name.as_str(), &params, facts));
        Cell {
            key: known.then(|| key(name, *version, &params)),
            version: *version,
            unsupported,
            rule: self.catalogue.rule(name.as_str(), &params).unwrap_or_else(|| self.sampling.rule()),
            estimate: self.catalogue.estimate(name.as_str(), &params, self.sampling.min_time),
            scope: *scope,
            tools: self.request.tools.clone(),
            programs: self.request.programs.clone(),
            block: 0,
            id,
            params,
            open,
        }
    }
}

/// A knob as a parameter.
fn knob(name: &str) -> Option<Param> {
    name.strip_prefix(KNOBS).filter(|knob| !knob.is_empty()).map(|_| Param {
        name: name.to_owned(),
        aliases: Vec::new(),
        help: String::new(),
        kind: ParamKind::Text,
        default: None,
        resolved: None,
        axis: true,
    })
}

fn key(test: &TestName, version: u32, params: &Params) -> DefinitionKey {
    DefinitionKey::new(test, version, params)
}

/// Every combination of the dimensions' values, the last dimension changing fastest.
fn product(dimensions: &[Dimension]) -> Vec<(Case, Params)> {
    let mut combinations = vec![(Vec::new(), Params::new())];
    for dimension in dimensions {
        let longer = |(axes, params): &(Vec<(String, Value)>, Params), value: &Value| {
            let (mut axes, mut params) = (axes.clone(), params.clone());
            if dimension.axis {
                axes.push((dimension.param.name.clone(), value.clone()));
            }
            params.insert(dimension.param.name.clone(), value.clone());
            (axes, params)
        };
        combinations =
            combinations.iter().flat_map(|one| dimension.values.iter().map(move |value| longer(one, value))).collect();
    }
    let named = |(axes, params): (Vec<(String, Value)>, Params)| {
        (Case::new(axes.iter().map(|(name, value)| (name.as_str(), value))), params)
    };
    combinations.into_iter().map(named).collect()
}

/// Cuts the cells into blocks in which at most `max_prepared` keep something prepared between samples.
fn cut_into_blocks(cells: &mut [Cell], max_prepared: usize) {
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
mod tests {
    use super::*;
    use crate::spec;

    struct One(Declaration);

    impl Catalogue for One {
        fn declaration(&self, test: &str) -> Option<&Declaration> {
            (test == "t").then_some(&self.0)
        }
        fn names(&self) -> Vec<&str> {
            vec!["t"]
        }
        fn resolve(&self, _: &str, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<Value>> {
            let all = (1..=facts.cpus_for(2).len() as i64).map(Value::Integer).collect();
            if given.contains_key("threads") { BTreeMap::new() } else { BTreeMap::from([("threads".to_owned(), all)]) }
        }
        fn unsupported(&self, _: &str, params: &Params, _: &Facts) -> Option<String> {
            (params.get("rw") == Some(&Value::Text("write".into()))).then(|| "read only".to_owned())
        }
        fn rule(&self, _: &str, _: &Params) -> Option<Rule> {
            None
        }
        fn estimate(&self, _: &str, _: &Params, min_time: Nanos) -> Nanos {
            min_time
        }
    }

    fn param(name: &str, kind: ParamKind, default: Option<Value>, axis: bool) -> Param {
        let resolved = default.is_none().then(|| "one per CPU".to_owned());
        Param { name: name.into(), aliases: vec![], help: String::new(), kind, default, resolved, axis }
    }

    fn catalogue() -> One {
        let rw = ParamKind::Choice { values: vec!["read".into(), "write".into()] };
        let whole = ParamKind::Integer { min: Some(1), max: None };
        One(Declaration {
            name: TestName::new("t").unwrap(),
            summary: String::new(),
            version: 1,
            params: vec![
                param("rw", rw, Some(Value::Text("read".into())), true),
                param("bs", ParamKind::Bytes { min: None }, Some(Value::Text("4k".into())), false),
                param("cpus", ParamKind::List { of: Box::new(whole.clone()) }, Some(Value::List(vec![])), false),
                param("threads", whole, None, true),
            ],
            scope: Scope::Cell,
            requires: vec![],
        })
    }

    fn planned(specs: &[&str], facts: Option<&Facts>) -> Result<Plan, PlanError> {
        let requests: Vec<Request> = specs.iter().map(|text| spec::parse(text).unwrap()).collect();
        let sampling = Sampling { max_prepared: 2, ..Sampling::default() };
        expand(&requests, &sampling, &catalogue(), facts, &ProfileName::localhost(), &Selection::default())
    }

    fn two_cpus() -> Facts {
        let cpu = |id| wb_model::facts::Cpu { id, core: id, package: 0, node: 0 };
        Facts { cpus: vec![cpu(0), cpu(1)], ..Facts::default() }
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.cells.iter().map(|cell| cell.id.to_string()).collect()
    }

    #[test]
    fn axes_and_lists_make_cases_and_nothing_else_does() {
        let plan = planned(&["t:bs=[4096,8k],threads=1"], Some(&two_cpus())).unwrap();
        assert_eq!(
            names(&plan),
            ["Localhost/t/0000:bs=4k,rw=read,threads=1", "Localhost/t/0000:bs=8k,rw=read,threads=1"]
        );
        let plan = planned(&["t:bs=4k,threads=1,cpus=[1,2]"], Some(&two_cpus())).unwrap();
        assert_eq!(names(&plan), ["Localhost/t/0000:rw=read,threads=1"]);
    }

    #[test]
    fn the_machine_decides_what_was_left_open() {
        let plan = planned(&["t"], Some(&two_cpus())).unwrap();
        assert_eq!(names(&plan), ["Localhost/t/0000:rw=read,threads=1", "Localhost/t/0000:rw=read,threads=2"]);
        let plan = planned(&["t"], None).unwrap();
        assert_eq!(plan.cells[0].key, None);
        assert_eq!(plan.cells[0].open["threads"], "one per CPU");
    }

    #[test]
    fn an_id_renumbers_nothing() {
        let facts = two_cpus();
        let plan = planned(&["t:threads=1", "t:id=mine,threads=1", "t:threads=1"], Some(&facts)).unwrap();
        let serials: Vec<String> = plan.cells.iter().map(|cell| cell.id.serial.to_string()).collect();
        assert_eq!(serials, ["0000", "mine", "0001"]);
        assert!(planned(&["t:id=a,threads=1", "t:id=a,threads=1"], Some(&facts)).is_err());
    }

    #[test]
    fn the_same_definition_has_the_same_key_however_it_was_written() {
        let facts = two_cpus();
        let key = |spec: &str| planned(&[spec], Some(&facts)).unwrap().cells[0].key.clone().unwrap();
        assert_eq!(key("t:bs=4096,threads=1"), key("t:threads=1"));
        assert_ne!(key("t:bs=8k,threads=1"), key("t:threads=1"));
        assert_eq!(key("t:threads=[1,2]"), key("t:threads=1"));
    }

    #[test]
    fn cells_that_stay_prepared_are_cut_into_blocks() {
        let plan = planned(&["t:bs=[1k,2k,3k,4k,5k],threads=1"], Some(&two_cpus())).unwrap();
        assert_eq!(plan.cells.iter().map(|cell| cell.block).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn mistakes_name_the_nearest_right_spelling() {
        use miette::Diagnostic;
        let said = |spec: &str| {
            let error = planned(&[spec], None).unwrap_err();
            let label = error.labels().into_iter().flatten().filter_map(|l| l.label().map(str::to_owned)).next();
            (error.to_string(), label.unwrap_or_default(), Diagnostic::help(&error).unwrap().to_string())
        };
        assert_eq!(said("t:thread=1").0, "`t` has no parameter `thread`");
        assert_eq!(said("t:thread=1").1, "did you mean `threads`?");
        assert_eq!(said("t:rw=raed").1, "did you mean `read`?");
        assert_eq!(said("t:rw=raed").2, "`rw` takes read, write");
        assert_eq!(said("u").2, "the tests are t");
        assert_eq!(said("t::x=1").0, "`t` has no stages");
        assert!(said("t:threads=0").0.contains("below the least"));
        assert_eq!(said("t:rw=read:bs=4k").2, "put all into one group: `t:rw=read,bs=4k`");
        assert_eq!(said("t::").2, "leave out the `:`");
        assert_eq!(said("t:rw=[[read]]").0, "a value of `rw` is no list");
        assert_eq!(said("t:cpus=[[1],[[2]]]").1, "a list within a list");
    }

    #[test]
    fn a_budget_too_small_for_the_fewest_samples_is_found() {
        let shortfall = |budget: u64| {
            let mut plan = planned(&["t:threads=1"], Some(&two_cpus())).unwrap();
            plan.sampling.budget = Some(Nanos(budget * 1_000_000_000));
            plan.shortfall(&plan.cells[0])
        };
        assert_eq!(shortfall(600), None);
        // A warm-up and six samples of five seconds; the last begins after thirty.
        assert_eq!(shortfall(31), None);
        assert_eq!(shortfall(30), Some(Shortfall { holds: 5, wanted: 6 }));
        assert_eq!(shortfall(1), Some(Shortfall { holds: 0, wanted: 6 }));
    }
}
