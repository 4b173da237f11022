//! Sequential stopping rule of `ab`: ends the sampling of a case once its comparisons are decided.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use wb_compare::experiment::{ComparedMetric, complete_blocks};
use wb_compare::sequential_test::{CaseBlocks, MetricBlocks, SequentialTest, StoppingState};
use wb_model::{Case, CellId, Purpose, pluralize};
use wb_plan::Sampling;
use wb_run::StoppingDecision;
use wb_run::active_cell::{ActiveCell, NextStep};

/// Stops the sampling of variants as soon as their comparisons are decided. All cases are measured in rounds and are one
/// family, so that each decision depends on the samples of all of them.
pub(super) struct AbStoppingRule {
    /// The parameters that variants change.
    variant_params: Vec<String>,
    /// Set once the plan is made.
    design: OnceLock<AbDesign>,
}

/// How the cells of a plan are compared.
pub(super) struct AbDesign {
    pub(super) test: SequentialTest,
    /// The metrics of each case: the primary ones that all its variants have.
    pub(super) metrics: BTreeMap<String, Vec<ComparedMetric>>,
    pub(super) sampling: Sampling,
}

/// The variants of a case while they are measured.
struct ActiveCase<'a> {
    variants: Vec<&'a ActiveCell>,
    metrics: &'a [ComparedMetric],
    /// The number of rounds that each variant has measured which needs more by itself.
    open_rounds: Vec<u32>,
    /// The variant that takes no more samples, although it has too few, and why.
    ended_early: Option<(String, String)>,
}

impl AbStoppingRule {
    pub(super) fn new(variant_params: Vec<String>) -> Self {
        Self { variant_params, design: OnceLock::new() }
    }

    /// The case of a cell without the parameters that variants change.
    pub(super) fn case(&self, cell: &CellId) -> Case {
        self.variant_params.iter().fold(cell.case.clone(), |case, name| case.without(name))
    }

    /// Sets what decides.
    pub(super) fn set_design(&self, design: AbDesign) {
        // Plans are made once; a second one would be equal.
        let _ = self.design.set(design);
    }

    /// What decides, once set.
    pub(super) fn design(&self) -> Option<&AbDesign> {
        self.design.get()
    }

    /// Decides about the next sample of a cell.
    pub(super) fn decide(&self, cells: &[ActiveCell], at: usize) -> StoppingDecision {
        let Some(AbDesign { test, metrics, sampling }) = self.design() else { return StoppingDecision::Continue };
        let mut by_case: BTreeMap<String, Vec<&ActiveCell>> = BTreeMap::new();
        for cell in cells {
            by_case.entry(self.case(&cell.planned.id).to_string()).or_default().push(cell);
        }
        let name = self.case(&cells[at].planned.id).to_string();
        let own = by_case.keys().position(|case| *case == name).unwrap_or_default();
        let cases = by_case.into_iter().map(|(case, variants)| {
            let metrics = metrics.get(&case).map_or(&[][..], Vec::as_slice);
            ActiveCase::new(variants, metrics, test.max_blocks(), sampling)
        });
        let cases: Vec<ActiveCase<'_>> = cases.collect();
        let blocks: Vec<CaseBlocks> = cases.iter().map(ActiveCase::blocks).collect();
        // Invalid samples are reported when the result is evaluated.
        let Ok(states) = test.states(&blocks) else { return StoppingDecision::Continue };
        if let (StoppingState::Decided, blocks) = states[own] {
            return StoppingDecision::Finish(format!("decided after {}", pluralize(blocks, "block")));
        }
        if let Some((variant, reason)) = &cases[own].ended_early {
            return StoppingDecision::Finish(format!("the variant {variant} has ended: {reason}"));
        }
        // Rounds are the same for all cells also after an interruption.
        let undecided = cases
            .iter()
            .zip(&states)
            .filter(|(case, (state, _))| *state != StoppingState::Decided && case.ended_early.is_none());
        let fewest = undecided.flat_map(|(case, _)| &case.open_rounds).min();
        match (rounds(&cells[at], sampling), fewest) {
            (Some(rounds), Some(fewest)) if rounds > *fewest => StoppingDecision::Wait,
            _ => StoppingDecision::Continue,
        }
    }
}

impl<'a> ActiveCase<'a> {
    fn new(
        variants: Vec<&'a ActiveCell>,
        metrics: &'a [ComparedMetric],
        max_blocks: usize,
        sampling: &Sampling,
    ) -> Self {
        let open_rounds = variants.iter().filter_map(|cell| rounds(cell, sampling)).collect();
        // A variant with all its samples has not ended early; the others get theirs in the same round.
        let mut unfinished = variants.iter().filter(|cell| counted(cell, metrics) < max_blocks);
        let ended_early = unfinished.find_map(|cell| match cell.next(sampling) {
            NextStep::Finish(reason) => Some((cell.planned.id.serial.to_string(), reason)),
            NextStep::Attempt(..) if cell.is_ended() => {
                Some((cell.planned.id.serial.to_string(), "it cannot be measured any more".to_owned()))
            }
            NextStep::Attempt(..) => None,
        });
        Self { variants, metrics, open_rounds, ended_early }
    }

    fn blocks(&self) -> CaseBlocks {
        let metric = |metric: &ComparedMetric| {
            let values: Vec<Vec<(u32, f64)>> = self.variants.iter().map(|cell| counted_values(cell, metric)).collect();
            let blocks = complete_blocks(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
            MetricBlocks { direction: metric.direction, blocks }
        };
        let open_rounds = self.open_rounds.iter().min().copied();
        let metrics = self.metrics.iter().map(metric).collect();
        CaseBlocks { metrics, open_rounds: open_rounds.filter(|_| self.ended_early.is_none()) }
    }
}

/// The number of rounds that a cell has measured; `None` if it takes no more samples by itself.
fn rounds(cell: &ActiveCell, sampling: &Sampling) -> Option<u32> {
    match cell.next(sampling) {
        NextStep::Attempt(..) if cell.is_ended() => None,
        NextStep::Attempt(Purpose::Sample, number) => Some(number),
        NextStep::Attempt(..) => Some(0),
        NextStep::Finish(_) => None,
    }
}

/// The valid values of a metric of a cell, with their sample numbers.
fn counted_values(cell: &ActiveCell, metric: &ComparedMetric) -> Vec<(u32, f64)> {
    let Some(metric) = cell.definition.metrics.iter().find(|own| own.key() == metric.metric) else { return Vec::new() };
    let value = |evaluated: &wb_study::EvaluatedAttempt| {
        Some((evaluated.attempt.ended.sample, evaluated.valid_sample()?.get(metric)?))
    };
    cell.evaluated.iter().filter_map(value).collect()
}

/// The number of samples of a cell with a value of a metric, of which some may lack others.
fn counted(cell: &ActiveCell, metrics: &[ComparedMetric]) -> usize {
    metrics.iter().map(|metric| counted_values(cell, metric).len()).max().unwrap_or(0)
}
