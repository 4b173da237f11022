//! A plan: the cells that will be measured, and how long that takes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, DefinitionKey, Nanos, Params, Roles, Scope};
use wb_stats::SamplingRule;

use crate::Sampling;

/// What will be measured: the same requests on the same facts always make the same plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The cells, in the order they were asked for.
    pub cells: Vec<Cell>,
    /// Cells that were asked for and will not be measured.
    pub skipped: Vec<SkippedCell>,
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
    pub unresolved: BTreeMap<String, String>,
    /// Why it cannot be measured here, if so.
    pub unsupported: Option<String>,
    /// When it is done.
    pub rule: SamplingRule,
    /// How long one sample takes, about.
    pub estimate: Nanos,
    /// How much longer the first sample takes, which finds out how much work each does.
    #[serde(default)]
    pub calibration_time: Nanos,
    /// Whether the estimate is of this test; otherwise nothing says how long a sample takes.
    #[serde(default = "default_is_estimated")]
    pub is_estimated: bool,
    /// How long what its test prepares stays alive.
    pub scope: Scope,
    /// User tools around its samples.
    pub tools: Vec<String>,
    /// Files in the place of programs that it calls, by the programs' names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// Who measures it; several teams do at the same time. None while no worker is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<Roles>,
    /// The block it is scheduled in, from 0.
    pub block: usize,
}

/// A cell that was asked for and will not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedCell {
    /// Its name.
    pub id: CellId,
    /// Why.
    pub reason: String,
}

fn default_is_estimated() -> bool {
    true
}

/// How long measuring takes, about: with as few samples as its rule can be met with, and with as many as it takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeEstimate {
    /// The shortest.
    pub min: Nanos,
    /// The longest, without failed attempts and without samples that are taken again.
    pub max: Nanos,
}

impl std::iter::Sum for TimeEstimate {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |all, one| Self {
            min: Nanos(all.min.0.saturating_add(one.min.0)),
            max: Nanos(all.max.0.saturating_add(one.max.0)),
        })
    }
}

impl Plan {
    /// How long the cells take that can be measured and whose samples have an estimate.
    pub fn duration(&self) -> TimeEstimate {
        let cells = self.cells.iter().filter(|cell| cell.unsupported.is_none() && cell.is_estimated);
        cells.map(|cell| self.cell_duration(cell)).sum()
    }

    /// How long a cell takes: warm-ups and samples, of which none is begun once the budget is spent.
    pub fn cell_duration(&self, cell: &Cell) -> TimeEstimate {
        let (fewest, most) = (cell.rule.min_samples() as u64, cell.rule.max_samples() as u64);
        let warm_up = u64::from(self.sampling.warm_up);
        // What is compared ends when it is decided, and has no budget but one that was asked for.
        let is_compared = matches!(cell.rule, SamplingRule::External { .. });
        let attempts = |samples: u64| {
            let wanted = warm_up + samples;
            let within = |budget: Nanos| self.attempts_within(cell, budget);
            match (self.sampling.budget, self.sampling.budget(!is_compared)) {
                (Some(budget), _) => wanted.min(within(budget)),
                (None, Some(usual)) => wanted.min(within(usual).max(warm_up + fewest)),
                (None, None) => wanted,
            }
        };
        let time = |attempts: u64| {
            let first = if attempts > 0 { cell.calibration_time.0 } else { 0 };
            Nanos(cell.estimate.0.saturating_mul(attempts).saturating_add(first))
        };
        TimeEstimate { min: time(attempts(fewest)), max: time(attempts(most)) }
    }

    /// How many attempts are begun before a budget is spent.
    fn attempts_within(&self, cell: &Cell, budget: Nanos) -> u64 {
        let rest = budget.0.saturating_sub(cell.calibration_time.0);
        rest.div_ceil(cell.estimate.0.max(1)).max(1)
    }

    /// Whether the budget ends a cell, about, before its fewest samples are taken.
    pub fn shortfall(&self, cell: &Cell) -> Option<Shortfall> {
        let wanted = cell.rule.min_samples();
        // No attempt is begun once the budget is spent; one that is begun is finished.
        let attempts = self.attempts_within(cell, self.sampling.budget?);
        let holds = attempts.saturating_sub(u64::from(self.sampling.warm_up)) as usize;
        (cell.unsupported.is_none() && cell.is_estimated && holds < wanted)
            .then_some(Shortfall { affordable: holds, required: wanted })
    }
}

/// A cell whose budget is too small for its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortfall {
    /// So many samples fit into the budget.
    pub affordable: usize,
    /// So many are wanted.
    pub required: usize,
}
