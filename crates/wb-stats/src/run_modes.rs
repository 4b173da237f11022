//! Two modes of the runs of one system: groups of levels with a gap between them. The spread of all levels is that of
//! neither group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RunNoise;
use crate::replicates::{RunLevel, sum_of_squares};

/// Two modes of the runs of a system.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunModes {
    /// The distance of the modes, as the logarithm of a ratio; of several systems, the largest.
    pub apart: f64,
    /// The standard deviation of a run's level around that of its mode.
    pub stddev: f64,
    /// The degrees of freedom of the standard deviation.
    pub degrees: f64,
}

/// A mode has this many runs: a single one is an outlier.
const MIN_RUNS: usize = 2;

/// The gap between two modes is this many standard deviations of the runs within them, or more. With six runs from one
/// normal population, 3 % have such a gap; with eight, 1 %; with ten, 0.3 %; from skewed populations (log-normal, σ =
/// 1), 4 to 6 %. Two equally frequent modes that are twelve standard deviations apart have it in 76, 92 and 97 %.
const GAP: f64 = 5.0;

impl RunModes {
    /// Finds the modes of systems, each a list of runs with their samples; uses only systems with two modes. `None` if
    /// there is no such system, or a sample is not above zero.
    pub fn new(systems: &[Vec<Vec<f64>>]) -> Option<Self> {
        let levels = |runs: &Vec<Vec<f64>>| runs.iter().map(|run| RunLevel::new(run)).collect::<Option<Vec<_>>>();
        let systems = systems.iter().map(levels).collect::<Option<Vec<_>>>()?;
        let modes: Vec<SystemModes> = systems.into_iter().filter_map(SystemModes::new).collect();
        let degrees: f64 = modes.iter().map(|modes| modes.degrees).sum();
        let squares: f64 = modes.iter().map(|modes| modes.squares).sum();
        let apart = modes.iter().map(|modes| modes.apart).max_by(f64::total_cmp)?;
        Some(Self { apart, stddev: (squares / degrees).sqrt(), degrees })
    }

    /// The factor by which two single runs of one mode differ at most: as [`RunNoise::repeatability_limit`].
    pub fn repeatability_limit(&self, confidence: f64) -> f64 {
        let Self { stddev, degrees, .. } = *self;
        RunNoise { stddev, sampling: 0.0, within: None, degrees }.repeatability_limit(confidence)
    }
}

struct SystemModes {
    apart: f64,
    /// Sum of the squares of the distances of levels from their modes.
    squares: f64,
    degrees: f64,
}

impl SystemModes {
    /// Divides the runs at their widest gap.
    fn new(mut runs: Vec<RunLevel>) -> Option<Self> {
        runs.sort_by(|one, other| one.level.total_cmp(&other.level));
        let gap = |index: usize| runs[index].level - runs[index - 1].level;
        let possible = MIN_RUNS..(runs.len() + 1).saturating_sub(MIN_RUNS);
        let index = possible.max_by(|one, other| gap(*one).total_cmp(&gap(*other)))?;
        let (low, high) = runs.split_at(index);
        let mean = |runs: &[RunLevel]| runs.iter().map(|run| run.level).sum::<f64>() / runs.len() as f64;
        let (squares, degrees) = (sum_of_squares(low) + sum_of_squares(high), (runs.len() - 2) as f64);
        let are_apart = gap(index) > 0.0 && gap(index) >= GAP * (squares / degrees).sqrt();
        are_apart.then(|| Self { apart: mean(high) - mean(low), squares, degrees })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(systems: &[&[f64]]) -> Option<RunModes> {
        let runs = |levels: &&[f64]| levels.iter().map(|level| vec![*level]).collect::<Vec<_>>();
        RunModes::new(&systems.iter().map(runs).collect::<Vec<_>>())
    }

    #[test]
    fn runs_in_two_modes_have_their_distance_and_the_spread_within() {
        let modes = of(&[&[100.0, 131.0, 101.0, 130.0, 99.0, 129.0]]).unwrap();
        assert!((modes.apart - 1.3_f64.ln()).abs() < 0.001 && modes.degrees == 4.0, "{modes:?}");
        assert!((modes.stddev - 0.009).abs() < 0.001, "{modes:?}");
        let limit = modes.repeatability_limit(0.95);
        assert!((1.03..1.06).contains(&limit), "{limit}");
        let several = of(&[&[100.0, 131.0, 101.0, 130.0], &[50.0, 51.0, 50.5, 52.0]]).unwrap();
        assert_eq!(several.degrees, 2.0, "only the system with modes");
    }

    #[test]
    fn one_mode_with_an_outlier_has_no_two() {
        assert_eq!(of(&[&[100.0, 102.0, 98.0, 101.0, 103.0, 99.0, 97.0, 100.5]]), None);
        assert_eq!(of(&[&[100.0, 100.5, 99.5, 100.2, 99.8, 130.0]]), None);
        assert_eq!(of(&[&[100.0, 100.0, 100.0, 100.0]]), None);
        assert_eq!(of(&[&[100.0, 130.0, 131.0]]), None, "a mode with a single run");
        assert_eq!(of(&[&[1.0, -1.0, 1.0, 1.0]]), None);
        assert_eq!(of(&[]), None);
    }
}
