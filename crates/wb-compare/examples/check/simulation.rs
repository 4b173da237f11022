//! Verdicts on simulated sides. Lower is better.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use wb_compare::statistical::group::compare_group;
use wb_compare::statistical::{Options, SampleComparison, Verdict, compare_samples};
use wb_model::Direction;

use super::page::Rows;
use super::populations::{Population, normal};

/// Runs on each side.
const COUNTS: [usize; 4] = [1, 2, 4, 8];
/// Standard deviations of the logarithms of runs.
const BETWEEN: [f64; 4] = [0.0, 0.02, 0.05, 0.1];
/// The true changes that are to be found.
pub(crate) const CHANGES: [f64; 6] = [0.025, 0.05, 0.1, 0.15, 0.2, 0.29];
/// Samples of a run in the first table, and their noise.
const SAMPLES: usize = 10;
const SPREAD: f64 = 0.02;
/// Samples of the run of each side in the second table, and the scale of their noise.
const SHAPE_COUNTS: [[usize; 2]; 3] = [[10; 2], [36; 2], [7, 40]];
const SHAPE_SPREAD: f64 = 0.05;
/// Samples of a run in the third table.
const DEPENDENT_SAMPLES: [usize; 2] = [10, 36];
/// The correlation of a sample with the one before.
const CORRELATIONS: [f64; 2] = [0.5, 0.9];
/// The share of samples that are zero, and that of samples that are doubled.
const ZEROS: f64 = 0.2;
const DOUBLED: f64 = 0.25;
/// The scales of the noise in the third table, and the change that is not equal.
const DEPENDENT_SPREADS: [f64; 2] = [0.02, 0.05];
const UNEQUAL: f64 = 0.05;
/// The number of checks in a group of the fifth table, its tolerance in percent, and the changes that are to be found.
const GROUP_CHECKS: usize = 10;
const GROUP_TOLERANCE: f64 = 2.5;
pub(crate) const GROUP_CHANGES: [f64; 3] = [0.04, 0.1, 0.2];
/// Comparisons of each kind in the five tables.
const REPETITIONS: [usize; 5] = [1000, 400, 1000, 2000, 1000];
/// The numbers of samples of the runs of both sides in the fourth table, and the scale of their noise.
const FEW: [[&[usize]; 2]; 10] = [
    [&[1], &[1]],
    [&[1; 2], &[1; 2]],
    [&[1; 4], &[1; 4]],
    [&[1; 8], &[1; 8]],
    [&[1; 4], &[1]],
    [&[10], &[1]],
    [&[10], &[1; 4]],
    [&[2; 2], &[2; 2]],
    [&[3], &[3]],
    [&[5], &[5]],
];
const FEW_SPREADS: [f64; 2] = [0.02, 0.3];
/// The changes that are to be found in the fourth table.
pub(crate) const LARGE_CHANGES: [f64; 3] = [0.1, 0.3, 1.0];
const SEED: u64 = 8;

/// How the samples of a run are drawn.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Population(Population),
    /// AR(1) with normal noise.
    Dependent(f64),
    /// Normal, but each sample is zero with this probability.
    WithZeros(f64),
    /// Normal, but each sample is doubled with this probability.
    WithDoubled(f64),
}

impl Shape {
    const ALL: [Self; 9] = [
        Self::Population(Population::Normal),
        Self::Population(Population::LogNormal),
        Self::Population(Population::T3),
        Self::Population(Population::Uneven),
        Self::Population(Population::Even),
        Self::Dependent(CORRELATIONS[0]),
        Self::Dependent(CORRELATIONS[1]),
        Self::WithZeros(ZEROS),
        Self::WithDoubled(DOUBLED),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Population(population) => population.name().to_owned(),
            Self::Dependent(correlation) => format!("normal, correlation of neighbours {correlation}"),
            Self::WithZeros(share) => format!("normal, {:.0} % zeros", share * 100.0),
            Self::WithDoubled(share) => format!("normal, {:.0} % doubled", share * 100.0),
        }
    }

    fn draw(self, rng: &mut ChaCha8Rng, samples: usize, spread: f64) -> Vec<f64> {
        match self {
            Self::Population(population) => (0..samples).map(|at| population.draw(rng, spread, at, samples)).collect(),
            Self::Dependent(correlation) => {
                let mut state = normal(rng);
                let innovation = (1.0 - correlation * correlation).sqrt();
                let mut next = || {
                    state = correlation * state + innovation * normal(rng);
                    100.0 * (1.0 + spread * state)
                };
                (0..samples).map(|_| next()).collect()
            }
            Self::WithZeros(share) => {
                let mut next = || if rng.random_bool(share) { 0.0 } else { 100.0 * (1.0 + spread * normal(rng)) };
                (0..samples).map(|_| next()).collect()
            }
            Self::WithDoubled(share) => {
                let mut next = || {
                    let factor = if rng.random_bool(share) { 2.0 } else { 1.0 };
                    factor * 100.0 * (1.0 + spread * normal(rng))
                };
                (0..samples).map(|_| next()).collect()
            }
        }
    }
}

/// The verdicts on sides of one kind; fractions of comparisons.
pub(crate) struct Row {
    pub(crate) shape: Shape,
    /// Of a run of each side.
    pub(crate) samples: [usize; 2],
    pub(crate) between: f64,
    pub(crate) runs: usize,
    /// Verdicts on equal sides.
    pub(crate) regressed: f64,
    pub(crate) improved: f64,
    pub(crate) unconfirmed: f64,
    pub(crate) equivalent: f64,
    /// Regressed, for each of [`CHANGES`].
    pub(crate) found: [f64; CHANGES.len()],
}

/// Normal samples, for every number of runs and every noise between them.
pub(crate) fn of_runs(rows: Rows) -> Vec<Row> {
    let kinds = rows.of(BETWEEN.iter().flat_map(|between| COUNTS.map(|runs| (*between, runs))));
    let shape = Shape::Population(Population::Normal);
    kinds
        .into_par_iter()
        .map(|(between, runs)| row(shape, [SAMPLES; 2], REPETITIONS[0], SPREAD, between, runs))
        .collect()
}

/// One run a side with samples of every shape, without noise between runs and with as much as is assumed.
pub(crate) fn of_shapes(rows: Rows) -> Vec<Row> {
    let kinds = Shape::ALL.into_iter().flat_map(|shape| SHAPE_COUNTS.map(|samples| (shape, samples)));
    let kinds = kinds.flat_map(|(shape, samples)| [0.0, 0.05].map(|between| (shape, samples, between)));
    rows.of(kinds)
        .into_par_iter()
        .map(|(shape, samples, between)| row(shape, samples, REPETITIONS[1], SHAPE_SPREAD, between, 1))
        .collect()
}

/// The verdicts on sides whose samples depend on those before them; fractions of comparisons.
pub(crate) struct DependentRow {
    pub(crate) correlation: f64,
    pub(crate) samples: usize,
    pub(crate) spread: f64,
    /// Verdicts on equal sides.
    pub(crate) regressed: f64,
    pub(crate) unconfirmed: f64,
    pub(crate) equivalent: f64,
    /// Those that are inconclusive because of the dependence alone.
    pub(crate) equal_if_independent: f64,
    /// Equivalent, of sides that differ by [`UNEQUAL`].
    pub(crate) unequal_equivalent: f64,
    /// The same, if samples were taken not to depend on each other.
    pub(crate) unequal_if_independent: f64,
}

/// One run a side of normal samples without noise between runs.
pub(crate) fn of_dependence(rows: Rows) -> Vec<DependentRow> {
    let correlations = [0.0].into_iter().chain(CORRELATIONS);
    let kinds = correlations.flat_map(|correlation| DEPENDENT_SAMPLES.map(|samples| (correlation, samples)));
    let kinds = kinds.flat_map(|(correlation, samples)| DEPENDENT_SPREADS.map(|spread| (correlation, samples, spread)));
    rows.of(kinds)
        .into_par_iter()
        .map(|(correlation, samples, spread)| dependent_row(correlation, samples, spread))
        .collect()
}

/// The verdicts on sides with few samples, whose runs differ as is assumed; fractions of comparisons.
pub(crate) struct FewRow {
    /// The numbers of samples of the runs of both sides.
    pub(crate) sides: [&'static [usize]; 2],
    pub(crate) spread: f64,
    /// Verdicts on equal sides.
    pub(crate) regressed: f64,
    pub(crate) improved: f64,
    pub(crate) unconfirmed: f64,
    /// Regressed, for each of [`LARGE_CHANGES`].
    pub(crate) found: [f64; LARGE_CHANGES.len()],
}

/// Normal samples, fewer than six on a side or single ones of several runs.
pub(crate) fn of_few(rows: Rows) -> Vec<FewRow> {
    let kinds = FEW.iter().flat_map(|sides| FEW_SPREADS.map(|spread| (*sides, spread)));
    rows.of(kinds).into_par_iter().map(|(sides, spread)| few_row(sides, spread)).collect()
}

fn few_row(sides: [&'static [usize]; 2], spread: f64) -> FewRow {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let found = [0.0; LARGE_CHANGES.len()];
    let mut row = FewRow { sides, spread, regressed: 0.0, improved: 0.0, unconfirmed: 0.0, found };
    let share = 1.0 / REPETITIONS[3] as f64;
    for _ in 0..REPETITIONS[3] {
        // Noise of 30 % would be below zero now and then.
        let mut run = |samples: &usize| -> Vec<f64> {
            let level = 0.05 * normal(&mut rng);
            (0..*samples).map(|_| 100.0 * (level + spread * normal(&mut rng)).exp()).collect()
        };
        let [reference, judged] = sides.map(|runs| runs.iter().map(&mut run).collect::<Vec<_>>());
        match verdict(&reference, &judged, 0.0) {
            Verdict::Regressed => row.regressed += share,
            Verdict::Improved => row.improved += share,
            Verdict::Unconfirmed => row.unconfirmed += share,
            _ => {}
        }
        for (found, change) in row.found.iter_mut().zip(LARGE_CHANGES) {
            *found += if verdict(&reference, &judged, change) == Verdict::Regressed { share } else { 0.0 };
        }
    }
    row
}

/// The verdicts on groups of checks; fractions of comparisons.
pub(crate) struct GroupRow {
    /// Whether all checks of a run are faster or slower by the same factor, or each by its own.
    pub(crate) is_shared: bool,
    pub(crate) runs: usize,
    /// Averages of equal sides beyond the tolerance, whatever their interval.
    pub(crate) beyond_tolerance: f64,
    /// Verdicts on equal sides.
    pub(crate) changed: f64,
    pub(crate) equivalent: f64,
    /// Regressed, for each of [`GROUP_CHANGES`].
    pub(crate) found: [f64; GROUP_CHANGES.len()],
}

/// Groups of checks with samples as in the first table, of runs that differ as is assumed.
pub(crate) fn of_groups(rows: Rows) -> Vec<GroupRow> {
    let kinds = [true, false].into_iter().flat_map(|is_shared| COUNTS.map(|runs| (is_shared, runs)));
    rows.of(kinds).into_par_iter().map(|(is_shared, runs)| group_row(is_shared, runs)).collect()
}

fn group_row(is_shared: bool, runs: usize) -> GroupRow {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let found = [0.0; GROUP_CHANGES.len()];
    let mut row = GroupRow { is_shared, runs, beyond_tolerance: 0.0, changed: 0.0, equivalent: 0.0, found };
    let share = 1.0 / REPETITIONS[4] as f64;
    for _ in 0..REPETITIONS[4] {
        let mut run = || -> Vec<Vec<f64>> {
            let shared = 0.05 * normal(&mut rng);
            let check = |_| {
                let level = if is_shared { shared } else { 0.05 * normal(&mut rng) };
                (0..SAMPLES).map(|_| 100.0 * (level + SPREAD * normal(&mut rng)).exp()).collect()
            };
            (0..GROUP_CHECKS).map(check).collect()
        };
        let mut side = || (0..runs).map(|_| run()).collect::<Vec<_>>();
        let [reference, judged] = [side(), side()];
        let verdict = |change: f64| {
            let slower = |samples: &Vec<f64>| samples.iter().map(|sample| sample * (1.0 + change)).collect();
            let slower: Vec<Vec<Vec<f64>>> = judged.iter().map(|run| run.iter().map(slower).collect()).collect();
            let prior = Options::default().run_noise;
            let compared = compare_group([&reference, &slower], &[-1.0; GROUP_CHECKS], prior).expect("above zero");
            (compared.ratio, compared.verdict(GROUP_TOLERANCE, compared.p_value, 0.05))
        };
        let (ratio, equal) = verdict(0.0);
        let is_beyond = (ratio.ln().abs().exp() - 1.0) * 100.0 > GROUP_TOLERANCE;
        row.beyond_tolerance += if is_beyond { share } else { 0.0 };
        match equal {
            Verdict::Regressed | Verdict::Improved => row.changed += share,
            Verdict::Equivalent => row.equivalent += share,
            _ => {}
        }
        for (found, change) in row.found.iter_mut().zip(GROUP_CHANGES) {
            *found += if verdict(change).1 == Verdict::Regressed { share } else { 0.0 };
        }
    }
    row
}

fn dependent_row(correlation: f64, samples: usize, spread: f64) -> DependentRow {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut row = DependentRow {
        correlation,
        samples,
        spread,
        regressed: 0.0,
        unconfirmed: 0.0,
        equivalent: 0.0,
        equal_if_independent: 0.0,
        unequal_equivalent: 0.0,
        unequal_if_independent: 0.0,
    };
    let share = 1.0 / REPETITIONS[2] as f64;
    for _ in 0..REPETITIONS[2] {
        let mut side = || vec![Shape::Dependent(correlation).draw(&mut rng, samples, spread)];
        let [reference, judged] = [side(), side()];
        let equal = compare(&reference, &judged, 0.0);
        match equal.verdict {
            Verdict::Regressed => row.regressed += share,
            Verdict::Unconfirmed => row.unconfirmed += share,
            Verdict::Equivalent => row.equivalent += share,
            _ if equal.equal_if_independent => row.equal_if_independent += share,
            _ => {}
        }
        let unequal = compare(&reference, &judged, UNEQUAL);
        let is_equivalent = unequal.verdict == Verdict::Equivalent;
        row.unequal_equivalent += if is_equivalent { share } else { 0.0 };
        row.unequal_if_independent += if is_equivalent || unequal.equal_if_independent { share } else { 0.0 };
    }
    row
}

fn row(shape: Shape, samples: [usize; 2], repetitions: usize, spread: f64, between: f64, runs: usize) -> Row {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut row = Row {
        shape,
        samples,
        between,
        runs,
        regressed: 0.0,
        improved: 0.0,
        unconfirmed: 0.0,
        equivalent: 0.0,
        found: [0.0; CHANGES.len()],
    };
    let share = 1.0 / repetitions as f64;
    for _ in 0..repetitions {
        let mut side = |samples: usize| -> Vec<Vec<f64>> {
            let run = |_| {
                let level = (between * normal(&mut rng)).exp();
                shape.draw(&mut rng, samples, spread).iter().map(|sample| sample * level).collect()
            };
            (0..runs).map(run).collect()
        };
        let [reference, judged] = samples.map(&mut side);
        match verdict(&reference, &judged, 0.0) {
            Verdict::Regressed => row.regressed += share,
            Verdict::Improved => row.improved += share,
            Verdict::Unconfirmed => row.unconfirmed += share,
            Verdict::Equivalent => row.equivalent += share,
            _ => {}
        }
        for (found, change) in row.found.iter_mut().zip(CHANGES) {
            *found += if verdict(&reference, &judged, change) == Verdict::Regressed { share } else { 0.0 };
        }
    }
    row
}

fn verdict(reference: &[Vec<f64>], judged: &[Vec<f64>], change: f64) -> Verdict {
    compare(reference, judged, change).verdict
}

/// The comparison if the judged side is slower by `change`.
fn compare(reference: &[Vec<f64>], judged: &[Vec<f64>], change: f64) -> SampleComparison {
    let slower = judged.iter().map(|run| run.iter().map(|sample| sample * (1.0 + change)).collect()).collect();
    let sides = [reference.to_vec(), slower];
    compare_samples(sides, Direction::Lower, &Options::default()).expect("both sides have samples")
}
