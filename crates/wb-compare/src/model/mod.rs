//! Models: the normal variation of each check, learnt from history.
//!
//! There are two kinds ([`AnyModel`]). A [`NoiseModel`] has the spread between runs of one build, for the statistical
//! method. A [`ToleranceModel`](crate::ToleranceModel), as run-perf has it, is for the tolerance method.

pub mod error;
pub mod noise;

use std::path::{Path, PathBuf};

use wb_results::comparison::Statistic;

use crate::build::Builds;
use crate::run_perf::model::ToleranceModel;

pub use error::{ModelError, ParseModelError};
pub use noise::{NoiseModel, file::AnyModel};

/// The models of a comparison, by the method that uses them.
#[derive(Debug, Default)]
pub struct Models {
    pub tolerance: Vec<ToleranceModel>,
    pub noise: Vec<NoiseModel>,
    /// A text for each value of the builds' provenance that no build of a noise model has.
    pub unseen_provenance: Vec<String>,
}

impl Models {
    /// Reads models, each of which must have an entry for at least one check of the builds.
    pub fn read(files: &[PathBuf], builds: &Builds) -> Result<Self, ModelError> {
        let mut models = Self::default();
        for file in files {
            match AnyModel::read_for(file, builds)? {
                AnyModel::Tolerance(model) => models.tolerance.push(model),
                AnyModel::Noise(model) => {
                    let unseen = model.unseen_provenance(builds.list()).into_iter().map(|(what, build, value)| {
                        format!("{}: fitted on another {what} than {value} of build `{build}`", file.display())
                    });
                    models.unseen_provenance.extend(unseen);
                    models.noise.push(model);
                }
            }
        }
        Ok(models)
    }
}

impl AnyModel {
    /// Reads a model that must have an entry for at least one check of the builds.
    pub fn read_for(file: &Path, builds: &Builds) -> Result<Self, ModelError> {
        let model = Self::read(file)?;
        let (has_match, first) = match &model {
            Self::Tolerance(model) => (model.covers_any(builds), model.entries.keys().next()),
            Self::Noise(model) => (model.covers_any(builds), model.checks.keys().next()),
        };
        if has_match {
            return Ok(model);
        }
        let of_builds = builds.rows().next().map(|row| builds.id(row, Statistic::Mean).to_string());
        Err(ModelError::OtherChecks {
            path: file.to_owned(),
            of_model: first.cloned().unwrap_or_default(),
            of_builds: of_builds.unwrap_or_default(),
        })
    }
}
