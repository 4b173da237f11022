//! `definition.json`: what the cells of one test are, effectively.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, DefinitionKey, Metric, Nanos, Params, Roles};
use wb_stats::SamplingRule;

/// The definitions of the cells of one serial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Definitions {
    /// In the order they were first asked for.
    pub cells: Vec<CellDefinition>,
}

/// A cell's effective definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellDefinition {
    /// Which cell.
    pub cell: CellId,
    /// What decides with which others it may be compared.
    pub key: DefinitionKey,
    /// The test's measurement version.
    pub version: u32,
    /// What the test says of itself, in a line.
    pub summary: String,
    /// Every effective parameter.
    pub params: Params,
    /// What it measures.
    pub metrics: Vec<Metric>,
    /// When it is done; the one of the newest entry.
    pub rule: SamplingRule,
    /// How many disturbed samples are taken again.
    pub retakes: usize,
    /// How long the measured part of a sample should take at least; none where its own parameters say how long it takes,
    /// and in records of before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_time: Option<Nanos>,
    /// Who measures it, where it is not this machine alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<Roles>,
    /// Why it cannot be measured, if so.
    pub unsupported: Option<String>,
    /// Binaries, versions, hashes, instruction sets, kernel and boot.
    pub provenance: BTreeMap<String, String>,
}

impl Definitions {
    /// The definition of a cell.
    pub fn of(&self, cell: &CellId) -> Option<&CellDefinition> {
        self.cells.iter().find(|definition| definition.cell == *cell)
    }

    /// Adds a definition, or puts it in the place of an earlier one of the same cell.
    pub fn put(&mut self, definition: CellDefinition) {
        match self.cells.iter_mut().find(|known| known.cell == definition.cell) {
            Some(known) => *known = definition,
            None => self.cells.push(definition),
        }
    }
}
