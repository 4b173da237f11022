//! A plan: the cells that will be measured, and how long that takes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, DefinitionKey, Nanos, Params, Scope, Team};
use wb_stats::Rule;

use crate::Sampling;

/// What will be measured: the same requests on the same facts always make the same plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The cells, in the order they were asked for.
    pub cells: Vec<Cell>,
    /// Cells that were asked for and will not be measured.
    pub left_out: Vec<LeftOut>,
    /// How it samples.
    pub sampling: Sampling,
}

/// One cell that will be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Its name.
    pub id: CellId,
    /// What it may be compared and resumed with; none while values are open.
    pub key: Option<DefinitionKey>,
    /// The test's measurement version.
    pub version: u32,
    /// Every effective parameter that is known.
    pub params: Params,
    /// Parameters that the machine decides while no machine is known, and how.
    pub open: BTreeMap<String, String>,
    /// Why it cannot be measured here, if so.
    pub unsupported: Option<String>,
    /// When it is done.
    pub rule: Rule,
    /// How long one sample takes, about.
    pub estimate: Nanos,
    /// How long what its test prepares stays alive.
    pub scope: Scope,
    /// User tools around its samples.
    pub tools: Vec<String>,
    /// Files that are programs in the place of those that the path has, by the programs' names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// Who measures it; several teams do at the same time. None while no worker is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<Team>,
    /// The block it is scheduled in, from 0.
    pub block: usize,
}

/// A cell that was asked for and will not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub id: CellId,
    /// Why.
    pub why: String,
}

impl Plan {
    /// How long it takes, about: warm-ups and the fewest samples of every cell that can be measured.
    pub fn estimate(&self) -> Nanos {
        let cells = self.cells.iter().filter(|cell| cell.unsupported.is_none());
        Nanos(cells.map(|cell| self.cell_estimate(cell).0).sum())
    }

    /// How long one cell takes, about, with its fewest samples.
    pub fn cell_estimate(&self, cell: &Cell) -> Nanos {
        let attempts = u64::from(self.sampling.warm_up) + cell.rule.fewest() as u64;
        Nanos(cell.estimate.0.saturating_mul(attempts))
    }

    /// Whether the budget ends a cell, about, before its fewest samples are taken.
    pub fn shortfall(&self, cell: &Cell) -> Option<Shortfall> {
        let wanted = cell.rule.fewest();
        // No attempt is begun once the budget is spent; one that is begun is finished.
        let attempts = self.sampling.budget?.0.div_ceil(cell.estimate.0.max(1));
        let holds = attempts.saturating_sub(u64::from(self.sampling.warm_up)) as usize;
        (cell.unsupported.is_none() && holds < wanted).then_some(Shortfall { holds, wanted })
    }
}

/// A cell whose budget is too small for its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortfall {
    /// So many samples fit into the budget.
    pub holds: usize,
    /// So many are wanted.
    pub wanted: usize,
}
