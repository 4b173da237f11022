//! What an import records of results that another program measured: the test that they are of, and each sample.
//!
//! A sample says of each of its figures what it is, so that it can be read years later without the program that
//! imported it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Metric, Sha256, TestName};

/// The name of the artefact that holds an [`ImportedSample`].
pub const ARTEFACT: &str = "imported.json";

/// Under which name the provenance of a cell has the format of the files that its samples come from.
pub const IMPORTED_FROM: &str = "imported from";

/// A test whose samples another program took, as `tests.d/NAME.toml` of the run folder defines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedTest {
    /// Its name.
    pub name: TestName,
    /// What it measures, in a line.
    pub summary: String,
    /// Raised when the import starts to read such results differently.
    pub version: u32,
    /// The format of the files that its samples come from.
    pub imported: String,
}

/// A sample that another program took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSample {
    /// Where it was read.
    pub origin: ImportOrigin,
    /// Its figures.
    pub values: Vec<ImportedValue>,
    /// How long its measured part took, in seconds, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// What was noticed, each in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// What may explain the figures: host, kernel, versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, String>,
}

/// Where a sample was read: no place is imported twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ImportOrigin {
    /// The hash of the file.
    pub sha256: Sha256,
    /// Where in the file: `jobs/2`.
    pub location: String,
}

/// A figure, and what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedValue {
    /// What it is.
    #[serde(flatten)]
    pub metric: Metric,
    /// The figure, in the metric's unit.
    pub value: f64,
}
