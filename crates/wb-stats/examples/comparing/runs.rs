//! Several runs a side, which differ more from each other than the samples within them.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_stats::{CONFIDENCE, Ratio, Samples, hierarchical_ratio, ratio};

/// Runs on each side.
const COUNTS: [usize; 6] = [1, 3, 4, 5, 8, 15];
/// Samples in each.
const SAMPLES: usize = 10;
/// Standard deviations of the logarithms: of runs around the build, of samples around their run.
const BETWEEN: f64 = 0.03;
const WITHIN: f64 = 0.02;
const REPETITIONS: usize = 500;
const SEED: u64 = 4;

/// What is ranked or drawn.
#[derive(Clone, Copy)]
enum Way {
    /// All samples, as if they were of one run.
    Pooled,
    /// The runs' medians.
    Medians,
    /// Runs, and samples in them.
    Hierarchical,
}

/// In how many of the comparisons of equal builds they are said to differ, and in how many the interval has 1 in it;
/// none where there is no interval.
pub(crate) type Shares = (f64, Option<f64>);

/// So many runs a side, each way.
pub(crate) struct Row {
    pub(crate) count: usize,
    pub(crate) pooled: Shares,
    pub(crate) medians: Shares,
    pub(crate) hierarchical: Shares,
}

/// Every number of runs
pub(crate) fn simulated() -> Vec<Row> {
    let row = |count| Row {
        count,
        pooled: compared(Way::Pooled, count),
        medians: compared(Way::Medians, count),
        hierarchical: compared(Way::Hierarchical, count),
    };
    COUNTS.into_iter().map(row).collect()
}

fn compared(way: Way, count: usize) -> Shares {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let (mut alarms, mut covered, mut intervals) = (0, 0, 0);
    for repetition in 0..REPETITIONS {
        let [a, b] = [(); 2].map(|()| (0..count).map(|_| run(&mut rng)).collect::<Vec<_>>());
        let Some(ratio) = judged(way, &a, &b, repetition as u64) else { continue };
        alarms += usize::from(ratio.p_value <= 1.0 - CONFIDENCE);
        if let Some(interval) = ratio.interval {
            intervals += 1;
            covered += usize::from(interval.contains(1.0));
        }
    }
    (alarms as f64 / REPETITIONS as f64, (intervals > 0).then(|| covered as f64 / intervals as f64))
}

fn judged(way: Way, a: &[Vec<f64>], b: &[Vec<f64>], seed: u64) -> Option<Ratio> {
    let samples = |values: Vec<f64>| Samples::new(&values).expect("drawn samples are finite");
    match way {
        Way::Pooled => ratio(&samples(a.concat()), &samples(b.concat()), CONFIDENCE),
        Way::Medians => {
            let medians = |side: &[Vec<f64>]| samples(side.iter().map(|run| samples(run.clone()).median()).collect());
            ratio(&medians(a), &medians(b), CONFIDENCE)
        }
        Way::Hierarchical => hierarchical_ratio(a, b, CONFIDENCE, seed),
    }
}

fn run(rng: &mut impl Rng) -> Vec<f64> {
    let level = BETWEEN * normal(rng);
    (0..SAMPLES).map(|_| (level + WITHIN * normal(rng)).exp()).collect()
}

/// Box, Muller 1958
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
