//! The io.cost model of several results.

use std::collections::{BTreeMap, BTreeSet};

use statrs::distribution::{ContinuousCDF, StudentsT};
use wb_model::IocostModel;
use wb_stats::Samples;

/// Fewest different models of which one can be an outlier.
const MIN_MODELS: usize = 4;
const NAMES: [&str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

/// Why each model is an outlier; `None` if it is not. An outlier has a parameter that is too far from the other models,
/// on either side: among as many models of one device, less than half a model is expected to be that far in any
/// parameter. Then the remaining models are judged again, because one far away hides another.
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
    let of_each = |index: usize| all.iter().map(|model| model[index] as f64).collect::<Vec<f64>>();
    let of_others =
        |index: usize| all.iter().filter(|other| *other != model).map(|other| other[index] as f64).collect();
    let outlying = |(index, name): (usize, &str)| {
        if !is_outlier(model[index] as f64, of_others(index)) {
            return None;
        }
        let all = Samples::new(&of_each(index)).ok()?;
        Some(format!("outlier: {name}={}, all {:.0} ± {:.0}", model[index], all.mean(), all.stddev()?))
    };
    NAMES.into_iter().enumerate().find_map(outlying)
}

/// Whether a value is further from others than is expected of less than half a value of all parameters of as many
/// models, if they vary normally: its distance from their mean, by their standard deviation, has Student's
/// distribution.
fn is_outlier(value: f64, others: Vec<f64>) -> bool {
    let Ok(samples) = Samples::new(&others) else { return false };
    let (Some(stdev), count) = (samples.stddev(), others.len() as f64) else { return false };
    let distance = (value - samples.mean()).abs() / (stdev * f64::sqrt(1.0 + 1.0 / count));
    let expected = |student: StudentsT| 2.0 * student.sf(distance) * (count + 1.0) * NAMES.len() as f64;
    if stdev > 0.0 {
        StudentsT::new(0.0, 1.0, count - 1.0).is_ok_and(|student| expected(student) < 0.5)
    } else {
        value != samples.mean()
    }
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
    fn models_of_one_device_are_hardly_ever_outliers() {
        // A linear congruential generator; the sum of 12 uniform numbers is about normal.
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1_u64 << 24) as f64
        };
        for count in [4, 10, 20] {
            let mut rejected = 0;
            for _ in 0..50 {
                let mut parameter = || (1e6 + 3e4 * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0)) as u64;
                let models: Vec<IocostModel> =
                    (0..count).map(|_| IocostModel::from_array(std::array::from_fn(|_| parameter()))).collect();
                rejected += outliers(&models).iter().flatten().count();
            }
            assert!(rejected < 50, "{rejected} in 50 merges of {count}");
        }
    }

    #[test]
    fn a_model_of_several_results_counts_once() {
        assert_eq!(median(&models(&[100, 100, 100, 110, 120])).rbps, 110);
        assert_eq!(median(&models(&[100, 110])).rbps, 110);
    }
}
