//! A plan: the cells to measure, and the time that takes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{CellId, Criteria, DefinitionKey, Nanos, Params, Roles, Scope};
use wb_stats::SamplingRule;

use crate::Sampling;

/// The cells to measure. The same requests and facts always give the same plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The cells, in the order requested.
    pub cells: Vec<Cell>,
    /// Requested cells that are skipped.
    pub skipped: Vec<SkippedCell>,
    /// The sampling settings.
    pub sampling: Sampling,
}

/// A cell to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Its name.
    pub id: CellId,
    /// Identifies what it may be compared and resumed with; `None` while parameters are unresolved.
    pub key: Option<DefinitionKey>,
    /// Its name in the matrix of its test, which selections see; not recorded.
    #[serde(skip)]
    pub matrix_name: Option<String>,
    /// The test's measurement version.
    pub version: u32,
    /// Every resolved parameter, defaults included.
    pub params: Params,
    /// Parameters that depend on the machine and are unresolved without a worker, each with how it is resolved.
    pub unresolved: BTreeMap<String, String>,
    /// Why it cannot be measured on its workers; `None` if it can.
    pub unsupported: Option<String>,
    /// The stopping rule.
    pub rule: SamplingRule,
    /// Estimated time of one sample.
    pub estimate: Nanos,
    /// Additional time of the first sample, which calibrates the work of each sample.
    #[serde(default)]
    pub calibration_time: Nanos,
    /// Whether the estimate is specific to this test; otherwise the time of a sample is unknown.
    #[serde(default = "default_is_estimated")]
    pub is_estimated: bool,
    /// The lifetime of what its test prepares.
    pub scope: Scope,
    /// What decides about it, where that is not left to its test.
    #[serde(default, skip_serializing_if = "Criteria::is_empty")]
    pub criteria: Criteria,
    /// User tools that run around its samples.
    pub tools: Vec<String>,
    /// Files that replace programs, by program name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<String, String>,
    /// The workers that measure it; several role assignments measure at the same time. Empty while no worker is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Roles>,
    /// The index of the block in which it is scheduled.
    pub block: usize,
    /// The group within the block: in each round its cells are sampled one directly after the other. `None` for a cell
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
}

/// A requested cell that is skipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedCell {
    /// Its name.
    pub id: CellId,
    /// Its effective parameters, which selections see; not recorded.
    #[serde(skip)]
    pub params: Params,
    /// Its name in the matrix of its test, which selections see; not recorded.
    #[serde(skip)]
    pub matrix_name: Option<String>,
    /// The reason.
    pub reason: String,
}

fn default_is_estimated() -> bool {
    true
}

/// The estimated time of a measurement, with the minimum and with the maximum number of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeEstimate {
    pub min: Nanos,
    /// With all retakes of disturbed samples, but without failed attempts.
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
    /// Of all supported cells that have an estimate.
    pub fn duration(&self) -> TimeEstimate {
        let cells = self.cells.iter().filter(|cell| cell.unsupported.is_none() && cell.is_estimated);
        cells.map(|cell| self.cell_duration(cell)).sum()
    }

    /// The estimated time of a cell: warm-ups and samples, none of which starts once the budget is spent.
    pub fn cell_duration(&self, cell: &Cell) -> TimeEstimate {
        let most = cell.rule.with_retakes(self.sampling.retakes).max_samples();
        let attempts = |samples: usize| self.attempts(cell, samples);
        let fewest = cell.rule.min_samples();
        let time = |attempts: u64| {
            let first = if attempts > 0 { cell.calibration_time.0 } else { 0 };
            Nanos(cell.estimate.0.saturating_mul(attempts).saturating_add(first))
        };
        TimeEstimate { min: time(attempts(fewest)), max: time(attempts(most)) }
    }

    /// The minimum and maximum number of samples of a cell, as far as its estimate and the budget allow.
    pub fn sample_range(&self, cell: &Cell) -> RangeInclusive<usize> {
        let within = |samples: usize| {
            if cell.is_estimated {
                self.attempts(cell, samples).saturating_sub(u64::from(self.sampling.warm_up)) as usize
            } else {
                samples
            }
        };
        within(cell.rule.min_samples())..=within(cell.rule.max_samples())
    }

    /// The number of attempts, warm-ups included, for this many samples, that start before the budget is spent.
    fn attempts(&self, cell: &Cell, samples: usize) -> u64 {
        let warm_up = u64::from(self.sampling.warm_up);
        let required = warm_up.saturating_add(samples as u64);
        let fewest = warm_up.saturating_add(cell.rule.min_samples() as u64);
        // A cell that is compared ends with a verdict, and has no budget unless one was requested.
        let within = |budget: Nanos| self.attempts_within(cell, budget);
        match (self.sampling.budget, self.sampling.budget(!cell.rule.is_external())) {
            (Some(budget), _) => required.min(within(budget)),
            (None, Some(default)) => required.min(within(default).max(fewest)),
            (None, None) => required,
        }
    }

    fn attempts_within(&self, cell: &Cell, budget: Nanos) -> u64 {
        let rest = budget.0.saturating_sub(cell.calibration_time.0);
        rest.div_ceil(cell.estimate.0.max(1)).max(1)
    }

    /// The shortfall if the budget is expected to end a cell before its minimum number of samples.
    pub fn shortfall(&self, cell: &Cell) -> Option<Shortfall> {
        let required = cell.rule.min_samples();
        // No attempt starts once the budget is spent; one that has started is finished.
        let attempts = self.attempts_within(cell, self.sampling.budget?);
        let affordable = attempts.saturating_sub(u64::from(self.sampling.warm_up)) as usize;
        let is_short = cell.unsupported.is_none() && cell.is_estimated && affordable < required;
        is_short.then_some(Shortfall { affordable, required })
    }
}

/// A budget that is too small for a cell's stopping rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shortfall {
    /// Samples that fit into the budget.
    pub affordable: usize,
    /// The minimum number of samples of the rule.
    pub required: usize,
}
