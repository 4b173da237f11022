//! A test with something changed, as it is typed: one side of a comparison of what the change does.
//!
//! ```text
//! [NAME:]SETTING[+SETTING…]      SETTING is  param:NAME=VALUE · knob:NAME[@TARGET]=VALUE · env:NAME=VALUE · cmd:COMMAND · bin:[NAME=]PATH
//! base                           as the test stands
//! ```

mod parser;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use wb_model::secrets::mask_argument;
use wb_model::{Declaration, ParamValue, ProfileName, TestName};

use crate::expand::{KNOBS, expand, knob_name};
use crate::programs;
use crate::request::{SpannedValue, ValueForm};
use crate::{Catalog, Cell, PlanError, Request, Sampling, Selection, SourceText, SpannedParam};

/// A variant of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Its name, which its cells have as their serial.
    pub name: TestName,
    /// As it was typed.
    pub text: String,
    /// What it changes.
    pub settings: Vec<VariantSetting>,
}

/// One thing that a variant changes.
#[derive(Debug, Clone, PartialEq)]
pub enum VariantSetting {
    /// A parameter of the test.
    Param {
        /// The parameter.
        given: SpannedParam,
        /// What it was typed in.
        source: SourceText,
    },
    /// A variable in the environment of the test's processes: `NAME=VALUE`.
    Env(String),
    /// A command before each attempt.
    Before(String),
    /// A file in the place of one of the test's programs.
    Program {
        /// The program; where none is given, the one that the test needs.
        name: Option<String>,
        /// The file, from the root.
        file: String,
    },
}

impl Variant {
    /// The request with this changed, under the variant's name.
    ///
    /// # Errors
    /// When it replaces a program and it is not clear which, or not every cell needs one of that name, or there is no file.
    pub fn apply(&self, request: &Request, test: &Declaration, catalogue: &dyn Catalog) -> Result<Request, PlanError> {
        let mut changed = Request { id: Some(self.name.clone()), ..request.clone() };
        let mut set = BTreeSet::new();
        for setting in &self.settings {
            let what = setting.target(test, catalogue);
            if let Some(twice) = set.replace(what) {
                let what = format!("the variant `{}` sets {twice} twice", self.masked_text());
                return Err(
                    PlanError::without_location(what).with_help("leave one of them out; it takes one value at a time")
                );
            }
            match setting {
                VariantSetting::Param { given, source } => changed.replace_param(test, catalogue, given, source),
                VariantSetting::Env(variable) => changed.add_env(variable),
                VariantSetting::Before(command) => {
                    changed.replace_param(
                        test,
                        catalogue,
                        &inline_param("before", ParamValue::Text(command.clone())),
                        &request.source,
                    );
                }
                VariantSetting::Program { .. } => {}
            }
        }
        let replaced = self.settings.iter().filter_map(|setting| match setting {
            VariantSetting::Program { name, file } => Some((name.as_deref(), file)),
            _ => None,
        });
        let replaced: Vec<(Option<&str>, &String)> = replaced.collect();
        if !replaced.is_empty() {
            // With all its parameters, which may decide the programs.
            let cells = programs_by_cell(&changed, test, catalogue)?;
            for (name, file) in replaced {
                changed.programs.insert(resolve_program(test, name, file, &cells)?, file.clone());
            }
        }
        Ok(changed)
    }

    /// What was typed, with its secrets masked.
    pub fn masked_text(&self) -> String {
        mask_argument(&self.text)
    }

    /// The names of the parameters that it changes, as the test calls them.
    pub fn changed_params(&self, test: &Declaration, catalogue: &dyn Catalog) -> Vec<String> {
        let name = |setting: &VariantSetting| match setting {
            VariantSetting::Param { given, .. } => Some(proper_name(given, test, catalogue)),
            _ => None,
        };
        self.settings.iter().filter_map(name).collect()
    }
}

impl VariantSetting {
    /// What it sets, under its proper name.
    fn target(&self, test: &Declaration, catalogue: &dyn Catalog) -> String {
        match self {
            Self::Param { given, .. } => format!("`{}`", proper_name(given, test, catalogue)),
            Self::Env(variable) => {
                format!("`{}`", variable.split_once('=').map_or(variable.as_str(), |(name, _)| name))
            }
            Self::Before(_) => "the command before each sample".to_owned(),
            Self::Program { name: Some(name), .. } => format!("the program `{name}`"),
            Self::Program { name: None, .. } => "the program".to_owned(),
        }
    }
}

/// What the test calls a parameter, or a knob is called; as it was given where it is neither.
fn proper_name(given: &SpannedParam, test: &Declaration, catalogue: &dyn Catalog) -> String {
    let proper = match given.name.strip_prefix(KNOBS) {
        Some(knob) => knob_name(catalogue, knob),
        None => test.param(&given.name).map(|param| param.name.clone()),
    };
    proper.unwrap_or_else(|| given.name.clone())
}

impl Request {
    /// Puts a parameter in the place of what was given for it.
    fn replace_param(
        &mut self,
        test: &Declaration,
        catalogue: &dyn Catalog,
        given: &SpannedParam,
        source: &SourceText,
    ) {
        let name = |given: &SpannedParam| proper_name(given, test, catalogue);
        self.given.retain(|other| name(other) != name(given));
        self.given.push(given.clone());
        // What is wrong with it is shown where it was typed; what the test itself says was right before.
        self.source = source.clone();
    }

    fn add_env(&mut self, variable: &str) {
        let variable = SpannedValue::one(ParamValue::Text(variable.to_owned()), 0..0);
        match self.given.iter_mut().find(|given| given.name == "env") {
            Some(SpannedParam { value: SpannedValue { form: ValueForm::List(list), .. }, .. }) => list.push(variable),
            _ => self.given.push(SpannedParam {
                name: "env".to_owned(),
                name_span: 0..0,
                value: SpannedValue { form: ValueForm::List(vec![variable]), span: 0..0 },
            }),
        }
    }
}

fn inline_param(name: &str, value: ParamValue) -> SpannedParam {
    SpannedParam { name: name.to_owned(), name_span: 0..0, value: SpannedValue::one(value, 0..0) }
}

/// The programs that a cell needs on its worker, by the cell's case.
struct CellPrograms {
    case: String,
    programs: Vec<String>,
}

/// The programs that each cell of a request needs. Which ones may depend on its parameters.
fn programs_by_cell(
    request: &Request,
    test: &Declaration,
    catalogue: &dyn Catalog,
) -> Result<Vec<CellPrograms>, PlanError> {
    let (sampling, profile, all) = (Sampling::default(), ProfileName::localhost(), Selection::default());
    // What is replaced in all variants may be called in others only.
    let request = Request { programs: BTreeMap::new(), ..request.clone() };
    let plan = expand(&[request], &sampling, catalogue, None, &profile, &all)?;
    let of_cell = |cell: Cell| {
        let programs = programs::required_programs(catalogue, test.name.as_str(), &cell.params);
        CellPrograms { case: cell.id.case.to_string(), programs }
    };
    Ok(plan.cells.into_iter().map(of_cell).collect())
}

/// The program that a file takes the place of: the one of that name, the one of the file's name, or the only one that the
/// test needs. It is the same in every cell.
fn resolve_program(
    test: &Declaration,
    name: Option<&str>,
    file: &str,
    cells: &[CellPrograms],
) -> Result<String, PlanError> {
    if !Path::new(file).is_file() {
        return Err(PlanError::without_location(format!("no such program: `{file}`"))
            .with_help("`bin:[PROGRAM=]PATH` names a file"));
    }
    let base = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut all: Vec<&str> = Vec::new();
    for program in cells.iter().flat_map(|cell| &cell.programs) {
        if !all.contains(&program.as_str()) {
            all.push(program);
        }
    }
    let program = match (name, &all[..]) {
        (None, [only]) => only,
        (name, _) => name.unwrap_or(&base),
    };
    let (with, without): (Vec<&CellPrograms>, Vec<&CellPrograms>) =
        cells.iter().partition(|cell| cell.programs.iter().any(|needed| needed == program));
    match (with.first(), without.first()) {
        (Some(_), None) => Ok(program.to_owned()),
        (Some(with), Some(without)) => Err(PlanError::without_location(format!(
            "`{}` needs `{program}` for {} and not for {}",
            test.name, with.case, without.case
        ))
        .with_help("a program that is not called changes nothing: measure the cases that call it by themselves")),
        (None, _) => {
            let needs = [(test.name.as_str(), all.clone())];
            Err(programs::unknown_program(program, &needs, |instead| format!("bin:{instead}={file}")))
        }
    }
}
