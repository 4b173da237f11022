//! `definition.json`: the effective definitions of the cells of one serial.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, Criteria, DefinitionKey, Metric, Nanos, Params, Roles};
use wb_stats::SamplingRule;

/// The definitions of the cells of one serial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Definitions {
    /// The definitions, in the order in which the cells were first requested.
    pub cells: Vec<CellDefinition>,
}

/// A cell's effective definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellDefinition {
    /// The cell.
    pub cell: CellId,
    /// The key that determines with which other cells it may be compared.
    pub key: DefinitionKey,
    /// The test's measurement version.
    pub version: u32,
    /// The test's one-line summary.
    pub summary: String,
    /// Every effective parameter.
    pub params: Params,
    /// Its metrics; those are primary that decide in the newest invocation.
    pub metrics: Vec<Metric>,
    /// What decides, where the plan of the newest invocation does not leave it to the test.
    #[serde(default, skip_serializing_if = "Criteria::is_empty")]
    pub criteria: Criteria,
    /// Its sampling rule; that of the newest invocation.
    pub rule: SamplingRule,
    /// The maximum number of additional samples for disturbed ones.
    pub retakes: usize,
    /// The minimum duration of the measured part of a sample; absent if the test's own parameters determine the
    /// duration, and in records from before this field was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_time: Option<Nanos>,
    /// The workers that measure it with their roles; empty if only this machine does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Roles>,
    /// Why it cannot be measured, if it cannot.
    pub unsupported: Option<String>,
    /// Binaries, versions, hashes, instruction sets, kernel and boot.
    pub provenance: BTreeMap<String, String>,
}

impl Definitions {
    /// The definition of a cell.
    pub fn of(&self, cell: &CellId) -> Option<&CellDefinition> {
        self.cells.iter().find(|definition| definition.cell == *cell)
    }

    /// Adds definitions, as [`Self::insert`] does each.
    pub fn extend(&mut self, definitions: impl IntoIterator<Item = CellDefinition>) {
        // There may be thousands.
        let mut positions: BTreeMap<CellId, usize> =
            self.cells.iter().enumerate().map(|(index, definition)| (definition.cell.clone(), index)).collect();
        for definition in definitions {
            match positions.entry(definition.cell.clone()) {
                Entry::Occupied(index) => self.cells[*index.get()] = definition,
                Entry::Vacant(new) => {
                    new.insert(self.cells.len());
                    self.cells.push(definition);
                }
            }
        }
    }

    /// Adds a definition, or replaces an earlier one of the same cell.
    pub fn insert(&mut self, definition: CellDefinition) {
        match self.cells.iter_mut().find(|existing| existing.cell == definition.cell) {
            Some(existing) => *existing = definition,
            None => self.cells.push(definition),
        }
    }
}
