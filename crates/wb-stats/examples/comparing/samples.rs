//! Comparisons of two sides with one run each.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use wb_stats::{CONFIDENCE, Samples, rank_sum_p, ratio};

use super::populations::Population;

/// Samples on each side.
pub(crate) const COUNTS: [usize; 5] = [3, 6, 10, 30, 100];
/// The scale of the noise.
pub(crate) const SPREAD: f64 = 0.03;
/// The factor between sides that differ.
const FACTOR: f64 = 1.05;
const REPETITIONS: usize = 2000;
const SEED: u64 = 3;

/// The numbers of samples and the spreads, in percent, of two sides that do not vary alike.
pub(crate) const UNLIKE: [([usize; 2], [u32; 2]); 12] = [
    ([6, 6], [1, 4]),
    ([10, 10], [1, 4]),
    ([30, 30], [1, 4]),
    ([6, 30], [1, 1]),
    ([6, 30], [1, 4]),
    ([6, 30], [4, 1]),
    ([10, 36], [1, 4]),
    ([10, 36], [4, 1]),
    ([6, 30], [20, 1]),
    ([10, 100], [1, 20]),
    ([10, 100], [20, 1]),
    ([30, 30], [1, 20]),
];

/// The results of many comparisons.
pub(crate) struct Outcome {
    /// The fraction of comparisons of equal sides with a false alarm.
    pub(crate) false_alarms: f64,
    /// The same, by Wilcoxon's test alone.
    pub(crate) false_alarms_by_ranks: f64,
    /// The fraction of comparisons that detect a difference of 5 %.
    pub(crate) detected: f64,
    /// The fraction of intervals that contain this factor; `None` if there is no interval.
    pub(crate) covered: Option<f64>,
}

/// Compares two sides of `count` samples each. The sides are sampled interleaved, as cells are, which matters for the
/// drifting population.
pub(crate) fn simulate(population: Population, count: usize) -> Outcome {
    simulate_by(|rng| {
        let mut values = [Vec::new(), Vec::new()];
        for index in 0..2 * count {
            values[index % 2].push(population.draw(rng, SPREAD, index, 2 * count));
        }
        values
    })
}

/// Compares two sides with the same median, and with their own numbers of samples and spreads in percent.
pub(crate) fn simulate_unlike(population: Population, counts: [usize; 2], spreads: [u32; 2]) -> Outcome {
    simulate_by(|rng| {
        [0, 1].map(|side| {
            let spread = f64::from(spreads[side]) / 100.0;
            (0..counts[side]).map(|index| population.draw(rng, spread, index, counts[side])).collect()
        })
    })
}

fn simulate_by(mut draw: impl FnMut(&mut ChaCha8Rng) -> [Vec<f64>; 2]) -> Outcome {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let (mut alarms, mut by_ranks, mut found, mut covered, mut intervals) = (0, 0, 0, 0, 0);
    for _ in 0..REPETITIONS {
        let [a, b] = draw(&mut rng).map(|side| Samples::new(&side).expect("drawn samples are finite"));
        let slower: Vec<f64> = b.in_order().iter().map(|sample| sample * FACTOR).collect();
        let slower = Samples::new(&slower).expect("drawn samples are finite");
        let differs = |p: f64| usize::from(p <= 1.0 - CONFIDENCE);
        alarms += differs(ratio(&a, &b, CONFIDENCE).p_value);
        by_ranks += differs(rank_sum_p(a.in_order(), b.in_order()));
        let ratio = ratio(&a, &slower, CONFIDENCE);
        found += differs(ratio.p_value);
        if let Some(interval) = ratio.interval {
            intervals += 1;
            covered += usize::from(interval.contains(FACTOR));
        }
    }
    let share = |count: usize| count as f64 / REPETITIONS as f64;
    Outcome {
        false_alarms: share(alarms),
        false_alarms_by_ranks: share(by_ranks),
        detected: share(found),
        covered: (intervals > 0).then(|| covered as f64 / intervals as f64),
    }
}
