//! Hierarchical bootstrap: resamples runs first, then samples within runs.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Interval, hodges_lehmann::Ratio};

/// Number of bootstrap resamples.
const RESAMPLES: usize = 2000;

/// The ratio of `b` to `a` at one confidence: see [`HierarchicalBootstrap`].
pub fn hierarchical_ratio(a: &[Vec<f64>], b: &[Vec<f64>], confidence: f64, seed: u64) -> Option<Ratio> {
    Some(HierarchicalBootstrap::of(a, b, confidence, seed)?.ratio(confidence))
}

/// The ratio of two sides by hierarchical bootstrap: the ratio of the medians of the runs' medians, with the percentile
/// interval of a bootstrap that draws runs, and within each run its samples, with replacement (Davison, Hinkley,
/// Bootstrap Methods and their Application, 1997, section 3.8). Each side is a list of runs with their samples, all
/// above zero.
///
/// The interval includes the variation between runs and within them. With fewer than five runs per side it is too
/// narrow. The same samples with the same seed give the same interval.
#[derive(Debug, Clone, PartialEq)]
pub struct HierarchicalBootstrap {
    estimate: f64,
    p: f64,
    /// The lowest logarithms of the resamples, ascending, and the highest ones, descending: as many as any interval
    /// needs.
    tails: [Vec<f64>; 2],
}

impl HierarchicalBootstrap {
    /// Draws the resamples; `None` if a run is empty or a sample is not above zero. Intervals are available at
    /// `min_confidence` confidence and above.
    pub fn of(a: &[Vec<f64>], b: &[Vec<f64>], min_confidence: f64, seed: u64) -> Option<Self> {
        let (a, b) = (logs(a)?, logs(b)?);
        let level = |side: &[Vec<f64>]| median_of(side.iter().map(|run| median_of(run.iter().copied())));
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut draws: Vec<f64> =
            (0..RESAMPLES).map(|_| draw_level(&b, &mut random) - draw_level(&a, &mut random)).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let at_most = draws.partition_point(|draw| *draw <= 0.0);
        let at_least = RESAMPLES - draws.partition_point(|draw| *draw < 0.0);
        let p = (2.0 * (at_most.min(at_least) + 1) as f64 / (RESAMPLES + 1) as f64).min(1.0);
        let count = tail_count(min_confidence) + 1;
        let tails = [draws[..count].to_vec(), draws.iter().rev().take(count).copied().collect()];
        Some(Self { estimate: (level(&b) - level(&a)).exp(), p, tails })
    }

    /// The p-value: the probability that equal sides are at least this far apart.
    pub fn p_value(&self) -> f64 {
        self.p
    }

    /// The estimate and its interval.
    pub fn ratio(&self, confidence: f64) -> Ratio {
        let [lowest, highest] = &self.tails;
        let beyond = tail_count(confidence).min(lowest.len() - 1);
        let confidence_reached = 1.0 - 2.0 * beyond as f64 / RESAMPLES as f64;
        let interval =
            Interval { low: lowest[beyond].exp(), high: highest[beyond].exp(), confidence: confidence_reached };
        Ratio { estimate: self.estimate, interval: Some(interval), p_value: self.p }
    }
}

/// The number of resamples beyond either end of an interval.
fn tail_count(confidence: f64) -> usize {
    ((RESAMPLES as f64 * (1.0 - confidence) / 2.0).floor() as usize).min(RESAMPLES / 2 - 1)
}

/// The logarithms of each run; those of long runs are sorted, for [`draw_median`].
fn logs(runs: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    if runs.is_empty() || runs.iter().any(|run| run.is_empty() || run.iter().any(|sample| *sample <= 0.0)) {
        return None;
    }
    let logs_of = |run: &Vec<f64>| {
        let mut logs: Vec<f64> = run.iter().map(|sample| sample.ln()).collect();
        if is_long(&logs) {
            logs.sort_unstable_by(f64::total_cmp);
        }
        logs
    };
    Some(runs.iter().map(logs_of).collect())
}

fn draw_level(runs: &[Vec<f64>], random: &mut ChaCha8Rng) -> f64 {
    median_of((0..runs.len()).map(|_| {
        let run = &runs[random.random_range(0..runs.len())];
        draw_median(run, random)
    }))
}

/// The number of samples of a run from which on drawing its median directly is faster than drawing its samples.
const LONG: usize = 100;

fn is_long(run: &[f64]) -> bool {
    run.len() > LONG
}

/// The median of as many samples as a run has, drawn from it with replacement. The run is sorted if it is long.
///
/// Sample `⌊n·u⌋` of a sorted run, with a uniform u, is a sample drawn from it. So the median of n draws is the sample at
/// the median of n uniforms, which has a beta distribution; and the next one of these is the smallest of those above it
/// (David, Nagaraja, Order Statistics, 3rd ed., sections 2.3 and 2.5).
fn draw_median(run: &[f64], random: &mut ChaCha8Rng) -> f64 {
    let n = run.len();
    if !is_long(run) {
        return median_of((0..n).map(|_| run[random.random_range(0..n)]));
    }
    let lower = n.div_ceil(2);
    let above = n - lower;
    let u = draw_beta(lower as f64, above as f64 + 1.0, random);
    let sample = |u: f64| run[((u * n as f64) as usize).min(n - 1)];
    match n.is_multiple_of(2) {
        false => sample(u),
        true => {
            let next = u + (1.0 - u) * (1.0 - random.random::<f64>().powf(1.0 / above as f64));
            (sample(u) + sample(next)) / 2.0
        }
    }
}

/// A draw from the beta distribution with these parameters, both at least 1: the share of one of two gamma variables.
fn draw_beta(a: f64, b: f64, random: &mut ChaCha8Rng) -> f64 {
    let (x, y) = (draw_gamma(a, random), draw_gamma(b, random));
    x / (x + y)
}

/// A draw from the gamma distribution of this shape, at least 1 (Marsaglia, Tsang 2000).
fn draw_gamma(shape: f64, random: &mut ChaCha8Rng) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = Normal::standard().inverse_cdf(random.random::<f64>().max(f64::MIN_POSITIVE));
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && random.random::<f64>().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

fn median_of(medians: impl Iterator<Item = f64>) -> f64 {
    median(&mut medians.collect::<Vec<f64>>())
}

/// The median; the values must not be empty.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if !below.is_empty() && below.len() == values.len() - middle {
        let lower = values[..middle].iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
        return (lower + upper) / 2.0;
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut [7.0]), 7.0);
    }

    #[test]
    fn variation_between_runs_widens_the_interval_whatever_the_number_of_samples() {
        let run = |level: f64| (0..100).map(|n| level * (1.0 + f64::from(n % 7) / 1000.0)).collect::<Vec<f64>>();
        let (a, b) = ([1.0, 1.1, 0.9, 1.05, 0.95, 1.02].map(run), [1.01, 1.12, 0.93, 1.04, 0.97, 0.99].map(run));
        let ratio = hierarchical_ratio(&a, &b, 0.95, 1).unwrap();
        let interval = ratio.interval.unwrap();
        assert!(interval.high / interval.low > 1.05, "{ratio:?}");
        assert!(interval.contains(1.0) && ratio.p_value > 0.2, "{ratio:?}");
        assert_eq!(Some(ratio), hierarchical_ratio(&a, &b, 0.95, 1));
    }

    #[test]
    fn the_median_of_a_long_run_is_drawn_as_often_as_by_drawing_its_samples() {
        for n in [LONG + 1, LONG + 2, 5000] {
            let run: Vec<f64> = (0..n).map(|at| at as f64).collect();
            let mut random = ChaCha8Rng::seed_from_u64(7);
            let mut draw = |of: &dyn Fn(&mut ChaCha8Rng) -> f64| {
                let mut draws: Vec<f64> = (0..2000).map(|_| of(&mut random) / n as f64).collect();
                draws.sort_unstable_by(f64::total_cmp);
                draws
            };
            let direct = draw(&|random| draw_median(&run, random));
            let naive = draw(&|random| median_of((0..n).map(|_| run[random.random_range(0..n)])));
            // The Kolmogorov–Smirnov distance of two samples of 2000 exceeds 0.062 in one of a thousand cases.
            let share = |draws: &[f64], x: f64| draws.partition_point(|draw| *draw <= x) as f64 / 2000.0;
            let distance = naive.iter().map(|x| (share(&direct, *x) - share(&naive, *x)).abs()).fold(0.0, f64::max);
            assert!(distance < 0.062, "{n}: {distance}");
        }
    }

    #[test]
    fn samples_without_a_logarithm_have_no_ratio() {
        assert_eq!(hierarchical_ratio(&[vec![1.0, 0.0]], &[vec![1.0]], 0.95, 1), None);
        assert_eq!(hierarchical_ratio(&[vec![]], &[vec![1.0]], 0.95, 1), None);
        assert_eq!(hierarchical_ratio(&[], &[vec![1.0]], 0.95, 1), None);
    }
}
