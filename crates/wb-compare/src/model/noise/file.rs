//! Noise model files.

use std::path::Path;

use serde::Deserialize;

use super::NoiseModel;
use crate::model::{ModelError, ParseModelError};
use crate::run_perf::model::ToleranceModel;

/// The version written, and the latest that can be read.
pub(super) const VERSION: u32 = 1;

const NAME: &str = "weighbridge-noise";

#[derive(Deserialize)]
struct ModelHead {
    format: Option<String>,
    version: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AnyModel {
    Tolerance(ToleranceModel),
    Noise(NoiseModel),
}

impl AnyModel {
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let text = std::fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })?;
        let model = Self::parse(&text).map_err(|source| ModelError::File { path: path.to_owned(), source })?;
        Ok(match model {
            Self::Tolerance(model) => Self::Tolerance(model.with_file(path)),
            noise @ Self::Noise(_) => noise,
        })
    }

    /// Unknown fields of a supported version are ignored.
    pub fn parse(text: &[u8]) -> Result<Self, ParseModelError> {
        let head: Result<ModelHead, _> = serde_json::from_slice(text);
        let Ok(ModelHead { format: Some(format), version }) = head else {
            return Ok(Self::Tolerance(ToleranceModel::parse(text)?));
        };
        if format != NAME || version != Some(VERSION) {
            let version = version.map_or("unknown".to_owned(), |version| version.to_string());
            return Err(ParseModelError::Format { format, version });
        }
        let model: NoiseModel = serde_json::from_slice(text)?;
        if model.checks.is_empty() { Err(ParseModelError::Empty) } else { Ok(Self::Noise(model)) }
    }
}
