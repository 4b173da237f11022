//! Sequential stopping rule of `ab`: ends sampling once the comparison is decided.

use std::sync::OnceLock;

use wb_compare::experiment::complete_blocks;
use wb_compare::sequential_test::{SequentialTest, StoppingState};
use wb_model::{Case, CellId, pluralize};
use wb_plan::Sampling;
use wb_run::active_cell::{ActiveCell, NextStep};

use super::criterion::decisive_metric;

/// Stops the sampling of variants as soon as their comparison is decided.
pub(super) struct AbStoppingRule {
    /// The parameters that variants change.
    variant_params: Vec<String>,
    /// Minimum number of blocks.
    min_blocks: usize,
    /// Set once the plan is made.
    test: OnceLock<(SequentialTest, Sampling)>,
}

impl AbStoppingRule {
    pub(super) fn new(variant_params: Vec<String>, min_blocks: usize) -> Self {
        Self { variant_params, min_blocks, test: OnceLock::new() }
    }

    /// The case of a cell without the parameters that variants change.
    pub(super) fn case(&self, cell: &CellId) -> Case {
        self.variant_params.iter().fold(cell.case.clone(), |case, name| case.without(name))
    }

    /// Sets the test that decides.
    pub(super) fn set_test(&self, test: SequentialTest, sampling: Sampling) {
        // Plans are made once; a second one would be equal.
        let _ = self.test.set((test, sampling));
    }

    /// The test that decides, once set.
    pub(super) fn test(&self) -> Option<&SequentialTest> {
        self.test.get().map(|(test, _)| test)
    }

    /// The reason to stop sampling a cell; `None` if it needs more samples.
    pub(super) fn stop_reason(&self, cells: &[ActiveCell], at: usize) -> Option<String> {
        let (test, sampling) = self.test.get()?;
        let case = self.case(&cells[at].planned.id);
        let variants: Vec<&ActiveCell> = cells.iter().filter(|cell| self.case(&cell.planned.id) == case).collect();
        // A variant with all its samples has not ended early; the others get theirs in the same round.
        let ended_early = |cell: &&&ActiveCell| match cell.next(sampling) {
            NextStep::Finish(by) => Some((cell.planned.id.serial.to_string(), by)),
            NextStep::Attempt(..) => None,
        };
        let unfinished = variants.iter().filter(|cell| counted_values(cell).len() < test.max_blocks());
        if let Some((name, by)) = unfinished.into_iter().find_map(|cell| ended_early(&cell)) {
            return Some(format!("the variant {name} has ended: {by}"));
        }
        let values: Vec<Vec<(u32, f64)>> = variants.iter().map(|cell| counted_values(cell)).collect();
        let blocks = complete_blocks(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let results = test.evaluate(&blocks).ok()?;
        let decided = results.state == StoppingState::Decided && results.blocks >= self.min_blocks;
        decided.then(|| format!("decided after {}", pluralize(results.blocks, "block")))
    }
}

/// The valid primary values of a cell, with their sample numbers.
fn counted_values(cell: &ActiveCell) -> Vec<(u32, f64)> {
    let Some(metric) = decisive_metric(&cell.definition.metrics) else { return Vec::new() };
    let value = |evaluated: &wb_study::EvaluatedAttempt| {
        Some((evaluated.attempt.ended.sample, evaluated.valid_sample()?.get(metric)?))
    };
    cell.evaluated.iter().filter_map(value).collect()
}
