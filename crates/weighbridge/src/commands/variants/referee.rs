//! Whoever ends the sampling of variants when it is clear how they stand.

use std::sync::OnceLock;

use wb_compare::ab::{Ab, State};
use wb_compare::variants::blocks;
use wb_model::{Case, CellId, counted};
use wb_plan::Sampling;
use wb_run::cells::{Measuring, Next};

/// Which cells are variants of one another, and the rule that decides between them.
pub(super) struct Referee {
    /// The parameters that variants change.
    changed: Vec<String>,
    /// No end before so many blocks.
    min_blocks: usize,
    /// Known when the plan is.
    settled: OnceLock<(Ab, Sampling)>,
}

impl Referee {
    pub(super) fn new(changed: Vec<String>, min_blocks: usize) -> Self {
        Self { changed, min_blocks, settled: OnceLock::new() }
    }

    /// The case of a cell without what variants change in it.
    pub(super) fn case(&self, cell: &CellId) -> Case {
        self.changed.iter().fold(cell.case.clone(), |case, name| case.without(name))
    }

    /// From now on it decides by this rule.
    pub(super) fn settle(&self, rule: Ab, sampling: Sampling) {
        // Plans are made once; a second would be the same.
        let _ = self.settled.set((rule, sampling));
    }

    /// The rule, once it is settled.
    pub(super) fn rule(&self) -> Option<&Ab> {
        self.settled.get().map(|(rule, _)| rule)
    }

    /// Why a cell needs no more samples.
    pub(super) fn enough(&self, cells: &[Measuring], at: usize) -> Option<String> {
        let (rule, sampling) = self.settled.get()?;
        let case = self.case(&cells[at].cell.id);
        let variants: Vec<&Measuring> = cells.iter().filter(|cell| self.case(&cell.cell.id) == case).collect();
        // One that got all its samples is not given up; the others have theirs in the same round.
        let given_up = |cell: &&&Measuring| match cell.next(sampling) {
            Next::Nothing(by) => Some((cell.cell.id.serial.to_string(), by)),
            Next::Attempt(..) => None,
        };
        let fewer = variants.iter().filter(|cell| values(cell).len() < rule.most());
        if let Some((name, by)) = fewer.into_iter().find_map(|cell| given_up(&cell)) {
            return Some(format!("the variant {name} has ended: {by}"));
        }
        let values: Vec<Vec<(u32, f64)>> = variants.iter().map(|cell| values(cell)).collect();
        let blocks = blocks(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let standings = rule.standings(&blocks).ok()?;
        let decided = standings.state == State::Decided && standings.blocks >= self.min_blocks;
        decided.then(|| format!("it is decided after {}", counted(standings.blocks, "block")))
    }
}

/// The samples of a cell that count, by their numbers.
fn values(cell: &Measuring) -> Vec<(u32, f64)> {
    let Some(metric) = cell.definition.metrics.iter().find(|metric| metric.primary) else { return Vec::new() };
    let value =
        |studied: &wb_study::Studied| Some((studied.attempt.ended.sample, studied.valid_sample()?.get(metric)?));
    cell.studied.iter().filter_map(value).collect()
}
