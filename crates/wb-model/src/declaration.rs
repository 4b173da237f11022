//! What a test says of itself. A test in Rust and a test in TOML make the same declaration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Param, TestName};

/// How long what a test prepares stays alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Prepared anew for every sample.
    #[default]
    Sample,
    /// Prepared once for all samples of a cell, and kept alive between them.
    Cell,
}

/// Something a test needs on its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// The program that must be found in PATH.
    pub program: String,
    /// Debian's package that has it.
    pub package: String,
    /// The arguments with which it tells its version.
    pub version: Vec<String>,
    /// What it must be able to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature: Option<ProgramFeature>,
}

/// Something that not every build of a program can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFeature {
    /// Its name: ``the ioengine `nbd` ``.
    pub name: String,
    /// The arguments with which the program succeeds where it has it.
    pub arguments: Vec<String>,
    /// Which build of the program has it.
    pub source: String,
}

impl Requirement {
    /// A program of a package, which tells its version when called with `version`.
    pub fn new(program: &str, package: &str, version: &[&str]) -> Self {
        Self {
            program: program.to_owned(),
            package: package.to_owned(),
            version: version.iter().map(|arg| (*arg).to_owned()).collect(),
            feature: None,
        }
    }

    /// The same program, which must also be able to do this.
    pub fn with_feature(self, ability: ProgramFeature) -> Self {
        Self { feature: Some(ability), ..self }
    }
}

/// A test's declaration: help, validation, `list`, documentation and schema come from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// Its name.
    pub name: TestName,
    /// What it measures, in a line.
    pub summary: String,
    /// Raised when the test starts to measure differently; part of every definition key.
    pub version: u32,
    /// Its parameters.
    pub params: Vec<Param>,
    /// How long what it prepares stays alive.
    pub scope: Scope,
    /// What it needs on its worker.
    pub requires: Vec<Requirement>,
}

impl Declaration {
    /// The parameter of this name or alias.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name || param.aliases.iter().any(|alias| alias == name))
    }
}
