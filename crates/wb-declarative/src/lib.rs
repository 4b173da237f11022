//! Declarative tests: a TOML file defines what is built, started, measured, extracted and checked.
//!
//! docs/tests.md describes the format. A definition is validated completely when it is parsed; commands are lists of
//! arguments, without a shell.
//!
//! Start with [`definition`] (the parts of a definition) and [`template`] (placeholders in commands); then [`sample`]
//! (execution of a sample) and [`study`] (its evaluation).

#![forbid(unsafe_code)]

mod build;
mod builtin;
mod cell;
mod check;
mod definition;
mod effort;
mod error;
pub mod external;
mod file_hashes;
mod files;
mod folder;
pub mod foreign;
mod metric;
mod params;
mod parser;
mod prepare;
mod raw;
mod sample;
mod sample_output;
mod study;
mod template;
#[cfg(test)]
mod tests;
mod work;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wb_model::{Declaration, Facts, Nanos, ParamKind, ParamValue, Params, Requirement};
use wb_record::definition_files::{DefinitionFiles, LARGEST_COPY};
use wb_record::files::relative_to;
use wb_sys::contained_file;

use wb_test::{InvalidParams, SharedParams, Test, TestCell};

pub use builtin::builtin_definitions;
use cell::DeclarativeCell;
use definition::{Definition, DurationControl};
pub use error::DefinitionError;
pub(crate) use error::toml_diagnostic;
pub use folder::{add_folder, add_run};
pub use foreign::ForeignTest;
use template::Bindings;

/// A test that is defined in TOML.
#[derive(Debug)]
pub struct DeclarativeTest {
    definition: Definition,
    /// `None` if the definition comes with the program.
    text: Option<String>,
}

impl DeclarativeTest {
    /// Parses a definition. `name` is its name in messages; files that it refers to are in `folder`.
    pub fn parse(name: &str, text: &str, folder: Option<&Path>) -> Result<Self, DefinitionError> {
        Self::parse_with(name, text, folder, None)
    }

    fn parse_with(
        name: &str,
        text: &str,
        folder: Option<&Path>,
        recorded: Option<&RecordedFiles>,
    ) -> Result<Self, DefinitionError> {
        let recorded_text = folder.map(|_| text.to_owned());
        Ok(Self { definition: Definition::parse(name, text, folder, recorded)?, text: recorded_text })
    }

    /// Reads a definition from a file. In a run folder, the files that it refers to are the run's copies, and nothing
    /// outside of that folder is read. A missing copy is an error only when it is needed, which is never the case for
    /// the evaluation of samples.
    pub fn read(path: &Path, run: Option<&Path>) -> Result<Self, DefinitionError> {
        let unreadable = |source| DefinitionError::Read { path: path.to_owned(), source };
        let text = read_text(path, run).map_err(unreadable)?;
        let path = path.canonicalize().map_err(unreadable)?;
        // Also if the folder of a run's definitions is given like any other.
        let enclosing = || path.parent()?.parent().filter(|run| run.join("run.json").is_file()).map(Path::to_owned);
        let recorded = match run.map(Path::canonicalize).transpose().map_err(unreadable)?.or_else(enclosing) {
            Some(run) => Some(RecordedFiles::new(run, &path)?),
            None => None,
        };
        Self::parse_with(&path.display().to_string(), &text, path.parent(), recorded.as_ref())
    }
}

/// Copies of the files that a definition in a run folder refers to.
pub(crate) struct RecordedFiles {
    run: PathBuf,
    copies: DefinitionFiles,
}

impl RecordedFiles {
    fn new(run: PathBuf, definition: &Path) -> Result<Self, DefinitionError> {
        let copies = DefinitionFiles::read_beside(&run, definition)?.unwrap_or_default();
        Ok(Self { run, copies })
    }
}

/// `run` is the run folder that contains the definition, if any.
pub(crate) fn read_text(path: &Path, run: Option<&Path>) -> io::Result<String> {
    match run {
        Some(run) => {
            let bytes = contained_file::read(run, relative_to(run, path)?, LARGEST_COPY.0)?;
            String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        }
        None => std::fs::read_to_string(path),
    }
}

impl Test for DeclarativeTest {
    fn name(&self) -> &str {
        self.definition.declaration.name.as_str()
    }

    fn declaration(&self) -> Declaration {
        self.definition.declaration.clone()
    }

    fn definition(&self) -> Option<&str> {
        self.text.as_deref()
    }

    fn resolve(&self, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        self.definition.machine_params.iter().filter_map(|param| param.values(given, facts)).collect()
    }

    fn cell(self: Arc<Self>, params: &Params) -> Result<Box<dyn TestCell>, InvalidParams> {
        let (_, shared) = SharedParams::split(params)?;
        Ok(Box::new(DeclarativeCell { test: self, params: params.clone(), shared }))
    }
}

impl Definition {
    /// Required programs, as far as the parameters that name them are known.
    fn requirements(&self, params: &Params) -> Vec<Requirement> {
        let bindings = Bindings { params, builtins: BTreeMap::new() };
        let expand = |template: &definition::RequirementTemplate| {
            Some(Requirement {
                program: template.program.text(&bindings).ok()?,
                package: template.package.text(&bindings).ok()?,
                version: template.version.clone(),
                feature: None,
            })
        };
        self.requirement_templates.iter().filter_map(expand).collect()
    }

    /// Required programs for display: all alternatives if a parameter with choices determines a program.
    fn possible_requirements(&self, defaults: &Params) -> Vec<Requirement> {
        let mut alternatives = vec![self.requirements(defaults)];
        for param in &self.declaration.params {
            let ParamKind::Choice { values } = &param.kind else { continue };
            for value in values {
                let mut params = defaults.clone();
                params.insert(param.name.clone(), ParamValue::Text(value.clone()));
                alternatives.push(self.requirements(&params));
            }
        }
        let join = |index: usize, field: fn(&Requirement) -> &String| {
            let mut texts: Vec<&str> =
                alternatives.iter().filter_map(|requirements| Some(field(requirements.get(index)?).as_str())).collect();
            let mut seen = std::collections::BTreeSet::new();
            texts.retain(|text| seen.insert(*text));
            texts.join(" or ")
        };
        let requirement = |(index, requirement): (usize, &Requirement)| Requirement {
            program: join(index, |requirement| &requirement.program),
            package: join(index, |requirement| &requirement.package),
            version: requirement.version.clone(),
            feature: None,
        };
        alternatives[0].iter().enumerate().map(requirement).collect()
    }

    /// Estimated duration of a sample after the first: that of its probe and its work, or the estimate in the
    /// definition.
    fn estimate(&self, min_time: Nanos) -> Nanos {
        let own = self.estimate.unwrap_or(min_time).0;
        Nanos(match self.duration_control {
            DurationControl::Work(_) => {
                let work = self.work_time(min_time).0;
                work.saturating_add(work / work::PROBE_DIVISOR)
            }
            DurationControl::Time => own.max(min_time.0),
            DurationControl::Fixed => own,
        })
    }

    fn work_time(&self, min_time: Nanos) -> Nanos {
        let calibrated = Nanos::from_seconds(min_time.seconds() * sample::MIN_TIME_MARGIN);
        Nanos(self.estimate.unwrap_or_default().0.max(calibrated.0))
    }

    fn calibration_time(&self, min_time: Nanos) -> Nanos {
        match self.duration_control {
            DurationControl::Work(_) => {
                Nanos::from_seconds(self.work_time(min_time).seconds() * sample::CALIBRATION_FACTOR)
            }
            DurationControl::Time | DurationControl::Fixed => Nanos(0),
        }
    }

    /// A command that takes neither work nor time always does the same.
    fn follows_min_time(&self) -> bool {
        !matches!(self.duration_control, DurationControl::Fixed)
    }

    /// Whether the duration of a sample can be estimated: not for a command without estimate that takes neither work
    /// nor time.
    fn is_estimated(&self) -> bool {
        self.estimate.is_some() || self.follows_min_time()
    }
}
