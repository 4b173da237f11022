//! Variance components of the noise: samples within runs within boots.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The standard deviations of the components of the noise, on logarithms: 0.02 is two percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VarianceComponents {
    /// Between samples within a run; `None` if no run has two samples.
    pub samples: Option<f64>,
    /// Between runs within a boot; `None` if no boot has two runs.
    pub runs: Option<f64>,
    /// Between boots; `None` if there is only one.
    pub boots: Option<f64>,
}

/// Estimates the variance components of boots, each a list of runs with their samples, all above zero.
///
/// The estimates are those of the analysis of variance of an unbalanced nested classification (Searle, Casella,
/// McCulloch, Variance Components, 1992, appendix F.2), each no less than 0. They are not robust: outliers count in
/// full. `None` if a sample is not above zero.
pub fn variance_components(boots: &[Vec<Vec<f64>>]) -> Option<VarianceComponents> {
    if boots.iter().flatten().flatten().any(|sample| !(sample.is_finite() && *sample > 0.0)) {
        return None;
    }
    let boots: Vec<Vec<Group>> = boots
        .iter()
        .map(|runs| runs.iter().filter(|run| !run.is_empty()).map(|run| Group::of_logs(run)).collect())
        .collect();
    let boots: Vec<Vec<Group>> = boots.into_iter().filter(|runs: &Vec<Group>| !runs.is_empty()).collect();
    let of_boots: Vec<Group> = boots.iter().map(|runs| Group::new(runs)).collect();
    let all = Group::new(&of_boots);

    let runs = || boots.iter().flatten();
    let freedom = |more: usize, less: usize| (more > less).then(|| (more - less) as f64);
    let (run_count, boot_count) = (runs().count(), boots.len());
    let within = freedom(all.n as usize, run_count).map(|freedom| runs().map(|run| run.squares).sum::<f64>() / freedom);

    // The weights of the runs' sizes in their boot and in total, and of the boots' sizes in total.
    let in_boots: f64 =
        boots.iter().zip(&of_boots).flat_map(|(runs, boot)| runs.iter().map(|run| run.n * run.n / boot.n)).sum();
    let in_all: f64 = runs().map(|run| run.n * run.n / all.n).sum();
    let boots_in_all: f64 = of_boots.iter().map(|boot| boot.n * boot.n / all.n).sum();

    let noise = within.unwrap_or(0.0);
    let between_runs = freedom(run_count, boot_count).map(|freedom| {
        let squares: f64 = of_boots.iter().map(|boot| boot.squares).sum();
        ((squares - freedom * noise) / (all.n - in_boots)).max(0.0)
    });
    let between_boots = freedom(boot_count, 1).map(|freedom| {
        let explained = freedom * noise + (in_boots - in_all) * between_runs.unwrap_or(0.0);
        ((all.squares - explained) / (all.n - boots_in_all)).max(0.0)
    });
    let [samples, runs, boots] = [within, between_runs, between_boots].map(|variance| variance.map(f64::sqrt));
    Some(VarianceComponents { samples, runs, boots })
}

/// A group of samples, or of smaller groups.
struct Group {
    /// Number of samples.
    n: f64,
    mean: f64,
    /// The weighted sum of squares of its parts around its mean.
    squares: f64,
}

impl Group {
    fn of_logs(samples: &[f64]) -> Self {
        let single = |sample: &f64| Self { n: 1.0, mean: sample.ln(), squares: 0.0 };
        Self::new(&samples.iter().map(single).collect::<Vec<_>>())
    }

    fn new(parts: &[Self]) -> Self {
        let n: f64 = parts.iter().map(|part| part.n).sum();
        let mean = parts.iter().map(|part| part.n * part.mean).sum::<f64>() / n;
        let squares = parts.iter().map(|part| part.n * (part.mean - mean).powi(2)).sum();
        Self { n, mean, squares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp(boots: &[&[&[f64]]]) -> Vec<Vec<Vec<f64>>> {
        let run = |run: &&[f64]| run.iter().map(|log| log.exp()).collect();
        boots.iter().map(|runs| runs.iter().map(run).collect()).collect()
    }

    #[track_caller]
    fn near(actual: Option<f64>, expected: f64) {
        let actual = actual.unwrap();
        assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
    }

    /// A balanced design, computed by hand: mean squares 0.5, 4 and 32 with 4, 2 and 1 degrees of freedom.
    #[test]
    fn a_balanced_design_has_the_variances_of_its_mean_squares() {
        let boots = exp(&[&[&[0.0, 1.0], &[2.0, 3.0]], &[&[4.0, 5.0], &[6.0, 7.0]]]);
        let components = variance_components(&boots).unwrap();
        near(components.samples, 0.5_f64.sqrt());
        near(components.runs, ((4.0 - 0.5) / 2.0_f64).sqrt());
        near(components.boots, ((32.0 - 4.0) / 4.0_f64).sqrt());
    }

    #[test]
    fn a_single_item_has_no_variation() {
        let one = variance_components(&exp(&[&[&[0.0, 1.0]]])).unwrap();
        assert_eq!((one.runs, one.boots), (None, None));
        near(one.samples, 0.5_f64.sqrt());
        let singles = variance_components(&exp(&[&[&[0.0], &[2.0]], &[&[1.0], &[3.0]]])).unwrap();
        assert_eq!(singles.samples, None);
        near(singles.runs, 2.0_f64.sqrt());
        assert_eq!(singles.boots, Some(0.0));
        assert_eq!(variance_components(&[vec![vec![1.0, 0.0]]]), None);
        assert_eq!(variance_components(&[]), Some(VarianceComponents { samples: None, runs: None, boots: None }));
    }
}
