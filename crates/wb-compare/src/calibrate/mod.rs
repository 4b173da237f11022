//! The same system against itself, many times: how often it is said to differ, the smallest effect that would have been
//! caught, and where the noise comes from.
//!
//! Nothing is run here: samples come in the order in which they were taken, and are dealt out to two sides that do not
//! differ, in several ways.

mod pair_test;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_stats::{CONFIDENCE, GroupSequentialTest, Proportion, VarianceComponents, variance_components};

use self::pair_test::{PairTest, detectable_percent, test_pair};

/// A sample of one system, in the order in which they were taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationSample {
    /// Which boot it is of.
    pub boot: u32,
    /// Which run of that boot.
    pub run: u32,
    /// Its value, above zero.
    pub value: f64,
    /// Whether something disturbed it from outside.
    pub disturbed: bool,
}

/// How samples are held against each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// So many samples on each side.
    pub samples_per_side: usize,
    /// A difference of less than so many percent does not matter.
    pub threshold: f64,
    /// How often sides that do not differ may be said to.
    pub error_rate: f64,
}

impl Default for Options {
    /// Ten samples a side, 5 percent, a rate of 0.05.
    fn default() -> Self {
        Self { samples_per_side: 10, threshold: 5.0, error_rate: 0.05 }
    }
}

/// What a system against itself comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// How many samples.
    pub samples: usize,
    /// So many of them were disturbed.
    pub disturbed: usize,
    /// Each way to deal them out.
    pub designs: Vec<DesignResult>,
    /// Where the noise comes from.
    pub variance_components: VarianceComponents,
    /// The same without what was disturbed.
    pub undisturbed_variance_components: VarianceComponents,
}

/// A way to deal samples out to two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// All of one side, then all of the other, within a run: `AAAA BBBB`. Judged by the rank-sum test.
    Blocked,
    /// In turns within a run, the side that begins changing: `ABBA`. Judged by the signed-rank test of pairs.
    Interleaved,
    /// Each side from a run of its own, one after the other. Judged by the rank-sum test, as if runs did not differ.
    Runs,
}

impl Design {
    /// Each.
    pub const ALL: [Self; 3] = [Self::Blocked, Self::Interleaved, Self::Runs];
}

/// What a way to deal samples out comes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DesignResult {
    /// Which.
    pub design: Design,
    /// Comparisons in which the sides are said to differ beyond chance; none without any comparison.
    pub beyond_chance: Option<Proportion>,
    /// Those that are said to be improved or regressed, beyond chance and beyond the threshold.
    pub verdicts: Option<Proportion>,
    /// The smallest difference, in percent, that would have been improved or regressed in 80 % of the comparisons; none
    /// where so few samples have no interval.
    pub detectable_percent: Option<f64>,
}

/// A value that is no sample.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("sample {number} is {value}: a finite value above zero is expected")]
pub struct InvalidSample {
    /// Which, from 1.
    pub number: usize,
    /// What it is.
    pub value: f64,
}

/// Deals samples out in every way and judges each pair of sides.
pub fn calibrate(samples: &[CalibrationSample], options: &Options) -> Result<Calibration, InvalidSample> {
    let bad = (1..).zip(samples).find(|(_, sample)| !(sample.value.is_finite() && sample.value > 0.0));
    if let Some((number, &CalibrationSample { value, .. })) = bad {
        return Err(InvalidSample { number, value });
    }
    let runs: Vec<&[CalibrationSample]> =
        samples.chunk_by(|one, other| (one.boot, one.run) == (other.boot, other.run)).collect();
    let looks = GroupSequentialTest::new(&[options.samples_per_side], options.error_rate);
    let orders = Design::ALL.map(|order| {
        let found: Vec<PairTest> = split_sides(order, &runs, options.samples_per_side)
            .iter()
            .filter_map(|sides| test_pair(order, sides, &looks, options))
            .collect();
        DesignResult {
            design: order,
            beyond_chance: proportion(&found, |found| found.differs),
            verdicts: proportion(&found, |found| found.has_verdict(options.threshold / 100.0)),
            detectable_percent: detectable_percent(&found, options.threshold / 100.0),
        }
    });
    let quiet: Vec<CalibrationSample> = samples.iter().copied().filter(|sample| !sample.disturbed).collect();
    Ok(Calibration {
        samples: samples.len(),
        disturbed: samples.len() - quiet.len(),
        designs: orders.into(),
        variance_components: boot_components(samples),
        undisturbed_variance_components: boot_components(&quiet),
    })
}

/// Two sides that do not differ, for every comparison that there are samples enough for.
fn split_sides(order: Design, runs: &[&[CalibrationSample]], each: usize) -> Vec<[Vec<f64>; 2]> {
    let values = |samples: &[CalibrationSample]| samples.iter().map(|sample| sample.value).collect::<Vec<f64>>();
    let windows = || runs.iter().flat_map(|run| run.chunks_exact(2 * each.max(1)));
    match order {
        Design::Blocked => windows().map(|window| window.split_at(each)).map(|(a, b)| [values(a), values(b)]).collect(),
        Design::Interleaved => {
            let turn = |window: &[CalibrationSample], first: usize| {
                let pairs = window.chunks_exact(2).enumerate();
                pairs.map(|(at, pair)| pair[(at + first) % 2].value).collect::<Vec<f64>>()
            };
            windows().map(|window| [turn(window, 0), turn(window, 1)]).collect()
        }
        Design::Runs => {
            let pairs = runs.chunks_exact(2).filter_map(|pair| Some([pair[0].get(..each)?, pair[1].get(..each)?]));
            pairs.map(|pair| pair.map(values)).collect()
        }
    }
}

fn proportion(found: &[PairTest], is: impl Fn(&PairTest) -> bool) -> Option<Proportion> {
    Proportion::new(found.iter().filter(|found| is(found)).count(), found.len(), CONFIDENCE)
}

/// Where the noise of samples comes from.
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
    fn samples_are_dealt_out_in_three_ways() {
        let samples = runs(&[&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0], &[8.0, 9.0, 10.0, 11.0]]);
        let runs: Vec<&[CalibrationSample]> = samples.chunk_by(|a, b| a.run == b.run).collect();
        let dealt = |order| split_sides(order, &runs, 2);
        let sides = |a: [f64; 2], b: [f64; 2]| [a.to_vec(), b.to_vec()];
        assert_eq!(dealt(Design::Blocked), [sides([1.0, 2.0], [3.0, 4.0]), sides([8.0, 9.0], [10.0, 11.0])]);
        assert_eq!(dealt(Design::Interleaved), [sides([1.0, 4.0], [2.0, 3.0]), sides([8.0, 11.0], [9.0, 10.0])]);
        assert_eq!(dealt(Design::Runs), [sides([1.0, 2.0], [6.0, 7.0])]);
    }

    #[test]
    fn without_noise_the_threshold_is_what_is_caught() {
        let calibration = calibrate(&runs(&[&[7.0; 40], &[7.0; 40]]), &Options::default()).unwrap();
        assert_eq!((calibration.samples, calibration.disturbed), (80, 0));
        for of in calibration.designs {
            let (chance, told) = (of.beyond_chance.unwrap(), of.verdicts.unwrap());
            assert_eq!((chance.count, told.count), (0, 0), "{:?}", of.design);
            assert!((of.detectable_percent.unwrap() - 5.0).abs() < 1e-9, "{of:?}");
        }
    }

    #[test]
    fn disturbed_samples_count_as_noise_and_are_left_out_of_what_is_told_beside_it() {
        let samples = runs(&[&[100.0, 101.0, 99.0, 5000.0], &[100.0, 99.0, 101.0, 100.0]]);
        let calibration = calibrate(&samples, &Options::default()).unwrap();
        assert_eq!(calibration.disturbed, 1);
        let [all, quiet] = [calibration.variance_components, calibration.undisturbed_variance_components]
            .map(|sources| sources.samples.unwrap());
        assert!(all > 1.0 && quiet < 0.02, "{all} {quiet}");
        assert_eq!(calibration.variance_components.boots, None);
    }

    #[test]
    fn too_few_samples_say_nothing() {
        let calibration = calibrate(&runs(&[&[1.0, 2.0]]), &Options::default()).unwrap();
        assert!(calibration.designs.iter().all(|of| of.beyond_chance.is_none() && of.detectable_percent.is_none()));
        let five = calibrate(&runs(&[&[1.0; 10]]), &Options { samples_per_side: 5, ..Options::default() }).unwrap();
        let interleaved = five.designs.iter().find(|of| of.design == Design::Interleaved).unwrap();
        assert_eq!((interleaved.beyond_chance.unwrap().total, interleaved.detectable_percent), (1, None));
        let none = calibrate(&[], &Options { samples_per_side: 0, ..Options::default() }).unwrap();
        assert_eq!((none.samples, none.variance_components.samples), (0, None));
    }

    #[test]
    fn a_bad_sample_is_named() {
        let error = calibrate(&runs(&[&[1.0, f64::NAN]]), &Options::default()).unwrap_err();
        assert_eq!(error.to_string(), "sample 2 is NaN: a finite value above zero is expected");
    }
}
