//! A/A calibration of simulated systems, by blocked, interleaved and per-run designs.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_compare::calibrate::{CalibrationSample, Options, calibrate};
use wb_results::experiment::Calibration;

const BOOTS: u32 = 100;
/// The number of runs per boot.
const RUNS: u32 = 10;
/// The number of samples per run.
const SAMPLES: u32 = 20;
const SEED: u64 = 8;
const OPTIONS: Options = Options { samples_per_side: 10, threshold: 5.0, error_rate: 0.05 };

/// A simulated system, given by standard deviations of logarithms.
#[derive(Clone, Copy)]
pub(crate) struct System {
    pub(crate) name: &'static str,
    /// Of samples within their run.
    samples: f64,
    /// Of runs within their boot.
    runs: f64,
    /// Of boots.
    boots: f64,
    /// The linear drift from the first to the last sample of a run.
    drift: f64,
    /// Of the steps of a random walk between samples.
    walk: f64,
}

const STEADY: System = System { name: "steady", samples: 0.03, runs: 0.0, boots: 0.0, drift: 0.0, walk: 0.0 };

const ALL: [System; 4] = [
    STEADY,
    System { name: "drifting", drift: 0.06, ..STEADY },
    System { name: "wandering", walk: 0.015, ..STEADY },
    System { name: "runs and boots differ", runs: 0.03, boots: 0.02, ..STEADY },
];

/// Simulates every system.
pub(crate) fn simulate() -> Vec<(System, Calibration)> {
    ALL.map(|system| (system, calibrate(&draw_samples(system), &OPTIONS).expect("drawn samples are above zero"))).into()
}

fn draw_samples(system: System) -> Vec<CalibrationSample> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut samples = Vec::new();
    for boot in 0..BOOTS {
        let boot_level = system.boots * normal(&mut rng);
        for run in 0..RUNS {
            let (level, mut walk) = (boot_level + system.runs * normal(&mut rng), 0.0);
            for at in 0..SAMPLES {
                walk += system.walk * normal(&mut rng);
                let drift = system.drift * f64::from(at) / f64::from(SAMPLES - 1);
                let log: f64 = level + drift + walk + system.samples * normal(&mut rng);
                samples.push(CalibrationSample { boot, run, value: 100.0 * log.exp(), disturbed: false });
            }
        }
    }
    samples
}

/// Box, Muller 1958
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
