//! Samples within runs: the bootstrap that draws runs first.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Interval, hodges_lehmann::Ratio};

/// So many times both sides are drawn again.
const RESAMPLES: usize = 2000;

/// How `b` stands to `a` at one confidence: see [`Drawn`].
pub fn hierarchical_ratio(a: &[Vec<f64>], b: &[Vec<f64>], confidence: f64, seed: u64) -> Option<Ratio> {
    Some(HierarchicalBootstrap::of(a, b, confidence, seed)?.ratio(confidence))
}

/// Two sides, each a list of runs with their samples, all above zero: the ratio of the medians of the runs' medians, and
/// the percentile interval of a bootstrap that draws runs, and within each run its samples, with replacement (Davison,
/// Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).
///
/// It carries the variation between runs as well as that within. With fewer than five runs a side it is too sure; the
/// same figures with the same seed give the same interval.
#[derive(Debug, Clone, PartialEq)]
pub struct HierarchicalBootstrap {
    estimate: f64,
    p: f64,
    /// The logarithms that were drawn lowest, ascending, and highest, descending: as many as any interval ends at.
    tails: [Vec<f64>; 2],
}

impl HierarchicalBootstrap {
    /// Draws; none where a run is empty or a sample is not above zero. Intervals can then be had at `least` confidence
    /// and above.
    pub fn of(a: &[Vec<f64>], b: &[Vec<f64>], least: f64, seed: u64) -> Option<Self> {
        let (a, b) = (logs(a)?, logs(b)?);
        let level = |side: &[Vec<f64>]| median_of(side.iter().map(|run| median(&mut run.clone())));
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut draws: Vec<f64> =
            (0..RESAMPLES).map(|_| draw_level(&b, &mut random) - draw_level(&a, &mut random)).collect();
        draws.sort_unstable_by(f64::total_cmp);
        let at_most = draws.partition_point(|draw| *draw <= 0.0);
        let at_least = RESAMPLES - draws.partition_point(|draw| *draw < 0.0);
        let p = (2.0 * (at_most.min(at_least) + 1) as f64 / (RESAMPLES + 1) as f64).min(1.0);
        let kept = tail_count(least) + 1;
        let tails = [draws[..kept].to_vec(), draws.iter().rev().take(kept).copied().collect()];
        Some(Self { estimate: (level(&b) - level(&a)).exp(), p, tails })
    }

    /// How likely sides that differ in nothing are so far apart.
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

/// So many draws lie beyond either end of an interval.
fn tail_count(confidence: f64) -> usize {
    ((RESAMPLES as f64 * (1.0 - confidence) / 2.0).floor() as usize).min(RESAMPLES / 2 - 1)
}

fn logs(runs: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    if runs.is_empty() || runs.iter().any(|run| run.is_empty() || run.iter().any(|sample| *sample <= 0.0)) {
        return None;
    }
    Some(runs.iter().map(|run| run.iter().map(|sample| sample.ln()).collect()).collect())
}

fn draw_level(runs: &[Vec<f64>], random: &mut ChaCha8Rng) -> f64 {
    median_of((0..runs.len()).map(|_| {
        let run = &runs[random.random_range(0..runs.len())];
        median(&mut (0..run.len()).map(|_| run[random.random_range(0..run.len())]).collect::<Vec<f64>>())
    }))
}

fn median_of(medians: impl Iterator<Item = f64>) -> f64 {
    median(&mut medians.collect::<Vec<f64>>())
}

/// Of what is not empty.
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
    fn runs_that_vary_make_a_wide_interval_however_many_samples_they_have() {
        let run = |level: f64| (0..100).map(|n| level * (1.0 + f64::from(n % 7) / 1000.0)).collect::<Vec<f64>>();
        let (a, b) = ([1.0, 1.1, 0.9, 1.05, 0.95, 1.02].map(run), [1.01, 1.12, 0.93, 1.04, 0.97, 0.99].map(run));
        let ratio = hierarchical_ratio(&a, &b, 0.95, 1).unwrap();
        let interval = ratio.interval.unwrap();
        assert!(interval.high / interval.low > 1.05, "{ratio:?}");
        assert!(interval.contains(1.0) && ratio.p_value > 0.2, "{ratio:?}");
        assert_eq!(Some(ratio), hierarchical_ratio(&a, &b, 0.95, 1));
    }

    #[test]
    fn what_has_no_logarithm_has_no_ratio() {
        assert_eq!(hierarchical_ratio(&[vec![1.0, 0.0]], &[vec![1.0]], 0.95, 1), None);
        assert_eq!(hierarchical_ratio(&[vec![]], &[vec![1.0]], 0.95, 1), None);
        assert_eq!(hierarchical_ratio(&[], &[vec![1.0]], 0.95, 1), None);
    }
}
