//! Tests without Rust: a TOML file says what is built, started, measured, read and checked.
//!
//! docs/tests.md tells how to write one. Everything that can be wrong with a definition is found when it
//! is read; commands are lists of arguments, and no shell has a part in them.
//!
//! Start with [`definition`] (what there is to say) and [`template`] (how parameters get into commands);
//! then [`sample`] (what happens in a sample) and [`study`] (what is read out of it).

mod build;
mod builtin;
mod check;
mod definition;
mod error;
mod file_hashes;
mod files;
mod metric;
mod params;
mod parser;
mod port;
mod prepare;
mod raw;
mod sample;
mod sample_output;
mod study;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use wb_model::{Declaration, Facts, Metric, Nanos, ParamKind, ParamValue, Params, Requirement};
use wb_record::definition_files::DefinitionFiles;
use wb_stats::SamplingRule;

use crate::test::{AnyPrepared, NamedFile, unsupported_placement};
use crate::{
    Artefacts, Attempt, BuildInputs, Conclusion, Failure, Measurement, Rejection, StudiedCell, Test, WorkerContext,
};

pub use builtin::builtin_tests;
use definition::{Definition, DurationControl};
pub use error::{DefinitionError, Diagnostic};
use prepare::Prepared;
use template::Bindings;

/// A test that a TOML file defines.
#[derive(Debug)]
pub struct DeclarativeTest {
    definition: Definition,
    /// As it was written, unless it comes with the program.
    text: Option<String>,
}

impl DeclarativeTest {
    /// Reads a definition. `name` is what messages call it; files beside it lie in `folder`.
    ///
    /// # Errors
    /// When it says something that a definition cannot say; the error has the place.
    pub fn parse(name: &str, text: &str, folder: Option<&Path>) -> Result<Self, DefinitionError> {
        Self::parse_with(name, text, folder, None)
    }

    fn parse_with(
        name: &str,
        text: &str,
        folder: Option<&Path>,
        copies: Option<&DefinitionFiles>,
    ) -> Result<Self, DefinitionError> {
        let own = folder.map(|_| text.to_owned());
        Definition::parse(name, text, folder, copies).map(|definition| Self { definition, text: own })
    }

    /// Reads the definition in a file. Where a run has recorded it, the files that it names are the run's copies; those
    /// of which there is none are missed when they are needed, which is never to read samples.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Declarative::parse`].
    pub fn read(path: &Path) -> Result<Self, DefinitionError> {
        let unreadable = |source| DefinitionError::Read { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let path = path.canonicalize().map_err(unreadable)?;
        let copies = DefinitionFiles::read_beside(&path)?;
        Self::parse_with(&path.display().to_string(), &text, path.parent(), copies.as_ref())
    }
}

#[async_trait]
impl Test for DeclarativeTest {
    fn declaration(&self) -> Declaration {
        self.definition.declaration.clone()
    }

    fn definition(&self) -> Option<&str> {
        self.text.as_deref()
    }

    fn files(&self, params: &Params) -> Vec<NamedFile> {
        self.definition.named_files(params)
    }

    fn source_hashes(&self, params: &Params) -> BTreeMap<String, String> {
        self.definition.source_hashes(params)
    }

    fn requires(&self, params: &Params) -> Vec<Requirement> {
        self.definition.requirements(params)
    }

    fn resolve(&self, given: &Params, facts: &Facts) -> BTreeMap<String, Vec<ParamValue>> {
        self.definition.machine_params.iter().map(|param| param.values(given, facts)).collect()
    }

    fn unsupported(&self, params: &Params, facts: &Facts) -> Option<String> {
        unsupported_placement(params, facts).unwrap_or_else(Some)
    }

    fn rule(&self, _params: &Params) -> Option<SamplingRule> {
        None
    }

    fn build_inputs(&self, params: &Params) -> BuildInputs {
        self.definition.build_inputs(params)
    }

    fn estimate(&self, _params: &Params, min_time: Nanos) -> Nanos {
        self.definition.estimate(min_time)
    }

    fn calibration_time(&self, _params: &Params, min_time: Nanos) -> Nanos {
        self.definition.calibration_time(min_time)
    }

    fn is_estimated(&self, _params: &Params) -> bool {
        self.definition.is_estimated()
    }

    fn metrics(&self, _params: &Params) -> Vec<Metric> {
        self.definition.metrics.iter().map(|reading| reading.metric.clone()).collect()
    }

    async fn build(&self, params: &Params, site: &WorkerContext) -> Result<BTreeMap<String, String>, Failure> {
        self.definition.build_programs(params, site).await
    }

    async fn prepare(&self, params: &Params, site: &WorkerContext) -> Result<AnyPrepared, Failure> {
        Ok(Box::new(self.definition.prepare(params, site).await?))
    }

    async fn sample(&self, params: &Params, prepared: &mut AnyPrepared, attempt: &mut Attempt) -> Result<(), Failure> {
        let other = || Failure::refused("prepared by another test");
        let prepared: &mut Prepared = prepared.downcast_mut().ok_or_else(other)?;
        self.definition.sample(params, prepared, attempt).await
    }

    async fn cleanup(&self, params: &Params, prepared: AnyPrepared, site: &WorkerContext) -> Result<(), Failure> {
        let prepared: Box<Prepared> = prepared.downcast().map_err(|_| Failure::refused("prepared by another test"))?;
        self.definition.clean_up(params, *prepared, site).await
    }

    fn study(&self, params: &Params, artefacts: &Artefacts) -> Result<Measurement, Rejection> {
        self.definition.study(params, artefacts)
    }

    fn solve(&self, _cells: &[StudiedCell<'_>]) -> Vec<Conclusion> {
        Vec::new()
    }
}

impl Definition {
    /// The programs that it needs, as far as the parameters that name them are known.
    fn requirements(&self, params: &Params) -> Vec<Requirement> {
        let bindings = Bindings { params, builtins: BTreeMap::new() };
        let need = |need: &definition::RequirementTemplate| {
            Some(Requirement {
                program: need.program.text(&bindings).ok()?,
                package: need.package.text(&bindings).ok()?,
                version: need.version.clone(),
                feature: None,
            })
        };
        self.requirement_templates.iter().filter_map(need).collect()
    }

    /// The programs that it may need, for people: where a choice decides, all that it can come to.
    fn possible_requirements(&self, known: &Params) -> Vec<Requirement> {
        let mut found = vec![self.requirements(known)];
        for param in &self.declaration.params {
            let ParamKind::Choice { values } = &param.kind else { continue };
            for value in values {
                let mut params = known.clone();
                params.insert(param.name.clone(), ParamValue::Text(value.clone()));
                found.push(self.requirements(&params));
            }
        }
        let joined = |at: usize, of: fn(&Requirement) -> &String| {
            let mut texts: Vec<&str> = found.iter().filter_map(|all| Some(of(all.get(at)?).as_str())).collect();
            let mut seen = std::collections::BTreeSet::new();
            texts.retain(|text| seen.insert(*text));
            texts.join(" or ")
        };
        let need = |(at, need): (usize, &Requirement)| Requirement {
            program: joined(at, |need| &need.program),
            package: joined(at, |need| &need.package),
            version: need.version.clone(),
            feature: None,
        };
        found[0].iter().enumerate().map(need).collect()
    }

    /// How long a sample takes after the first: its probe and its work, or what the definition gives.
    fn estimate(&self, min_time: Nanos) -> Nanos {
        let own = self.estimate.unwrap_or(min_time).0;
        Nanos(match self.calibration {
            DurationControl::Work(_) => {
                let work = self.work_time(min_time).0;
                work.saturating_add(work / sample::PROBE_DIVISOR)
            }
            DurationControl::Time => own.max(min_time.0),
            DurationControl::Fixed => own,
        })
    }

    /// How long the calibrated work of a sample takes.
    fn work_time(&self, min_time: Nanos) -> Nanos {
        let calibrated = Nanos::from_seconds(min_time.seconds() * sample::MARGIN);
        Nanos(self.estimate.unwrap_or_default().0.max(calibrated.0))
    }

    /// How long finding the work of a sample takes: a run of nearly that work, and shorter ones before it.
    fn calibration_time(&self, min_time: Nanos) -> Nanos {
        match self.calibration {
            DurationControl::Work(_) => {
                Nanos::from_seconds(self.work_time(min_time).seconds() * sample::CALIBRATION_FACTOR)
            }
            DurationControl::Time | DurationControl::Fixed => Nanos(0),
        }
    }

    /// Whether anything says how long a sample takes: a command that is given neither work nor time takes its own.
    fn is_estimated(&self) -> bool {
        self.estimate.is_some() || !matches!(self.calibration, DurationControl::Fixed)
    }
}
