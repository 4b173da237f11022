//! All comparisons of an experiment as one family, analyzed round by round.

use wb_stats::{benjamini_hochberg, selected_confidence};

use super::evidence::Evidence;
use super::{CaseBlocks, CaseResult, SequentialTest, StoppingState, VariantResult, VariantVerdict};
use crate::comparison::ConfidenceInterval;
use crate::statistical::threshold::NegligibleRatios;

/// The comparisons of all cases, after a number of rounds.
pub(super) struct Family<'a> {
    test: &'a SequentialTest,
    negligible: NegligibleRatios,
    cases: Vec<FamilyCase<'a>>,
}

/// A case in the family.
struct FamilyCase<'a> {
    samples: &'a CaseBlocks,
    /// Of each variant but the first.
    evidence: Vec<Evidence>,
    is_stopped: bool,
}

/// What is significant in the family.
struct FamilyResult {
    /// The adjusted p-values of differences and of equivalence, by comparison.
    differences: Vec<f64>,
    equivalences: Vec<f64>,
    /// The error probabilities of the intervals of variants that differ, and of equivalent ones.
    error_of_difference: f64,
    error_of_equivalence: f64,
}

impl<'a> Family<'a> {
    /// Analyzes the family after each round, until all cases are stopped or have no more blocks.
    pub(super) fn analyze(test: &'a SequentialTest, cases: &'a [CaseBlocks]) -> Self {
        let case =
            |samples| FamilyCase { samples, evidence: vec![Evidence::default(); test.variants - 1], is_stopped: false };
        let negligible = NegligibleRatios::new(test.options.threshold);
        let mut family = Self { test, negligible, cases: cases.iter().map(case).collect() };
        let last = cases.iter().filter_map(|case| case.blocks.last_key_value()).map(|(round, _)| *round).max();
        for round in 0..=last.unwrap_or(0) {
            if family.running().any(|case| case.samples.open_rounds.is_some_and(|rounds| rounds <= round)) {
                break;
            }
            family.take_round(round);
        }
        family
    }

    fn running(&self) -> impl Iterator<Item = &FamilyCase<'a>> {
        let max_blocks = self.test.options.max_blocks;
        self.cases.iter().filter(move |case| !case.is_stopped && case.blocks() < max_blocks)
    }

    fn take_round(&mut self, round: u32) {
        let max_blocks = self.test.options.max_blocks;
        for case in self.cases.iter_mut().filter(|case| !case.is_stopped && case.blocks() < max_blocks) {
            let Some(block) = case.samples.blocks.get(&round) else { continue };
            for (evidence, sample) in case.evidence.iter_mut().zip(&block[1..]) {
                evidence.push(sample.ln() - block[0].ln(), &self.test.sequential, self.negligible);
            }
        }
        let decided = self.are_decided();
        for (case, is_decided) in self.cases.iter_mut().zip(decided) {
            case.is_stopped |= is_decided;
        }
    }

    /// For each case, whether all its variants have a verdict.
    fn are_decided(&self) -> Vec<bool> {
        let verdicts = self.verdicts(&self.result());
        let by_case = verdicts.chunks(self.test.variants - 1);
        by_case.map(|verdicts| verdicts.iter().all(|verdict| *verdict != VariantVerdict::Inconclusive)).collect()
    }

    fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.cases.iter().flat_map(|case| &case.evidence)
    }

    fn relevant_differences(&self) -> Vec<f64> {
        self.evidence().map(|one| one.relevant_difference).collect()
    }

    fn result(&self) -> FamilyResult {
        let error_rate = self.test.options.error_rate;
        let differences = self.relevant_differences();
        let equivalences = self.evidence().map(Evidence::equivalence).collect::<Vec<f64>>();
        let [differences, equivalences] = [differences, equivalences].map(|p| benjamini_hochberg(&p, error_rate));
        let error = |count| 1.0 - selected_confidence(error_rate, count, self.test.family());
        FamilyResult {
            error_of_difference: error(differences.count),
            error_of_equivalence: error(equivalences.count),
            differences: differences.adjusted,
            equivalences: equivalences.adjusted,
        }
    }

    fn verdicts(&self, family: &FamilyResult) -> Vec<VariantVerdict> {
        let error_rate = self.test.options.error_rate;
        let adjusted = family.differences.iter().zip(&family.equivalences);
        let verdict = |(evidence, (difference, equivalence)): (&Evidence, (&f64, &f64))| {
            if *equivalence <= error_rate {
                return VariantVerdict::Equivalent;
            }
            let ratio = if *difference <= error_rate { evidence.ratio() } else { None };
            match ratio.filter(|ratio| !self.negligible.contains(*ratio)) {
                Some(ratio) => VariantVerdict::of_ratio(ratio, self.test.options.direction),
                None => VariantVerdict::Inconclusive,
            }
        };
        self.evidence().zip(adjusted).map(verdict).collect()
    }

    /// For each case, whether it needs another block, and the number of evaluated blocks.
    pub(super) fn states(&self) -> Vec<(StoppingState, usize)> {
        let max_blocks = self.test.options.max_blocks;
        let state = |(case, is_decided): (&FamilyCase<'_>, bool)| {
            let state = match (is_decided, case.blocks() < max_blocks) {
                (true, _) => StoppingState::Decided,
                (false, true) => StoppingState::Continue,
                (false, false) => StoppingState::AtLimit,
            };
            (state, case.blocks())
        };
        self.cases.iter().zip(self.are_decided()).map(state).collect()
    }

    /// The results of all cases.
    pub(super) fn results(&self) -> Vec<CaseResult> {
        let family = self.result();
        let verdicts = self.verdicts(&family);
        let others = self.test.variants - 1;
        let variant = |evidence: &Evidence, at: usize| {
            let error = match verdicts[at] {
                VariantVerdict::Equivalent => family.error_of_equivalence,
                _ => family.error_of_difference,
            };
            let interval = evidence.interval(&self.test.sequential, error);
            // As if its own difference were relevant.
            let mut differences = self.relevant_differences();
            differences[at] = evidence.difference;
            let adjusted = benjamini_hochberg(&differences, self.test.options.error_rate).adjusted[at];
            let is_analyzed = interval.is_some();
            VariantResult {
                // An earlier analysis may have excluded what the last one alone estimates.
                ratio: evidence.ratio().map(|ratio| interval.map_or(ratio, |it| ratio.clamp(it.low, it.high))),
                interval: interval.map(ConfidenceInterval::from),
                p_value: is_analyzed.then_some(evidence.difference),
                adjusted_p_value: is_analyzed.then_some(adjusted),
                verdict: verdicts[at],
            }
        };
        let case = |(case, (at, (state, blocks))): (&FamilyCase<'_>, (usize, (StoppingState, usize)))| CaseResult {
            blocks,
            state,
            variants: case.evidence.iter().zip(at * others..).map(|(evidence, at)| variant(evidence, at)).collect(),
        };
        self.cases.iter().zip(self.states().into_iter().enumerate()).map(case).collect()
    }
}

impl FamilyCase<'_> {
    fn blocks(&self) -> usize {
        self.evidence.first().map_or(0, Evidence::blocks)
    }
}
