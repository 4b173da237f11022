//! Declarations of tests, the same for tests in Rust and in TOML.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Param, TestName};

/// Lifetime of what a test prepares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Prepared again for every sample.
    #[default]
    Sample,
    /// Prepared once for all samples of a cell, and kept alive between them.
    Cell,
}

/// A program that a test requires on its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// Name of the program, which must be on `PATH`.
    pub program: String,
    /// Debian package that contains it.
    pub package: String,
    /// Arguments that print its version.
    pub version: Vec<String>,
    /// A feature that it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<ProgramFeature>,
}

/// A feature that not every build of a program has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFeature {
    /// Its name: ``the ioengine `nbd` ``.
    pub name: String,
    /// Arguments with which the program succeeds if it has the feature.
    pub arguments: Vec<String>,
    /// Environment variables of the worker that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// Description of the builds that have it.
    pub source: String,
}

impl Requirement {
    /// Creates a requirement of a program from a package, which prints its version when called with `version`.
    pub fn new(program: &str, package: &str, version: &[&str]) -> Self {
        Self {
            program: program.to_owned(),
            package: package.to_owned(),
            version: version.iter().map(|arg| (*arg).to_owned()).collect(),
            feature: None,
        }
    }

    pub fn with_feature(self, feature: ProgramFeature) -> Self {
        Self { feature: Some(feature), ..self }
    }
}

/// Declaration of a test: help, validation, `list`, documentation and schema are derived from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// Its name.
    pub name: TestName,
    /// One-line summary of what it measures.
    pub summary: String,
    /// Measurement version, raised when the test measures differently; part of every definition key.
    pub version: u32,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Lifetime of what it prepares.
    pub scope: Scope,
    /// Programs required on its worker.
    pub requires: Vec<Requirement>,
}

impl Declaration {
    /// Returns the parameter with this name or alias.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name || param.aliases.iter().any(|alias| alias == name))
    }
}
