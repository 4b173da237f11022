//! Where noise comes from: samples within runs within boots.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The standard deviations that add up to the noise, on logarithms: 0.02 is two percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VarianceComponents {
    /// Of samples within their run; none where no run has two.
    pub samples: Option<f64>,
    /// Of runs within their boot; none where no boot has two.
    pub runs: Option<f64>,
    /// Of boots; none where there is one.
    pub boots: Option<f64>,
}

/// The sources of the noise of boots, each of runs with their samples, all above zero.
///
/// The estimates of the analysis of variance of an unbalanced nested classification (Searle, Casella, McCulloch,
/// Variance Components, 1992, appendix F.2), each no less than 0. They are not robust: what lies far out counts. None
/// where a sample is not above zero.
pub fn variance_components(boots: &[Vec<Vec<f64>>]) -> Option<VarianceComponents> {
    if boots.iter().flatten().flatten().any(|sample| !(sample.is_finite() && *sample > 0.0)) {
        return None;
    }
    let boots: Vec<Vec<Group>> = boots
        .iter()
        .map(|runs| runs.iter().filter(|run| !run.is_empty()).map(|run| Group::of_logs(run)).collect())
        .collect();
    let boots: Vec<Vec<Group>> = boots.into_iter().filter(|runs: &Vec<Group>| !runs.is_empty()).collect();
    let of_boots: Vec<Group> = boots.iter().map(|runs| Group::of(runs)).collect();
    let all = Group::of(&of_boots);

    let runs = || boots.iter().flatten();
    let freedom = |more: usize, less: usize| (more > less).then(|| (more - less) as f64);
    let (run_count, boot_count) = (runs().count(), boots.len());
    let within = freedom(all.n as usize, run_count).map(|freedom| runs().map(|run| run.squares).sum::<f64>() / freedom);

    // What one run's size weighs in its boot and in all, and one boot's in all.
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

/// Some samples, or groups of them.
struct Group {
    /// Samples.
    n: f64,
    mean: f64,
    /// The weighted squares of what it is made of around its mean.
    squares: f64,
}

impl Group {
    fn of_logs(samples: &[f64]) -> Self {
        let single = |sample: &f64| Self { n: 1.0, mean: sample.ln(), squares: 0.0 };
        Self::of(&samples.iter().map(single).collect::<Vec<_>>())
    }

    fn of(parts: &[Self]) -> Self {
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
    fn near(ours: Option<f64>, wanted: f64) {
        let ours = ours.unwrap();
        assert!((ours - wanted).abs() < 1e-9, "{ours} is not {wanted}");
    }

    /// Balanced, by hand: mean squares 0.5, 4 and 32 with 4, 2 and 1 degrees of freedom.
    #[test]
    fn a_balanced_design_has_the_variances_of_its_mean_squares() {
        let boots = exp(&[&[&[0.0, 1.0], &[2.0, 3.0]], &[&[4.0, 5.0], &[6.0, 7.0]]]);
        let found = variance_components(&boots).unwrap();
        near(found.samples, 0.5_f64.sqrt());
        near(found.runs, ((4.0 - 0.5) / 2.0_f64).sqrt());
        near(found.boots, ((32.0 - 4.0) / 4.0_f64).sqrt());
    }

    #[test]
    fn what_is_there_once_has_no_variation() {
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
