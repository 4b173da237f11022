//! The average of related checks: how certain it is that one side is faster on average.
//!
//! What makes one run slower than another usually concerns all that is measured in it, so an average over many checks
//! varies between runs as much as one check does. Each run has one level, its average over the checks, and sides are
//! compared by these levels as by those of one check.

use wb_results::comparison::NegligibleRatios;
use wb_stats::{CONFIDENCE, Interval, NoiseSource, RunPrior, Samples, StudentRatio, VarianceEstimate, WeightedRun};

use super::Verdict;

/// The samples of the members of a group in one run, in the order of the members.
pub type GroupRun = Vec<Vec<f64>>;

/// The comparison of the average of a group: of speed, so that higher is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupComparison {
    /// Of the averages of both sides.
    pub ratio: f64,
    /// With the noise between runs.
    pub interval: Interval,
    /// With the noise between runs.
    pub p_value: f64,
}

/// Compares the averages of two sides, each a list of runs. The logarithms of members are multiplied by `signs`, 1
/// where higher is better and −1 where lower is. `None` without members, if a mean is not above zero, if a run lacks a
/// member, or if the noise of single samples is unknown.
pub fn compare_group([a, b]: [&[GroupRun]; 2], signs: &[f64], prior: RunPrior) -> Option<GroupComparison> {
    let levels = |runs: &[GroupRun]| runs.iter().map(|run| level(run, signs)).collect::<Option<Vec<_>>>();
    let (from, to) = (levels(a)?, levels(b)?);
    let average = |runs: &[WeightedRun]| runs.iter().map(|run| run.level).sum::<f64>() / runs.len() as f64;
    let difference = average(&to) - average(&from);
    let by = |sampling, source| prior.ratio(difference, &from, &to, sampling, source);
    let ratios: Vec<StudentRatio> = match sampling_variance(a).zip(sampling_variance(b)) {
        Some((of_a, of_b)) => {
            let sampling = sum([of_a, of_b]);
            vec![by(sampling, prior.source(&from, &to, sampling.variance)?)?]
        }
        // The spread of the runs includes the noise of single samples.
        None => vec![by(NO_VARIANCE, NoiseSource::SingleSamples)?, by(NO_VARIANCE, NoiseSource::Prior)?],
    };
    let intervals = ratios.iter().map(|ratio| ratio.ratio(CONFIDENCE).interval).collect::<Option<Vec<_>>>()?;
    let widest = |one: Interval, other: Interval| Interval {
        low: one.low.min(other.low),
        high: one.high.max(other.high),
        confidence: CONFIDENCE,
    };
    Some(GroupComparison {
        ratio: difference.exp(),
        interval: intervals.into_iter().reduce(widest)?,
        p_value: ratios.iter().map(StudentRatio::p_value).fold(0.0, f64::max),
    })
}

impl GroupComparison {
    /// `tolerance` is the largest irrelevant difference in percent; `p` is adjusted for all groups.
    pub fn verdict(&self, tolerance: f64, p: f64, error_rate: f64) -> Verdict {
        let negligible = NegligibleRatios::new(tolerance);
        match self.ratio {
            _ if negligible.contains(self.interval.low) && negligible.contains(self.interval.high) => {
                Verdict::Equivalent
            }
            ratio if p > error_rate || negligible.contains(ratio) => Verdict::Inconclusive,
            ratio if ratio > 1.0 => Verdict::Improved,
            _ => Verdict::Regressed,
        }
    }
}

const NO_VARIANCE: VarianceEstimate = VarianceEstimate { variance: 0.0, degrees: 1.0 };

fn level(run: &GroupRun, signs: &[f64]) -> Option<WeightedRun> {
    let log = |(samples, sign): (&Vec<f64>, &f64)| {
        let mean = Samples::new(samples).ok()?.mean();
        (mean > 0.0).then(|| sign * mean.ln())
    };
    let logs = run.iter().zip(signs).map(log).collect::<Option<Vec<f64>>>()?;
    let is_complete = !logs.is_empty() && logs.len() == signs.len();
    is_complete.then(|| WeightedRun { level: logs.iter().sum::<f64>() / logs.len() as f64, weight: 1.0 })
}

/// The variance of a side's average due to its samples (delta method); `None` if a member has a single sample in a run.
fn sampling_variance(runs: &[GroupRun]) -> Option<VarianceEstimate> {
    let share = 1.0 / (runs.len() * runs.first()?.len()) as f64;
    let of_member = |samples: &Vec<f64>| {
        let samples = Samples::new(samples).ok()?;
        let count = samples.count() as f64;
        let relative = samples.stddev()? / samples.mean();
        Some(VarianceEstimate { variance: (relative * share).powi(2) / count, degrees: count - 1.0 })
    };
    Some(sum(runs.iter().flatten().map(of_member).collect::<Option<Vec<_>>>()?))
}

/// The variance of a sum of independent terms, with the degrees of freedom of Satterthwaite (1946).
fn sum(terms: impl IntoIterator<Item = VarianceEstimate>) -> VarianceEstimate {
    VarianceEstimate::sum(&terms.into_iter().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prior() -> RunPrior {
        RunPrior::new(0.05).unwrap()
    }

    /// Ten members around levels that differ by factors, each with six quiet samples.
    fn run(factor: f64) -> GroupRun {
        (0..10)
            .map(|member| (0..6).map(|i| factor * f64::from(member + 1) * (1.0 + 0.001 * f64::from(i))).collect())
            .collect()
    }

    fn compare(from: &[f64], to: &[f64], sign: f64) -> GroupComparison {
        let [from, to] = [from, to].map(|side| side.iter().map(|factor| run(*factor)).collect::<Vec<_>>());
        compare_group([&from, &to], &[sign; 10], prior()).unwrap()
    }

    /// t with 30 degrees of freedom of a difference with the standard error 0.05·√2.
    #[test]
    fn many_checks_of_one_run_have_the_noise_of_one_run() {
        let compared = compare(&[1.0], &[0.9], 1.0);
        assert!((compared.p_value - 0.1467).abs() < 2e-3, "{compared:?}");
        assert_eq!(compared.verdict(2.5, compared.p_value, 0.05), Verdict::Inconclusive);
        let large = compare(&[1.0], &[0.8], 1.0);
        assert_eq!(large.verdict(2.5, large.p_value, 0.05), Verdict::Regressed, "{large:?}");
    }

    #[test]
    fn less_is_better_by_the_sign() {
        let lower = compare(&[1.0], &[0.8], -1.0);
        assert!((lower.ratio - 1.25).abs() < 1e-9 && lower.verdict(2.5, 0.0, 0.05) == Verdict::Improved, "{lower:?}");
    }

    #[test]
    fn more_runs_find_smaller_differences_and_equality() {
        let side = |level: f64| [0.99, 1.0, 1.01, 1.0].repeat(8).iter().map(|it| it * level).collect::<Vec<f64>>();
        let [worse, equal] = [0.95, 1.0].map(|level| compare(&side(1.0), &side(level), 1.0));
        assert_eq!(worse.verdict(2.5, worse.p_value, 0.05), Verdict::Regressed, "{worse:?}");
        assert_eq!(equal.verdict(2.5, equal.p_value, 0.05), Verdict::Equivalent, "{equal:?}");
    }

    #[test]
    fn groups_without_noise_estimate_or_values_are_not_compared() {
        let single: [GroupRun; 1] = [vec![vec![1.0], vec![2.0]]];
        let two = [single[0].clone(), single[0].clone()];
        assert_eq!(compare_group([&single, &single], &[1.0; 2], prior()), None);
        assert!(compare_group([&two, &single], &[1.0; 2], prior()).is_some());
        for broken in [vec![vec![0.0, 0.0], vec![1.0, 1.0]], vec![vec![1.0, 1.0]], vec![vec![], vec![1.0]]] {
            assert_eq!(compare_group([&[broken], &single], &[1.0; 2], prior()), None);
        }
        assert_eq!(compare_group([&[vec![]], &[vec![]]], &[], prior()), None);
    }
}
