//! Variants: a test with some settings changed, as given on the command line, to measure the effect of the change.
//!
//! ```text
//! [NAME:]SETTING[+SETTING…]    a variant
//! base                         the test unchanged
//!
//! SETTING: param:NAME=VALUE         a parameter
//!          knob:NAME[@TARGET]=VALUE a system setting
//!          env:NAME=VALUE           an environment variable
//!          cmd:COMMAND              a command that runs before each attempt
//!          bin:[PROGRAM=]PATH       a file that replaces a program
//! ```

mod parser;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use wb_diagnostics::{Diagnostic, Diagnostics, SourceText};
use wb_model::secrets::mask_argument;
use wb_model::{Declaration, ParamValue, ProfileName, TestName};

use crate::expand::{KNOBS, expand, knob_name};
use crate::programs;
use crate::request::{SpannedValue, ValueForm};
use crate::{Catalog, Cell, Request, Sampling, Selection, SpannedParam};

/// A test with some settings changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Also the serial of its cells.
    pub name: TestName,
    /// The argument as given, secrets included.
    pub text: String,
    pub settings: Vec<VariantSetting>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum VariantSetting {
    Param {
        param: SpannedParam,
        /// The argument that contains the parameter.
        source: SourceText,
    },
    /// `NAME=VALUE`, for the test's processes.
    Env(String),
    /// A command that runs before each attempt.
    Before(String),
    Program {
        /// The replaced program; `None` for the one that the test needs.
        name: Option<String>,
        /// An absolute path.
        file: String,
    },
}

impl Variant {
    /// Applies the settings to a request, under the variant's name. Fails if something is set twice, or a replaced
    /// program is ambiguous, missing, or not needed by every cell.
    pub fn apply(&self, request: &Request, test: &Declaration, catalog: &dyn Catalog) -> Result<Request, Diagnostics> {
        let mut changed = Request { id: Some(self.name.clone()), ..request.clone() };
        let mut set = BTreeSet::new();
        for setting in &self.settings {
            let target = setting.target(test, catalog);
            if let Some(target) = set.replace(target) {
                let message = format!("variant `{}` sets {target} twice", self.masked_text());
                return Err(Diagnostic::new(message)
                    .with_help("each setting may be given once in a variant; remove one of them")
                    .into());
            }
            match setting {
                VariantSetting::Param { param, source } => changed.replace_param(test, catalog, param, source),
                VariantSetting::Env(variable) => changed.add_env(variable),
                VariantSetting::Before(command) => {
                    changed.replace_param(
                        test,
                        catalog,
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
            // Applied after all parameters, which may select the programs.
            let cells = programs_by_cell(&changed, test, catalog)?;
            for (name, file) in replaced {
                changed.programs.insert(resolve_program(test, name, file, &cells)?, file.clone());
            }
        }
        Ok(changed)
    }

    /// The argument with its secrets masked.
    pub fn masked_text(&self) -> String {
        mask_argument(&self.text)
    }

    pub fn changed_params(&self, test: &Declaration, catalog: &dyn Catalog) -> Vec<String> {
        let name = |setting: &VariantSetting| match setting {
            VariantSetting::Param { param, .. } => Some(canonical_name(param, test, catalog)),
            _ => None,
        };
        self.settings.iter().filter_map(name).collect()
    }
}

impl VariantSetting {
    fn target(&self, test: &Declaration, catalog: &dyn Catalog) -> String {
        match self {
            Self::Param { param, .. } => format!("`{}`", canonical_name(param, test, catalog)),
            Self::Env(variable) => {
                format!("`{}`", variable.split_once('=').map_or(variable.as_str(), |(name, _)| name))
            }
            Self::Before(_) => "the command before each attempt".to_owned(),
            Self::Program { name: Some(name), .. } => format!("the program `{name}`"),
            Self::Program { name: None, .. } => "the program".to_owned(),
        }
    }
}

/// The canonical name of a parameter or knob; the given name if it is neither.
fn canonical_name(param: &SpannedParam, test: &Declaration, catalog: &dyn Catalog) -> String {
    let canonical = match param.name.strip_prefix(KNOBS) {
        Some(knob) => knob_name(catalog, knob),
        None => test.param(&param.name).map(|param| param.name.clone()),
    };
    canonical.unwrap_or_else(|| param.name.clone())
}

impl Request {
    fn replace_param(&mut self, test: &Declaration, catalog: &dyn Catalog, param: &SpannedParam, source: &SourceText) {
        let name = |param: &SpannedParam| canonical_name(param, test, catalog);
        self.params.retain(|other| name(other) != name(param));
        self.params.push(param.clone());
        // Errors in the new value point into the variant's text; the test's own text was valid before.
        self.source = source.clone();
    }

    fn add_env(&mut self, variable: &str) {
        let variable = SpannedValue::one(ParamValue::Text(variable.to_owned()), 0..0);
        match self.params.iter_mut().find(|param| param.name == "env") {
            Some(SpannedParam { value: SpannedValue { form: ValueForm::List(list), .. }, .. }) => list.push(variable),
            _ => self.params.push(SpannedParam {
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

struct CellPrograms {
    case: String,
    programs: Vec<String>,
}

fn programs_by_cell(
    request: &Request,
    test: &Declaration,
    catalog: &dyn Catalog,
) -> Result<Vec<CellPrograms>, Diagnostics> {
    let (sampling, profile, selection) = (Sampling::default(), ProfileName::localhost(), Selection::default());
    // A program that is replaced in all variants may be called in others only.
    let request = Request { programs: BTreeMap::new(), ..request.clone() };
    let plan = expand(&[request], &sampling, catalog, None, &profile, &selection)?;
    let of_cell = |cell: Cell| {
        let programs = programs::required_programs(catalog, test.name.as_str(), &cell.params);
        CellPrograms { case: cell.id.case.to_string(), programs }
    };
    Ok(plan.cells.into_iter().map(of_cell).collect())
}

/// Resolves the program that a file replaces: the one with the given name, the one with the file's name, or the only
/// one that the test needs. It must be the same in every cell.
fn resolve_program(
    test: &Declaration,
    name: Option<&str>,
    file: &str,
    cells: &[CellPrograms],
) -> Result<String, Diagnostic> {
    if !Path::new(file).is_file() {
        return Err(Diagnostic::new(format!("no such file: `{file}`"))
            .with_help("expected `bin:[PROGRAM=]PATH` with the path of a file"));
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
        (Some(with), Some(without)) => Err(Diagnostic::new(format!(
            "`{}` needs `{program}` for {} but not for {}",
            test.name, with.case, without.case
        ))
        .with_help("measure the cases that need the program separately; elsewhere replacing it has no effect")),
        (None, _) => {
            let needs = [(test.name.as_str(), all.clone())];
            Err(programs::unknown_program(program, &needs, |instead| format!("bin:{instead}={file}")))
        }
    }
}
