//! Several runs a side, which differ more from each other than the samples within them.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_stats::{CONFIDENCE, Ratio, Samples, hierarchical_ratio, ratio};

use super::populations::normal;

/// Runs on each side.
const COUNTS: [usize; 6] = [1, 3, 4, 5, 8, 15];
/// Samples in each.
const SAMPLES: usize = 10;
/// Standard deviation of the logarithms of runs around the build.
const BETWEEN: f64 = 0.03;
/// Standard deviation of the logarithms of samples around their run.
const WITHIN: f64 = 0.02;
const REPETITIONS: usize = 500;
const SEED: u64 = 4;

/// How two sides of several runs are compared.
#[derive(Clone, Copy)]
enum Method {
    /// By all samples, as if they were of one run.
    Pooled,
    /// By the medians of the runs.
    Medians,
    /// By a bootstrap of runs, and of samples within runs.
    Hierarchical,
}

/// The fraction of comparisons of equal builds with a false alarm, and the fraction of intervals that contain 1; `None`
/// if there is no interval.
pub(crate) type Rates = (f64, Option<f64>);

/// The results for one number of runs per side.
pub(crate) struct Row {
    pub(crate) count: usize,
    pub(crate) pooled: Rates,
    pub(crate) medians: Rates,
    pub(crate) hierarchical: Rates,
}

/// Simulates every number of runs
pub(crate) fn simulate() -> Vec<Row> {
    let row = |count| Row {
        count,
        pooled: simulate_method(Method::Pooled, count),
        medians: simulate_method(Method::Medians, count),
        hierarchical: simulate_method(Method::Hierarchical, count),
    };
    COUNTS.into_iter().map(row).collect()
}

fn simulate_method(way: Method, count: usize) -> Rates {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let (mut alarms, mut covered, mut intervals) = (0, 0, 0);
    for repetition in 0..REPETITIONS {
        let [a, b] = [(); 2].map(|()| (0..count).map(|_| draw_run(&mut rng)).collect::<Vec<_>>());
        let Some(ratio) = compare(way, &a, &b, repetition as u64) else { continue };
        alarms += usize::from(ratio.p_value <= 1.0 - CONFIDENCE);
        if let Some(interval) = ratio.interval {
            intervals += 1;
            covered += usize::from(interval.contains(1.0));
        }
    }
    (alarms as f64 / REPETITIONS as f64, (intervals > 0).then(|| covered as f64 / intervals as f64))
}

fn compare(way: Method, a: &[Vec<f64>], b: &[Vec<f64>], seed: u64) -> Option<Ratio> {
    let samples = |values: Vec<f64>| Samples::new(&values).expect("drawn samples are finite");
    match way {
        Method::Pooled => ratio(&samples(a.concat()), &samples(b.concat()), CONFIDENCE),
        Method::Medians => {
            let medians = |side: &[Vec<f64>]| samples(side.iter().map(|run| samples(run.clone()).median()).collect());
            ratio(&medians(a), &medians(b), CONFIDENCE)
        }
        Method::Hierarchical => hierarchical_ratio(a, b, CONFIDENCE, seed),
    }
}

fn draw_run(rng: &mut impl Rng) -> Vec<f64> {
    let level = BETWEEN * normal(rng);
    (0..SAMPLES).map(|_| (level + WITHIN * normal(rng)).exp()).collect()
}
