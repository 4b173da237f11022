//! Tests of location, mean and tail for independent samples of two sides.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_stats::{
    CONFIDENCE, Interval, MeanShift, Samples, holm, median_ratio, pooled_quantile_p, quantile_ratio, rank_sum_p,
    tail_level, tail_p,
};

use super::page::Rows;
use super::populations::{Population, normal};

/// Samples on both sides if they are equal.
const EQUAL_COUNTS: [[usize; 2]; 9] =
    [[6; 2], [13; 2], [30; 2], [36; 2], [100; 2], [6, 30], [7, 40], [10, 50], [13, 100]];
/// Samples on both sides if they differ.
const CHANGED_COUNTS: [[usize; 2]; 3] = [[30; 2], [36; 2], [100; 2]];
/// The scale of the noise.
const SPREAD: f64 = 0.1;
const REPETITIONS: usize = 4000;
const SEED: u64 = 7;

/// What samples are drawn from.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// A population of the other examples.
    Population(Population),
    /// Log-normal with σ = 1 relative to zero: the largest samples are many times the median.
    Skewed,
    /// Two modes of which one is at twice the other, with this share of the samples in the slow one.
    Modes(f64),
    /// Two modes of which one is at twice the other, with the quantile of the tail in the gap between them: 75:25 for few
    /// samples.
    Gap,
    /// Normal, with a fifth of the samples five times slower.
    Slow,
    /// Normal, at 1.05.
    Higher,
}

impl Shape {
    pub(crate) const EQUAL: [Self; 7] = [
        Self::Population(Population::Normal),
        Self::Population(Population::LogNormal),
        Self::Skewed,
        Self::Population(Population::T3),
        Self::Population(Population::Uneven),
        Self::Population(Population::Even),
        Self::Gap,
    ];
    const NORMAL: Self = Self::Population(Population::Normal);
    pub(crate) const CHANGES: [(Self, Self); 3] =
        [(Self::NORMAL, Self::Slow), (Self::Modes(0.2), Self::Modes(0.4)), (Self::NORMAL, Self::Higher)];

    /// The name of equal sides of this shape, or of the change to it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Population(population) => population.name(),
            Self::Skewed => "log-normal from zero",
            Self::Gap => "two modes, one at twice the other, the quantile of the tail in the gap",
            Self::Modes(_) => "modes 80:20 → 60:40, one at twice the other",
            Self::Slow => "20 % of samples five times slower",
            Self::Higher => "5 % more everywhere",
        }
    }

    fn draw(self, rng: &mut impl Rng, count: usize, level: Option<f64>) -> Samples {
        let noise = |rng: &mut dyn FnMut() -> f64| 100.0 * (1.0 + SPREAD * rng());
        let values = (0..count).map(|index| match self {
            Self::Population(population) => population.draw(rng, SPREAD, index, count),
            Self::Skewed => 100.0 * normal(rng).exp(),
            Self::Modes(slow) => noise(&mut || normal(rng)) * if rng.random_bool(slow) { 2.0 } else { 1.0 },
            Self::Gap => {
                let slow = 1.0 - level.unwrap_or(0.75);
                noise(&mut || normal(rng)) * if rng.random_bool(slow) { 2.0 } else { 1.0 }
            }
            Self::Slow => noise(&mut || normal(rng)) * if rng.random_bool(0.2) { 5.0 } else { 1.0 },
            Self::Higher => noise(&mut || normal(rng)) * 1.05,
        });
        Samples::new(&values.collect::<Vec<_>>()).expect("drawn samples are finite")
    }
}

/// The results for one pair of populations and number of samples per side: the fraction of comparisons in which each
/// test is significant at 5 %. `None` if there are too few samples for the test.
pub(crate) struct Row {
    pub(crate) shape: Shape,
    pub(crate) counts: [usize; 2],
    /// Wilcoxon's rank-sum test.
    pub(crate) location: f64,
    pub(crate) mean: f64,
    /// The percentile modified rank test.
    pub(crate) tail: Option<f64>,
    /// Any of these three, adjusted by Holm.
    pub(crate) any: f64,
    /// The number of samples beyond the pooled quantile.
    pub(crate) tail_count: Option<f64>,
    /// The interval of the ratio of the tail's quantiles does not contain 1.
    pub(crate) tail_interval: Option<f64>,
    /// The interval of the ratio of the medians does not contain 1.
    pub(crate) median_interval: f64,
}

/// The results of equal sides and of those that differ
pub(crate) struct Simulation {
    pub(crate) equal: Vec<Row>,
    pub(crate) changed: Vec<Row>,
}

/// Simulates shapes and changes with numbers of samples
pub(crate) fn simulate(rows: Rows) -> Simulation {
    let equal = rows.of(Shape::EQUAL.into_iter().flat_map(|shape| EQUAL_COUNTS.map(|counts| (shape, shape, counts))));
    let changed =
        rows.of(Shape::CHANGES.into_iter().flat_map(|(from, to)| CHANGED_COUNTS.map(|counts| (from, to, counts))));
    let [equal, changed] = [equal, changed]
        .map(|kinds| kinds.into_iter().map(|(from, to, counts)| simulate_row(from, to, counts)).collect());
    Simulation { equal, changed }
}

fn simulate_row(from: Shape, to: Shape, counts: [usize; 2]) -> Row {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let level = tail_level(counts[0].min(counts[1]));
    let tail = level.map(|_| 0.0);
    let mut row = Row {
        shape: to,
        counts,
        location: 0.0,
        mean: 0.0,
        tail,
        any: 0.0,
        tail_count: tail,
        tail_interval: tail,
        median_interval: 0.0,
    };
    let weight = |condition: bool| if condition { 1.0 / REPETITIONS as f64 } else { 0.0 };
    let significant = |p: f64| weight(p <= 1.0 - CONFIDENCE);
    let excludes_one = |interval: Option<Interval>| weight(interval.is_some_and(|interval| !interval.contains(1.0)));
    for _ in 0..REPETITIONS {
        let (a, b) = (from.draw(&mut rng, counts[0], level), to.draw(&mut rng, counts[1], level));
        let location = rank_sum_p(a.in_order(), b.in_order());
        let mean = MeanShift::new(&a, &b).map_or(1.0, |shift| shift.p_value());
        let tail = level.map(|level| tail_p(a.in_order(), b.in_order(), level));
        row.location += significant(location);
        row.mean += significant(mean);
        row.tail = row.tail.zip(tail).map(|(sum, p)| sum + significant(p));
        let all: Vec<f64> = [location, mean].into_iter().chain(tail).collect();
        row.any += weight(holm(&all).into_iter().any(|p| p <= 1.0 - CONFIDENCE));
        let count = level.map(|level| pooled_quantile_p(a.in_order(), b.in_order(), level));
        row.tail_count = row.tail_count.zip(count).map(|(sum, p)| sum + significant(p));
        let quantiles = level.and_then(|level| quantile_ratio(&a, &b, level, CONFIDENCE)?.interval);
        row.tail_interval = row.tail_interval.map(|sum| sum + excludes_one(quantiles));
        row.median_interval += excludes_one(median_ratio(&a, &b, CONFIDENCE).and_then(|ratio| ratio.interval));
    }
    row
}
