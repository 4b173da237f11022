//! All comparisons of an experiment as one family, analyzed round by round.

use std::collections::BTreeSet;

use wb_model::Direction;
use wb_stats::{Interval, benjamini_hochberg, selected_confidence};

use super::evidence::Evidence;
use super::{
    CaseBlocks, CaseResult, MetricBlocks, MetricResult, SequentialTest, StoppingState, VariantResult, VariantVerdict,
    log_ratio,
};
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
    open_rounds: Option<u32>,
    metrics: Vec<FamilyMetric<'a>>,
    ended: &'a BTreeSet<usize>,
    is_stopped: bool,
}

/// A metric of a case.
struct FamilyMetric<'a> {
    samples: &'a MetricBlocks,
    /// Of each variant but the first.
    evidence: Vec<Evidence>,
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
        let metric = |samples| FamilyMetric { samples, evidence: vec![Evidence::default(); test.variants - 1] };
        let case = |case: &'a CaseBlocks| FamilyCase {
            open_rounds: case.open_rounds,
            metrics: case.metrics.iter().map(metric).collect(),
            ended: &case.ended,
            is_stopped: false,
        };
        let negligible = NegligibleRatios::new(test.options.threshold);
        let mut family = Self { test, negligible, cases: cases.iter().map(case).collect() };
        let metrics = cases.iter().flat_map(|case| &case.metrics);
        let last = metrics.filter_map(|metric| metric.blocks.last_key_value()).map(|(round, _)| *round).max();
        for round in 0..=last.unwrap_or(0) {
            if family.running().any(|case| case.open_rounds.is_some_and(|rounds| rounds <= round)) {
                break;
            }
            family.take_round(round);
        }
        family
    }

    fn running(&self) -> impl Iterator<Item = &FamilyCase<'a>> {
        let max_blocks = self.test.options.max_blocks;
        self.cases.iter().filter(move |case| !case.is_stopped && case.is_open(max_blocks))
    }

    fn take_round(&mut self, round: u32) {
        let max_blocks = self.test.options.max_blocks;
        let running = self.cases.iter_mut().filter(|case| !case.is_stopped);
        let metrics = running.flat_map(|case| &mut case.metrics);
        for metric in metrics {
            let Some([Some(first), others @ ..]) = metric.samples.blocks.get(&round).map(Vec::as_slice) else {
                continue;
            };
            let open = metric.evidence.iter_mut().zip(others).filter(|(evidence, _)| evidence.blocks() < max_blocks);
            for (evidence, sample) in open {
                let Some(sample) = sample else { continue };
                let log_ratio = log_ratio(*first, *sample).expect("all blocks have been checked");
                evidence.push(log_ratio, &self.test.sequential, self.negligible);
            }
        }
        let decided = self.are_decided();
        for (case, is_decided) in self.cases.iter_mut().zip(decided) {
            case.is_stopped |= is_decided;
        }
    }

    /// For each case, whether all its variants that did not end early have a verdict in all its metrics; if none is left, all.
    fn are_decided(&self) -> Vec<bool> {
        let mut verdicts = self.verdicts(&self.result()).into_iter();
        let case = |case: &FamilyCase<'_>| {
            let is_open: Vec<bool> = (1..self.test.variants).map(|variant| case.is_compared(variant)).collect();
            let count = case.metrics.len() * is_open.len();
            let of_variants = verdicts.by_ref().take(count).zip(is_open.iter().cycle());
            let undecided: Vec<bool> = of_variants
                .filter(|(verdict, _)| *verdict == VariantVerdict::Inconclusive)
                .map(|(_, is_open)| *is_open)
                .collect();
            undecided.is_empty() || is_open.contains(&true) && !undecided.contains(&true)
        };
        self.cases.iter().map(case).collect()
    }

    fn metrics(&self) -> impl Iterator<Item = &FamilyMetric<'a>> {
        self.cases.iter().flat_map(|case| &case.metrics)
    }

    fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.metrics().flat_map(|metric| &metric.evidence)
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
        let directions = self.metrics().flat_map(|metric| metric.evidence.iter().map(|_| metric.samples.direction));
        let verdict = |((evidence, direction), (difference, equivalence)): ((&Evidence, Direction), (&f64, &f64))| {
            if *equivalence <= error_rate {
                return VariantVerdict::Equivalent;
            }
            let ratio = if *difference <= error_rate { evidence.ratio() } else { None };
            match ratio.filter(|ratio| !self.negligible.contains(*ratio)) {
                Some(ratio) => VariantVerdict::of_ratio(ratio, direction),
                None => VariantVerdict::Inconclusive,
            }
        };
        self.evidence().zip(directions).zip(adjusted).map(verdict).collect()
    }

    /// For each case, whether it needs another block, and the number of evaluated blocks.
    pub(super) fn states(&self) -> Vec<(StoppingState, usize)> {
        let max_blocks = self.test.options.max_blocks;
        let state = |(case, is_decided): (&FamilyCase<'_>, bool)| {
            let state = match (is_decided, case.is_open(max_blocks)) {
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
            // An earlier analysis may have excluded what the last one alone estimates.
            let ratio = evidence.ratio().map(|ratio| interval.map_or(ratio, |it| ratio.clamp(it.low, it.high)));
            let is_shown = |interval: &Interval| interval.high.is_finite() && ratio.is_some_and(|ratio| ratio > 0.0);
            VariantResult {
                blocks: Some(evidence.blocks()),
                ratio: ratio.filter(|ratio| ratio.is_finite() && evidence.has_ratio()),
                interval: interval.filter(is_shown).map(ConfidenceInterval::from),
                p_value: is_analyzed.then_some(evidence.difference),
                adjusted_p_value: is_analyzed.then_some(adjusted),
                verdict: verdicts[at],
            }
        };
        let mut at = 0..;
        let mut metric = |metric: &FamilyMetric<'_>| MetricResult {
            blocks: metric.blocks(),
            variants: metric.evidence.iter().zip(at.by_ref()).map(|(evidence, at)| variant(evidence, at)).collect(),
        };
        let case = |(case, (state, _)): (&FamilyCase<'_>, (StoppingState, usize))| CaseResult {
            state,
            metrics: case.metrics.iter().map(&mut metric).collect(),
        };
        self.cases.iter().zip(self.states()).map(case).collect()
    }
}

impl FamilyCase<'_> {
    /// Those of the metric with the most.
    fn blocks(&self) -> usize {
        self.metrics.iter().map(FamilyMetric::blocks).max().unwrap_or(0)
    }

    /// Whether a variant, which is not the first, is still measured.
    fn is_compared(&self, variant: usize) -> bool {
        !self.ended.contains(&0) && !self.ended.contains(&variant)
    }

    /// Whether a variant can have another block, in the metric with the most.
    fn is_open(&self, max_blocks: usize) -> bool {
        let blocks = |at: usize| self.metrics.iter().map(move |metric| metric.evidence[at].blocks()).max();
        let variants = self.metrics.first().map_or(0, |metric| metric.evidence.len());
        (0..variants).any(|at| self.is_compared(at + 1) && blocks(at).is_some_and(|blocks| blocks < max_blocks))
    }
}

impl FamilyMetric<'_> {
    /// Those of the variant with the most.
    fn blocks(&self) -> usize {
        self.evidence.iter().map(Evidence::blocks).max().unwrap_or(0)
    }
}
