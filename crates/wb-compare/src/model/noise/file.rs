//! Files of noise models.

use std::path::Path;

use serde::Deserialize;

use super::NoiseModel;
use crate::model::ToleranceModel;
use crate::model::file::{ModelError, ParseModelError};

/// The version that this program writes, and the newest that it reads.
pub(super) const VERSION: u32 = 1;

/// What [`super::Format`] is called.
const NAME: &str = "weighbridge-noise";

/// What a file begins with, as far as it says what the rest is.
#[derive(Deserialize)]
struct ModelHead {
    format: Option<String>,
    version: Option<u32>,
}

/// A model of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyModel {
    /// What is normal, as a line from values to scores.
    Tolerance(ToleranceModel),
    /// How far runs lie apart.
    Noise(NoiseModel),
}

impl AnyModel {
    /// Reads a file of either kind.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let text = std::fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
        let model = Self::parse(&text).map_err(|source| ModelError::File { path: path.to_owned(), source })?;
        Ok(match model {
            Self::Tolerance(model) => Self::Tolerance(model.with_file(path)),
            noise @ Self::Noise(_) => noise,
        })
    }

    /// Reads a file's text. What a newer program added to a known version is passed over.
    pub fn parse(text: &[u8]) -> Result<Self, ParseModelError> {
        let head: Result<ModelHead, _> = serde_json::from_slice(text);
        let Ok(ModelHead { format: Some(format), version }) = head else {
            return Ok(Self::Tolerance(ToleranceModel::parse(text)?));
        };
        if format != NAME || version != Some(VERSION) {
            let version = version.map_or("no number".to_owned(), |version| version.to_string());
            return Err(ParseModelError::Format { format, version });
        }
        let model: NoiseModel = serde_json::from_slice(text)?;
        if model.checks.is_empty() { Err(ParseModelError::Empty) } else { Ok(Self::Noise(model)) }
    }
}

impl NoiseModel {
    /// Writes a file whole, so that it is either the old one or the new one.
    pub fn write(&self, path: &Path) -> Result<(), ModelError> {
        wb_record::files::write_json(path, self).map_err(ModelError::Write)
    }
}
