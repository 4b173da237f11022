//! Records of imported results: the test, and each sample.
//!
//! A sample describes the metric of each of its figures, so that it can be read years later without the program that
//! imported it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Gate, Metric, Sha256, TestName};

/// Name of the artefact with an [`ImportedSample`].
pub const SAMPLE_ARTEFACT: &str = "imported.json";

/// Provenance key of an imported cell; its value is the format of the imported files.
pub const IMPORTED_FROM: &str = "imported from";

/// A test whose samples were taken by another program, as defined by `tests.d/NAME.toml` of the run folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportedTest {
    /// Its name.
    pub name: TestName,
    /// One-line summary.
    pub summary: String,
    /// Version of the import; raised when such results are read differently.
    pub version: u32,
    /// Format of the imported files.
    pub imported: String,
}

/// A sample taken by another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSample {
    /// Source of the sample.
    pub origin: ImportOrigin,
    /// The figures.
    pub values: Vec<ImportedValue>,
    /// Duration of its measured part in seconds, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Findings, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The gate that the figures failed when they were imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<ImportRejection>,
    /// Provenance of the figures: host, kernel, versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, String>,
}

/// Why the figures of an imported sample are invalid, from what else its file has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportRejection {
    /// The failed check.
    pub gate: Gate,
    /// The figures that failed it.
    pub figures: String,
}

/// Source of an imported sample; no source is imported twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ImportOrigin {
    /// Hash of the file.
    pub sha256: Sha256,
    /// Location in the file: `jobs/2`.
    pub location: String,
}

/// A figure with its metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedValue {
    /// The metric.
    #[serde(flatten)]
    pub metric: Metric,
    /// The figure, in the metric's unit.
    pub value: f64,
}
