//! Sequential stopping rule of `ab`: ends the sampling of a case once its comparisons are decided.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use wb_compare::experiment::{attempt_rounds, blocks_by_round, left_behind};
use wb_compare::sequential_test::{CaseBlocks, MetricBlocks, SequentialTest, VariantAttempts};
use wb_model::{AttemptOutcome, AttemptPurpose, Case, CellId, pluralize};
use wb_plan::Sampling;
use wb_results::experiment::{ComparedMetric, StoppingState};
use wb_run::StoppingDecision;
use wb_run::active_cell::{ActiveCell, NextStep};

use super::criterion::{round_attempts, takes_turn};

/// Stops the sampling of variants as soon as their comparisons are decided. All cases are measured in rounds and are one
/// family, so that each decision depends on the samples of all of them.
pub(super) struct AbStoppingRule {
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

struct ActiveCase<'a> {
    variants: Vec<ActiveVariant<'a>>,
    metrics: &'a [ComparedMetric],
}

struct ActiveVariant<'a> {
    cell: &'a ActiveCell,
    /// Its attempts in the rounds in which it had its turn.
    attempts: VariantAttempts,
    /// Why it takes no more samples, although it may have too few.
    ended: Option<String>,
}

impl AbStoppingRule {
    pub(super) fn new(variant_params: Vec<String>) -> Self {
        Self { variant_params, design: OnceLock::new() }
    }

    /// The case of a cell without the parameters that variants change.
    pub(super) fn case(&self, cell: &CellId) -> Case {
        self.variant_params.iter().fold(cell.case.clone(), |case, name| case.without(name))
    }

    pub(super) fn set_design(&self, design: AbDesign) {
        // Plans are made once; a second one would be equal.
        let _ = self.design.set(design);
    }

    pub(super) fn design(&self) -> Option<&AbDesign> {
        self.design.get()
    }

    pub(super) fn decide(&self, cells: &[ActiveCell], index: usize) -> StoppingDecision {
        let Some(AbDesign { test, metrics, sampling }) = self.design() else { return StoppingDecision::Continue };
        // It replays all analyses round by round from the samples alone, so a resumed run ends where it would have
        // ended. Cells that are ahead wait, since all cases are one family.
        let mut by_case: BTreeMap<String, Vec<&ActiveCell>> = BTreeMap::new();
        for cell in cells {
            by_case.entry(self.case(&cell.planned.id).to_string()).or_default().push(cell);
        }
        let name = self.case(&cells[index].planned.id).to_string();
        let own = by_case.keys().position(|case| *case == name).unwrap_or_default();
        let cases = by_case.into_iter().map(|(case, cells)| {
            let metrics = metrics.get(&case).map_or(&[][..], Vec::as_slice);
            ActiveCase::new(cells, metrics, sampling)
        });
        let mut cases: Vec<ActiveCase<'_>> = cases.collect();
        let states = |cases: &[ActiveCase<'_>]| {
            let blocks: Vec<CaseBlocks> = cases.iter().map(ActiveCase::blocks).collect();
            // Reported again when the result is evaluated; more samples change nothing.
            test.states(&blocks).map_err(|invalid| StoppingDecision::Finish(invalid.to_string()))
        };
        let states = states(&cases).and_then(|found| {
            let undecided = cases.iter_mut().zip(&found).filter(|(_, (state, _))| *state == StoppingState::Continue);
            let is_changed = undecided.fold(false, |changed, (case, _)| case.end_lost_variants() | changed);
            if is_changed { states(&cases) } else { Ok(found) }
        });
        let states = match states {
            Ok(states) => states,
            Err(decision) => return decision,
        };
        match states[own] {
            (StoppingState::Decided, blocks) => {
                return StoppingDecision::Finish(format!("decided after {}", pluralize(blocks, "block")));
            }
            (StoppingState::AtLimit, blocks) if cases[own].reason_to_end().is_none() => {
                return StoppingDecision::Finish(format!("not decided after {}", pluralize(blocks, "block")));
            }
            (StoppingState::AtLimit | StoppingState::Continue, _) => {}
        }
        let variant = cases[own].variants.iter().find(|variant| std::ptr::eq(variant.cell, &cells[index]));
        let Some(variant) = variant else { return StoppingDecision::Continue };
        // Attempts of those that are left can still decide about the failures of those that ended.
        let reason_of_case = || cases[own].reason_to_end().filter(|_| states[own].0 != StoppingState::Continue);
        if let Some(reason) = variant.ended.as_ref().or_else(reason_of_case) {
            return StoppingDecision::Finish(reason.clone());
        }
        // As many attempts at each sample as its cell may make, whatever of the others fails.
        let limit = test.max_blocks() as u32 * sampling.attempts;
        if let Some(rounds) = cases[own].open_rounds().filter(|rounds| *rounds >= limit) {
            return StoppingDecision::Finish(format!("not decided after {}", pluralize(rounds as usize, "round")));
        }
        // Rounds are the same for all cells also after an interruption.
        let undecided = cases.iter().zip(&states).filter(|(_, (state, _))| *state == StoppingState::Continue);
        match undecided.filter_map(|(case, _)| case.open_rounds()).min() {
            Some(fewest) if variant.attempts.rounds > fewest => StoppingDecision::Wait,
            _ => StoppingDecision::Continue,
        }
    }
}

impl<'a> ActiveCase<'a> {
    fn new(cells: Vec<&'a ActiveCell>, metrics: &'a [ComparedMetric], sampling: &Sampling) -> Self {
        let attempts: Vec<VariantAttempts> = cells.iter().map(|cell| round_attempts(outcomes(cell))).collect();
        let left_behind = left_behind(&attempts.iter().map(|attempts| attempts.rounds).collect::<Vec<_>>());
        let variant = |(index, (cell, attempts)): (usize, (&'a ActiveCell, VariantAttempts))| {
            let name = &cell.planned.id.serial;
            let reason = match cell.next(sampling) {
                NextStep::Finish(reason) => Some(reason),
                NextStep::Attempt(..) if left_behind.contains(&index) => {
                    Some("it ended in an earlier invocation, and the others were measured without it".to_owned())
                }
                NextStep::Attempt(..) => None,
            };
            let ended = reason.map(|reason| format!("the variant {name} has ended: {reason}"));
            ActiveVariant { cell, attempts, ended }
        };
        Self { variants: cells.into_iter().zip(attempts).enumerate().map(variant).collect(), metrics }
    }

    /// Ends the variants that take no more samples, although they could and the case is undecided: their worker is lost.
    /// Returns whether there are any.
    fn end_lost_variants(&mut self) -> bool {
        let lost = self.variants.iter_mut().filter(|variant| variant.cell.is_ended() && variant.ended.is_none());
        let ended = lost.map(|variant| {
            let name = &variant.cell.planned.id.serial;
            variant.ended = Some(format!("the variant {name} has ended: it cannot be measured any more"));
        });
        ended.count() > 0
    }

    /// Why no more blocks are taken, if so: the first variant has ended, or all others.
    fn reason_to_end(&self) -> Option<&String> {
        let (first, others) = self.variants.split_first()?;
        let of_others = || others.iter().map(|variant| variant.ended.as_ref()).reduce(Option::and).flatten();
        first.ended.as_ref().or_else(of_others)
    }

    /// The number of rounds that every variant in need of more has measured; `None` if none needs more.
    fn open_rounds(&self) -> Option<u32> {
        let open = self.variants.iter().filter(|variant| variant.ended.is_none() && self.reason_to_end().is_none());
        open.map(|variant| variant.attempts.rounds).min()
    }

    fn blocks(&self) -> CaseBlocks {
        let metric = |metric: &ComparedMetric| {
            let values: Vec<Vec<(u32, f64)>> =
                self.variants.iter().map(|variant| counted_values(variant.cell, metric)).collect();
            let blocks = blocks_by_round(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
            MetricBlocks { direction: metric.direction, blocks }
        };
        let ended = (0..).zip(&self.variants).filter(|(_, variant)| variant.ended.is_some()).map(|(index, _)| index);
        CaseBlocks {
            metrics: self.metrics.iter().map(metric).collect(),
            open_rounds: self.open_rounds(),
            ended: ended.collect(),
            attempts: self.variants.iter().map(|variant| variant.attempts.clone()).collect(),
        }
    }
}

fn outcomes(cell: &ActiveCell) -> impl Iterator<Item = (AttemptPurpose, &AttemptOutcome)> + Clone {
    cell.evaluated.iter().map(|evaluated| (evaluated.attempt.ended.purpose, &evaluated.attempt.ended.outcome))
}

/// For each attempt of a cell, whether it takes its turn in a round.
fn turns(cell: &ActiveCell) -> impl Iterator<Item = bool> {
    outcomes(cell).map(|(purpose, outcome)| takes_turn(purpose, outcome))
}

/// The valid values of a metric, with their rounds.
fn counted_values(cell: &ActiveCell, metric: &ComparedMetric) -> Vec<(u32, f64)> {
    let Some(metric) = cell.definition.metrics.iter().find(|own| own.key() == metric.metric) else { return Vec::new() };
    let by_round = attempt_rounds(turns(cell)).zip(&cell.evaluated);
    by_round.filter_map(|(round, evaluated)| Some((round, evaluated.valid_sample()?.get(metric)?))).collect()
}
