//! Runs of one system: some make the model, the last ones are compared by it.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, StudentsT};
use wb_stats::{CONFIDENCE, Replicates, RunNoise, Samples, joint_dip, trend};

use super::populations::Population;

const REPETITIONS: usize = 2000;
const SEED: u64 = 5;

/// What is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Scene {
    /// The shape of what varies: runs where these do, else samples.
    pub(crate) population: Population,
    /// The scale of the noise between runs.
    pub(crate) between: f64,
    /// The scale of the noise of samples.
    pub(crate) within: f64,
    /// Runs of the model.
    pub(crate) runs: usize,
    /// Samples in each of these.
    pub(crate) samples: usize,
    /// Runs on each side.
    pub(crate) side: usize,
    /// Samples in each of these.
    pub(crate) side_samples: usize,
}

/// What came of many.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Said to differ where nothing does.
    pub(crate) alarms: f64,
    /// The same if runs were taken to be normal.
    pub(crate) not_widened: f64,
    /// Said to differ where a side is 10 % more.
    pub(crate) found: f64,
    /// Half the width of the interval, as a share; the middle one.
    pub(crate) half: f64,
    /// The model sees a trend over its runs.
    pub(crate) trend: f64,
    /// The model sees modes within its runs.
    pub(crate) modes: f64,
}

/// The probability of so large a difference of the logarithms of two sides' levels
fn as_if_normal(noise: &RunNoise, difference: f64, side: usize) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, noise.degrees).ok()?;
    let error = noise.stddev * (2.0 / side as f64).sqrt();
    (error > 0.0).then(|| 2.0 * student.sf(difference.abs() / error))
}

impl Scene {
    pub(crate) fn simulated(self) -> Outcome {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut outcome = Outcome::default();
        let mut halves = Vec::new();
        let one = 1.0 / REPETITIONS as f64;
        for _ in 0..REPETITIONS {
            let all = self.drawn(&mut rng);
            let (model, sides) = all.split_at(self.runs);
            let (a, b) = sides.split_at(self.side);
            let more: Vec<Vec<f64>> = b.iter().map(|run| run.iter().map(|sample| sample * 1.1).collect()).collect();
            // What is not above zero has no ratio, and raises no alarm.
            let Some(known) = Replicates::of(&[model.to_vec()]) else { continue };
            let shown = |p: Option<f64>| if p.is_some_and(|p| p <= 1.0 - CONFIDENCE) { one } else { 0.0 };
            let ratio = known.noise.ratio(a, b);
            let difference = ratio.map_or(0.0, |ratio| ratio.ratio(CONFIDENCE).estimate.ln());
            outcome.not_widened += shown(as_if_normal(&known.noise, difference, self.side));
            outcome.alarms += shown(ratio.map(|ratio| ratio.p_value()));
            outcome.found += shown(known.noise.ratio(a, &more).map(|ratio| ratio.p_value()));
            let interval = ratio.and_then(|ratio| ratio.ratio(CONFIDENCE).interval);
            halves.extend(interval.map(|interval| (interval.high / interval.low).sqrt() - 1.0));
            let runs: Vec<Samples> = model.iter().flat_map(|run| Samples::new(run)).collect();
            let medians: Vec<f64> = runs.iter().map(Samples::median).collect();
            let over_runs = Samples::new(&medians).ok().and_then(|medians| trend(&medians));
            outcome.trend += shown(over_runs.map(|trend| trend.p_value));
            outcome.modes += shown(joint_dip(&runs).map(|dip| dip.p_value));
        }
        outcome.half = Samples::new(&halves).map_or(f64::NAN, |halves| halves.median());
        outcome
    }

    /// The model's runs, and those of both sides, in the order in which they were made.
    fn drawn(self, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
        let runs = self.runs + 2 * self.side;
        let of_samples = if self.between > 0.0 { Population::Normal } else { self.population };
        let run = |at: usize| {
            let level = self.population.draw(rng, self.between, at, runs) / 100.0;
            let samples = if at < self.runs { self.samples } else { self.side_samples };
            (0..samples).map(|at| level * of_samples.draw(rng, self.within, at, samples.max(2))).collect()
        };
        (0..runs).map(run).collect()
    }
}
