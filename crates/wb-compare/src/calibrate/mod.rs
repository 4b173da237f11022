//! A/A calibration: false-positive rate, smallest detectable effect, and variance components of one system.
//!
//! Nothing is measured here: the samples, in measurement order, are assigned to two sides of the same system, by
//! several designs.

mod aa_comparison;

use wb_results::experiment::{Calibration, Design, DesignResult};
use wb_stats::{CONFIDENCE, GroupSequentialTest, Proportion, VarianceComponents, variance_components};

use self::aa_comparison::{AaComparison, compare_sides, detectable_percent};

/// A sample of the system. Samples are in measurement order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationSample {
    pub boot: u32,
    /// Within the boot.
    pub run: u32,
    pub value: f64,
    /// Disturbed from outside.
    pub disturbed: bool,
}

/// Settings of a calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    pub samples_per_side: usize,
    /// The smallest relevant difference, in percent.
    pub threshold: f64,
    /// The share of equal sides that may be reported as different.
    pub error_rate: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { samples_per_side: 10, threshold: 5.0, error_rate: 0.05 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("invalid sample {number} with value {value}: expected a finite value above zero")]
pub struct InvalidSample {
    /// From 1.
    pub number: usize,
    pub value: f64,
}

/// Assigns the samples by every design and compares each pair of sides.
pub fn calibrate(samples: &[CalibrationSample], options: &Options) -> Result<Calibration, InvalidSample> {
    let invalid = (1..).zip(samples).find(|(_, sample)| !(sample.value.is_finite() && sample.value > 0.0));
    if let Some((number, &CalibrationSample { value, .. })) = invalid {
        return Err(InvalidSample { number, value });
    }
    let runs: Vec<&[CalibrationSample]> =
        samples.chunk_by(|one, other| (one.boot, one.run) == (other.boot, other.run)).collect();
    let sequential_test = GroupSequentialTest::new(&[options.samples_per_side]);
    let designs = Design::ALL.map(|design| {
        let comparisons: Vec<AaComparison> = split_sides(design, &runs, options.samples_per_side)
            .iter()
            .filter_map(|sides| compare_sides(design, sides, &sequential_test, options))
            .collect();
        DesignResult {
            design,
            beyond_chance: proportion(&comparisons, |comparison| comparison.significant),
            verdicts: proportion(&comparisons, |comparison| comparison.reports_difference(options.threshold / 100.0)),
            detectable_percent: detectable_percent(&comparisons, options.threshold / 100.0),
        }
    });
    let undisturbed: Vec<CalibrationSample> = samples.iter().copied().filter(|sample| !sample.disturbed).collect();
    Ok(Calibration {
        samples: samples.len(),
        disturbed: samples.len() - undisturbed.len(),
        designs: designs.into(),
        variance_components: boot_components(samples),
        undisturbed_variance_components: boot_components(&undisturbed),
    })
}

fn split_sides(design: Design, runs: &[&[CalibrationSample]], size: usize) -> Vec<[Vec<f64>; 2]> {
    let values = |samples: &[CalibrationSample]| samples.iter().map(|sample| sample.value).collect::<Vec<f64>>();
    let windows = || runs.iter().flat_map(|run| run.chunks_exact(2 * size.max(1)));
    match design {
        Design::Blocked => windows().map(|window| window.split_at(size)).map(|(a, b)| [values(a), values(b)]).collect(),
        Design::Interleaved => {
            let alternate = |window: &[CalibrationSample], first: usize| {
                let pairs = window.chunks_exact(2).enumerate();
                pairs.map(|(index, pair)| pair[(index + first) % 2].value).collect::<Vec<f64>>()
            };
            windows().map(|window| [alternate(window, 0), alternate(window, 1)]).collect()
        }
        Design::Runs => {
            let pairs = runs.chunks_exact(2).filter_map(|pair| Some([pair[0].get(..size)?, pair[1].get(..size)?]));
            pairs.map(|pair| pair.map(values)).collect()
        }
    }
}

fn proportion(comparisons: &[AaComparison], predicate: impl Fn(&AaComparison) -> bool) -> Option<Proportion> {
    let count = comparisons.iter().filter(|comparison| predicate(comparison)).count();
    Proportion::new(count, comparisons.len(), CONFIDENCE)
}

fn boot_components(samples: &[CalibrationSample]) -> VarianceComponents {
    let boots = samples.chunk_by(|one, other| one.boot == other.boot).map(|boot| {
        let runs = boot.chunk_by(|one, other| one.run == other.run);
        runs.map(|run| run.iter().map(|sample| sample.value).collect()).collect()
    });
    // Every value is above zero.
    variance_components(&boots.collect::<Vec<Vec<Vec<f64>>>>()).unwrap_or(VarianceComponents {
        samples: None,
        runs: None,
        boots: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of one boot with these values.
    fn runs(values: &[&[f64]]) -> Vec<CalibrationSample> {
        let run = |(run, values): (u32, &&[f64])| {
            values
                .iter()
                .map(move |&value| CalibrationSample { boot: 1, run, value, disturbed: value > 1000.0 })
                .collect::<Vec<_>>()
        };
        (0..).zip(values).flat_map(run).collect()
    }

    #[test]
    fn samples_are_assigned_by_three_designs() {
        let samples = runs(&[&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0], &[8.0, 9.0, 10.0, 11.0]]);
        let runs: Vec<&[CalibrationSample]> = samples.chunk_by(|a, b| a.run == b.run).collect();
        let assigned = |design| split_sides(design, &runs, 2);
        let sides = |a: [f64; 2], b: [f64; 2]| [a.to_vec(), b.to_vec()];
        assert_eq!(assigned(Design::Blocked), [sides([1.0, 2.0], [3.0, 4.0]), sides([8.0, 9.0], [10.0, 11.0])]);
        assert_eq!(assigned(Design::Interleaved), [sides([1.0, 4.0], [2.0, 3.0]), sides([8.0, 11.0], [9.0, 10.0])]);
        assert_eq!(assigned(Design::Runs), [sides([1.0, 2.0], [6.0, 7.0])]);
    }

    #[test]
    fn without_noise_the_threshold_is_the_smallest_detectable_difference() {
        let calibration = calibrate(&runs(&[&[7.0; 40], &[7.0; 40]]), &Options::default()).unwrap();
        assert_eq!((calibration.samples, calibration.disturbed), (80, 0));
        for result in calibration.designs {
            let (significant, verdicts) = (result.beyond_chance.unwrap(), result.verdicts.unwrap());
            assert_eq!((significant.count, verdicts.count), (0, 0), "{:?}", result.design);
            assert!((result.detectable_percent.unwrap() - 5.0).abs() < 1e-9, "{result:?}");
        }
    }

    #[test]
    fn disturbed_samples_count_as_noise_and_are_excluded_from_the_second_estimate() {
        let samples = runs(&[&[100.0, 101.0, 99.0, 5000.0], &[100.0, 99.0, 101.0, 100.0]]);
        let calibration = calibrate(&samples, &Options::default()).unwrap();
        assert_eq!(calibration.disturbed, 1);
        let [all, quiet] = [calibration.variance_components, calibration.undisturbed_variance_components]
            .map(|sources| sources.samples.unwrap());
        assert!(all > 1.0 && quiet < 0.02, "{all} {quiet}");
        assert_eq!(calibration.variance_components.boots, None);
    }

    #[test]
    fn too_few_samples_have_no_result() {
        let calibration = calibrate(&runs(&[&[1.0, 2.0]]), &Options::default()).unwrap();
        assert!(
            calibration
                .designs
                .iter()
                .all(|result| result.beyond_chance.is_none() && result.detectable_percent.is_none())
        );
        let five = calibrate(&runs(&[&[1.0; 10]]), &Options { samples_per_side: 5, ..Options::default() }).unwrap();
        let interleaved = five.designs.iter().find(|result| result.design == Design::Interleaved).unwrap();
        assert_eq!((interleaved.beyond_chance.unwrap().total, interleaved.detectable_percent), (1, None));
        let none = calibrate(&[], &Options { samples_per_side: 0, ..Options::default() }).unwrap();
        assert_eq!((none.samples, none.variance_components.samples), (0, None));
    }

    #[test]
    fn an_invalid_sample_is_an_error() {
        let error = calibrate(&runs(&[&[1.0, f64::NAN]]), &Options::default()).unwrap_err();
        assert_eq!(error.to_string(), "invalid sample 2 with value NaN: expected a finite value above zero");
    }
}
