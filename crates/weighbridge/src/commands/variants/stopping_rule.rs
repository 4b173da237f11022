//! Whoever ends the sampling of variants when it is clear how they stand.

use std::sync::OnceLock;

use wb_compare::experiment::blocks;
use wb_compare::sequential_test::{SequentialTest, StoppingState};
use wb_model::{Case, CellId, pluralize};
use wb_plan::Sampling;
use wb_run::active_cell::{ActiveCell, NextStep};

/// Which cells are variants of one another, and the rule that decides between them.
pub(super) struct AbStoppingRule {
    /// The parameters that variants change.
    variant_params: Vec<String>,
    /// No end before so many blocks.
    min_blocks: usize,
    /// Known when the plan is.
    decision_rule: OnceLock<(SequentialTest, Sampling)>,
}

impl AbStoppingRule {
    pub(super) fn new(variant_params: Vec<String>, min_blocks: usize) -> Self {
        Self { variant_params, min_blocks, decision_rule: OnceLock::new() }
    }

    /// The case of a cell without what variants change in it.
    pub(super) fn case(&self, cell: &CellId) -> Case {
        self.variant_params.iter().fold(cell.case.clone(), |case, name| case.without(name))
    }

    /// From now on it decides by this rule.
    pub(super) fn set_rule(&self, rule: SequentialTest, sampling: Sampling) {
        // Plans are made once; a second would be the same.
        let _ = self.decision_rule.set((rule, sampling));
    }

    /// The rule, once it is settled.
    pub(super) fn rule(&self) -> Option<&SequentialTest> {
        self.decision_rule.get().map(|(rule, _)| rule)
    }

    /// Why a cell needs no more samples.
    pub(super) fn stop_reason(&self, cells: &[ActiveCell], at: usize) -> Option<String> {
        let (rule, sampling) = self.decision_rule.get()?;
        let case = self.case(&cells[at].cell.id);
        let variants: Vec<&ActiveCell> = cells.iter().filter(|cell| self.case(&cell.cell.id) == case).collect();
        // One that got all its samples is not given up; the others have theirs in the same round.
        let given_up = |cell: &&&ActiveCell| match cell.next(sampling) {
            NextStep::Finish(by) => Some((cell.cell.id.serial.to_string(), by)),
            NextStep::Attempt(..) => None,
        };
        let fewer = variants.iter().filter(|cell| counted_values(cell).len() < rule.max_blocks());
        if let Some((name, by)) = fewer.into_iter().find_map(|cell| given_up(&cell)) {
            return Some(format!("the variant {name} has ended: {by}"));
        }
        let values: Vec<Vec<(u32, f64)>> = variants.iter().map(|cell| counted_values(cell)).collect();
        let blocks = blocks(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let standings = rule.evaluate(&blocks).ok()?;
        let decided = standings.state == StoppingState::Decided && standings.blocks >= self.min_blocks;
        decided.then(|| format!("it is decided after {}", pluralize(standings.blocks, "block")))
    }
}

/// The samples of a cell that count, by their numbers.
fn counted_values(cell: &ActiveCell) -> Vec<(u32, f64)> {
    let Some(metric) = cell.definition.metrics.iter().find(|metric| metric.primary) else { return Vec::new() };
    let value =
        |studied: &wb_study::StudiedAttempt| Some((studied.attempt.ended.sample, studied.valid_sample()?.get(metric)?));
    cell.studied.iter().filter_map(value).collect()
}
