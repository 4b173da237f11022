//! Comparisons of two sides with one run each.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use wb_stats::{CONFIDENCE, Samples, ratio};

use super::populations::Population;

/// Samples on each side.
pub(crate) const COUNTS: [usize; 5] = [3, 6, 10, 30, 100];
/// The scale of the noise.
pub(crate) const SPREAD: f64 = 0.03;
/// The factor between sides that differ.
const FACTOR: f64 = 1.05;
const REPETITIONS: usize = 2000;
const SEED: u64 = 3;

/// The results of many comparisons.
pub(crate) struct Outcome {
    /// The fraction of comparisons of equal sides with a false alarm.
    pub(crate) false_alarms: f64,
    /// The fraction of comparisons that detect a difference of 5 %.
    pub(crate) detected: f64,
    /// The fraction of intervals that contain this factor; `None` if there is no interval.
    pub(crate) covered: Option<f64>,
}

/// Compares two sides of `count` samples each. The sides are sampled interleaved, as cells are, which matters for the
/// drifting population.
pub(crate) fn simulate(population: Population, count: usize) -> Outcome {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let (mut alarms, mut found, mut covered, mut intervals) = (0, 0, 0, 0);
    for _ in 0..REPETITIONS {
        let mut values = [Vec::new(), Vec::new()];
        for index in 0..2 * count {
            values[index % 2].push(population.draw(&mut rng, SPREAD, index, 2 * count));
        }
        let [a, b] = values.map(|side| Samples::new(&side).expect("drawn samples are finite"));
        let slower: Vec<f64> = b.in_order().iter().map(|sample| sample * FACTOR).collect();
        let slower = Samples::new(&slower).expect("drawn samples are finite");
        let differs = |p: f64| usize::from(p <= 1.0 - CONFIDENCE);
        alarms += ratio(&a, &b, CONFIDENCE).map_or(0, |ratio| differs(ratio.p_value));
        if let Some(ratio) = ratio(&a, &slower, CONFIDENCE) {
            found += differs(ratio.p_value);
            if let Some(interval) = ratio.interval {
                intervals += 1;
                covered += usize::from(interval.contains(FACTOR));
            }
        }
    }
    let share = |count: usize| count as f64 / REPETITIONS as f64;
    Outcome {
        false_alarms: share(alarms),
        detected: share(found),
        covered: (intervals > 0).then(|| covered as f64 / intervals as f64),
    }
}
