//! All comparisons of an experiment as one family, analyzed round by round.

use std::collections::BTreeSet;

use wb_model::Direction;
use wb_results::comparison::{AttemptCounts, ConfidenceInterval, NegligibleRatios};
use wb_results::experiment::{StoppingState, VariantResult, VariantVerdict};
use wb_stats::{Interval, benjamini_hochberg, selected_confidence};

use super::evidence::Evidence;
use super::{
    CaseBlocks, CaseResult, FailureComparison, MetricBlocks, MetricResult, Options, SequentialTest, VariantAttempts,
    log_ratio, verdict_of_ratio,
};

pub(super) struct Family<'a> {
    test: &'a SequentialTest,
    negligible: NegligibleRatios,
    cases: Vec<FamilyCase<'a>>,
}

struct FamilyCase<'a> {
    open_rounds: Option<u32>,
    metrics: Vec<FamilyMetric<'a>>,
    ended: &'a BTreeSet<usize>,
    attempts: &'a [VariantAttempts],
    /// Analyzed so far.
    rounds: u32,
    is_stopped: bool,
}

struct FamilyMetric<'a> {
    samples: &'a MetricBlocks,
    /// The evidence on each variant but the first.
    evidence: Vec<Evidence>,
}

struct FamilyResult {
    /// Adjusted p-values, by comparison.
    differences: Vec<f64>,
    equivalences: Vec<f64>,
    /// Of the intervals of variants that differ, and of equivalent ones.
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
            attempts: &case.attempts,
            rounds: 0,
            is_stopped: false,
        };
        let negligible = NegligibleRatios::new(test.options.threshold);
        let mut family = Self { test, negligible, cases: cases.iter().map(case).collect() };
        let metrics = cases.iter().flat_map(|case| &case.metrics);
        let with_blocks = metrics.filter_map(|metric| metric.blocks.last_key_value()).map(|(round, _)| *round + 1);
        let with_attempts = cases.iter().flat_map(|case| &case.attempts).map(|attempts| attempts.rounds);
        for round in 0..with_blocks.chain(with_attempts).max().unwrap_or(1) {
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
        for case in self.cases.iter_mut().filter(|case| !case.is_stopped) {
            case.rounds = round + 1;
        }
        let running = self.cases.iter_mut().filter(|case| !case.is_stopped);
        for metric in running.flat_map(|case| &mut case.metrics) {
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
        let decided = self.are_decided(|it, limits| it.is_open(limits, self.test.options.error_rate));
        for (case, is_decided) in self.cases.iter_mut().zip(decided) {
            case.is_stopped |= is_decided;
        }
    }

    /// For each case, whether all variants that did not end early (or all, if none is left) have a verdict in all
    /// metrics, and no comparison of failures is open. That depends on how many attempts each will make: none if it
    /// ended.
    fn are_decided(&self, is_open: impl Fn(&FailureComparison, [Option<u32>; 2]) -> bool) -> Vec<bool> {
        let mut verdicts = self.verdicts(&self.result()).into_iter();
        let mut failures = self.failures().into_iter();
        let case = |case: &FamilyCase<'_>| {
            let is_compared: Vec<bool> = (1..self.test.variants).map(|variant| case.is_compared(variant)).collect();
            let count = case.metrics.len() * is_compared.len();
            let of_variants = verdicts.by_ref().take(count).zip(is_compared.iter().cycle());
            let undecided: Vec<bool> = of_variants
                .filter(|(verdict, _)| *verdict == VariantVerdict::Inconclusive)
                .map(|(_, is_compared)| *is_compared)
                .collect();
            let limit = case.expected_rounds(self.test.options.max_blocks);
            let limits =
                |variant: usize| [0, variant].map(|position| (!case.ended.contains(&position)).then_some(limit));
            let of_failures: Vec<_> = failures.by_ref().take(is_compared.len()).collect();
            let has_open_failures = (1..).zip(&of_failures).any(|(variant, failures)| {
                failures.as_ref().is_some_and(|failures| is_open(failures, limits(variant)))
            });
            (undecided.is_empty() || is_compared.contains(&true) && !undecided.contains(&true)) && !has_open_failures
        };
        self.cases.iter().map(case).collect()
    }

    /// The comparisons of failed attempts, of each variant but the first of each case.
    fn failures(&self) -> Vec<Option<FailureComparison>> {
        let of_case = |case: &FamilyCase<'_>| {
            let counts = |variant: usize| match (case.attempts.first(), case.attempts.get(variant)) {
                (Some(first), Some(other)) => VariantAttempts::compared([first, other], case.rounds),
                _ => Default::default(),
            };
            (1..self.test.variants).map(counts).collect::<Vec<[AttemptCounts; 2]>>()
        };
        let pairs: Vec<[AttemptCounts; 2]> = self.cases.iter().flat_map(of_case).collect();
        FailureComparison::compare_all(&pairs, self.test.options.error_rate)
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
                Some(ratio) => verdict_of_ratio(ratio, direction),
                None => VariantVerdict::Inconclusive,
            }
        };
        self.evidence().zip(directions).zip(adjusted).map(verdict).collect()
    }

    pub(super) fn states(&self) -> Vec<(StoppingState, usize)> {
        let Options { max_blocks, error_rate, .. } = self.test.options;
        let decided = self.are_decided(|it, limits| it.is_open(limits, error_rate));
        // Without more blocks, what is significant is decided.
        let decided_at_end =
            self.are_decided(|it, limits| it.is_undecided(error_rate) && it.is_open(limits, error_rate));
        let failures = self.failures();
        let of_cases = self.cases.iter().zip(failures.chunks(self.test.variants - 1));
        let state = |((case, failures), (is_decided, at_end)): ((&FamilyCase<'_>, &[_]), (bool, bool))| {
            let is_open = case.is_open(max_blocks) || case.has_failures_to_decide(failures, max_blocks, error_rate);
            let state = match (is_decided, is_open) {
                (true, _) => StoppingState::Decided,
                (false, true) => StoppingState::Continue,
                (false, false) if at_end => StoppingState::Decided,
                (false, false) => StoppingState::AtLimit,
            };
            (state, case.blocks())
        };
        of_cases.zip(decided.into_iter().zip(decided_at_end)).map(state).collect()
    }

    pub(super) fn results(&self) -> Vec<CaseResult> {
        let family = self.result();
        let verdicts = self.verdicts(&family);
        let variant = |evidence: &Evidence, index: usize| {
            let error = match verdicts[index] {
                VariantVerdict::Equivalent => family.error_of_equivalence,
                _ => family.error_of_difference,
            };
            let interval = evidence.interval(&self.test.sequential, error);
            // As if its own difference were relevant.
            let mut differences = self.relevant_differences();
            differences[index] = evidence.difference;
            let adjusted = benjamini_hochberg(&differences, self.test.options.error_rate).adjusted[index];
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
                verdict: verdicts[index],
            }
        };
        let mut index = 0..;
        let mut metric = |metric: &FamilyMetric<'_>| MetricResult {
            blocks: metric.blocks(),
            variants: metric
                .evidence
                .iter()
                .zip(index.by_ref())
                .map(|(evidence, index)| variant(evidence, index))
                .collect(),
        };
        let case = |(case, (state, _)): (&FamilyCase<'_>, (StoppingState, usize))| CaseResult {
            state,
            metrics: case.metrics.iter().map(&mut metric).collect(),
        };
        self.cases.iter().zip(self.states()).map(case).collect()
    }
}

impl FamilyCase<'_> {
    fn blocks(&self) -> usize {
        self.metrics.iter().map(FamilyMetric::blocks).max().unwrap_or(0)
    }

    /// Whether a variant, which is not the first, is still measured.
    fn is_compared(&self, variant: usize) -> bool {
        !self.ended.contains(&0) && !self.ended.contains(&variant)
    }

    /// Rounds until every variant that is still measured has the most blocks, if the share of failures stays as it is.
    fn expected_rounds(&self, max_blocks: usize) -> u32 {
        let variants = self.metrics.first().map_or(0, |metric| metric.evidence.len());
        let compared = (0..variants).filter(|index| self.is_compared(index + 1));
        let fewest =
            compared.filter_map(|index| self.metrics.iter().map(|metric| metric.evidence[index].blocks()).max()).min();
        match fewest {
            Some(blocks @ 1..) => self.rounds.max((self.rounds as usize * max_blocks / blocks) as u32),
            _ => max_blocks as u32,
        }
    }

    /// Whether attempts of the others can decide about failures of ended variants, though they form no block with them.
    fn has_failures_to_decide(
        &self,
        failures: &[Option<FailureComparison>],
        max_blocks: usize,
        error_rate: f64,
    ) -> bool {
        let limit = |position: usize| {
            let has_more = self.attempts.get(position).is_some_and(|attempts| (attempts.rounds as usize) < max_blocks);
            (has_more && !self.ended.contains(&position)).then_some(max_blocks as u32)
        };
        let is_open = |(variant, failures): (usize, &Option<FailureComparison>)| {
            !self.is_compared(variant)
                && failures.is_some_and(|failures| failures.is_open([limit(0), limit(variant)], error_rate))
        };
        (1..).zip(failures).any(is_open)
    }

    /// Whether a variant can have another block, in the metric with the most.
    fn is_open(&self, max_blocks: usize) -> bool {
        let blocks = |index: usize| self.metrics.iter().map(move |metric| metric.evidence[index].blocks()).max();
        let variants = self.metrics.first().map_or(0, |metric| metric.evidence.len());
        (0..variants)
            .any(|index| self.is_compared(index + 1) && blocks(index).is_some_and(|blocks| blocks < max_blocks))
    }
}

impl FamilyMetric<'_> {
    fn blocks(&self) -> usize {
        self.evidence.iter().map(Evidence::blocks).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// The error rate of the options.
    const RATE: f64 = 0.05;

    /// Measures two variants with equal figures and these shares of failed attempts until they are decided. Returns the
    /// number of rounds, and the comparison of the failures at that time.
    fn measure(test: &SequentialTest, shares: [f64; 2], seed: u64) -> (u32, Option<FailureComparison>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut blocks = BTreeMap::new();
        let mut attempts: [Vec<bool>; 2] = Default::default();
        for round in 0..3 * test.max_blocks() as u32 {
            let failed = shares.map(|share| rng.random_bool(share));
            let figure =
                |index: usize| Some(1000.0 + f64::from(round * 7 % 5) + index as f64).filter(|_| !failed[index]);
            blocks.insert(round, vec![figure(0), figure(1)]);
            (0..2).for_each(|index| attempts[index].push(failed[index]));
        }
        let case = CaseBlocks {
            metrics: vec![MetricBlocks { direction: Direction::Lower, blocks }],
            attempts: attempts.map(VariantAttempts::of_rounds).to_vec(),
            ..CaseBlocks::default()
        };
        let cases = [case];
        let family = Family::analyze(test, &cases);
        (family.cases[0].rounds, family.failures()[0])
    }

    fn rises(comparison: Option<FailureComparison>) -> bool {
        comparison.is_some_and(|it| it.is_higher() && it.adjusted <= RATE)
    }

    /// Although failures are looked at after each round.
    #[test]
    fn of_variants_that_fail_equally_often_few_are_reported_to_fail_more() {
        let test = SequentialTest::new(1, 2, Options::default()).unwrap();
        for share in [0.03, 0.1, 0.3, 0.5, 0.7] {
            let rose = (0..1000).filter(|seed| rises(measure(&test, [share; 2], *seed).1)).count();
            assert!(rose <= 50, "{share}: {rose} of 1000");
        }
    }

    #[test]
    fn sampling_goes_on_until_more_frequent_failures_are_decided() {
        let test = SequentialTest::new(1, 2, Options::default()).unwrap();
        for shares in [[0.0, 1.0 / 3.0], [0.1, 0.6]] {
            let all: Vec<_> = (0..200).map(|seed| measure(&test, shares, seed)).collect();
            let rose = all.iter().filter(|(_, comparison)| rises(*comparison)).count();
            let rounds = all.iter().map(|(rounds, _)| f64::from(*rounds)).sum::<f64>() / 200.0;
            assert!(rose >= 170 && (18.0..40.0).contains(&rounds), "{shares:?}: {rose}, {rounds} rounds");
            // Of the others, few attempts had failed by chance when the figures were decided.
            let others = all.iter().filter(|(_, comparison)| !rises(*comparison));
            let mut others = others.filter_map(|(_, comparison)| *comparison);
            assert!(others.all(|it| !it.is_higher() || it.is_undecided(RATE)), "{shares:?}");
        }
        // A failure now and then is nothing that thirty blocks could decide.
        let mean =
            |shares: [f64; 2]| (0..200).map(|seed| f64::from(measure(&test, shares, seed).0)).sum::<f64>() / 200.0;
        let (none, seldom) = (mean([0.0; 2]), mean([0.0, 0.03]));
        assert!(seldom < none + 3.0, "{seldom} {none}");
    }
}
