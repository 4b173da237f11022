//! The io.cost model of several results.

use std::collections::{BTreeMap, BTreeSet};

use statrs::distribution::{ContinuousCDF, Normal};
use wb_stats::Samples;

use crate::IocostModel;

/// Fewest different models of which one can be an outlier.
const MIN_MODELS: usize = 4;
const NAMES: [&str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

/// Why each model is an outlier; `None` if it is not. Of the different models, less than half of one is expected as far
/// from their mean on its side (Chauvenet's criterion, applied to either side) in one of its parameters. Without the
/// outliers that are found, the others are judged again: one far away hides another.
pub(super) fn outliers(models: &[IocostModel]) -> Vec<Option<String>> {
    let mut accepted = distinct(models);
    let mut found: BTreeMap<[u64; 6], String> = BTreeMap::new();
    while accepted.len() >= MIN_MODELS {
        let round: Vec<([u64; 6], String)> =
            accepted.iter().filter_map(|model| Some((*model, deviation(model, &accepted)?))).collect();
        if round.is_empty() {
            break;
        }
        accepted.retain(|model| round.iter().all(|(outlier, _)| outlier != model));
        found.extend(round);
    }
    models.iter().map(|model| found.get(&model.to_array()).cloned()).collect()
}

/// In which parameter a model is an outlier of all.
fn deviation(model: &[u64; 6], all: &BTreeSet<[u64; 6]>) -> Option<String> {
    let parameters = NAMES.into_iter().enumerate();
    parameters
        .filter_map(|(at, name)| {
            let values: Vec<f64> = all.iter().map(|model| model[at] as f64).collect();
            let samples = Samples::new(&values).ok()?;
            let (mean, stdev) = (samples.mean(), samples.stddev()?);
            // Equal values have no outliers, and no distribution.
            let normal = Normal::new(mean, stdev).ok().filter(|_| stdev > 0.0)?;
            let beyond = normal.sf(mean + (model[at] as f64 - mean).abs());
            let is_outlier = beyond * (values.len() as f64) < 0.5;
            is_outlier.then(|| format!("outlier: {name}={}, all {mean:.0} ± {stdev:.0}", model[at]))
        })
        .next()
}

/// The median of each parameter over the different models; of an even number, the upper one.
pub(super) fn median(models: &[IocostModel]) -> IocostModel {
    let distinct = distinct(models);
    let mut medians = [0; 6];
    for (parameter, median) in medians.iter_mut().enumerate() {
        let mut values: Vec<u64> = distinct.iter().map(|model| model[parameter]).collect();
        values.sort_unstable();
        *median = values.get(values.len() / 2).copied().unwrap_or_default();
    }
    IocostModel::from_array(medians)
}

/// A model that several results share counts once: it was measured once.
fn distinct(models: &[IocostModel]) -> BTreeSet<[u64; 6]> {
    models.iter().map(|model| model.to_array()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(rbps: &[u64]) -> Vec<IocostModel> {
        rbps.iter().map(|rbps| IocostModel::from_array([*rbps, 280, 280, 1000, 280, 280])).collect()
    }

    #[test]
    fn outliers_on_either_side_are_rejected() {
        let is_outlier = |rbps: &[u64]| outliers(&models(rbps)).iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!(is_outlier(&[125, 122, 127, 160]), [false, false, false, true]);
        assert_eq!(is_outlier(&[125, 122, 127, 90]), [false, false, false, true]);
        assert_eq!(is_outlier(&[125, 122, 160]), [false; 3], "three models have no outlier");
        assert_eq!(is_outlier(&[100, 101, 102, 103, 104, 900, 10])[5..], [true, true], "one does not hide the other");
        let reasons = outliers(&models(&[125, 122, 127, 160]));
        assert_eq!(reasons[3].as_deref(), Some("outlier: rbps=160, all 134 ± 18"));
    }

    #[test]
    fn a_model_of_several_results_counts_once() {
        assert_eq!(median(&models(&[100, 100, 100, 110, 120])).rbps, 110);
        assert_eq!(median(&models(&[100, 110])).rbps, 110);
    }
}
