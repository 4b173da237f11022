//! Simulates runs of one system: the first ones train the model, the last ones are compared with it.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, StudentsT};
use wb_stats::{CONFIDENCE, Replicates, RunNoise, Samples, joint_dip, trend};

use super::populations::Population;

const REPETITIONS: usize = 2000;
const SEED: u64 = 5;

/// The parameters of a simulation.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    /// The shape of the noise: of runs if they vary, of samples otherwise.
    pub(crate) population: Population,
    /// The scale of the noise between runs.
    pub(crate) between: f64,
    /// The scale of the noise of samples.
    pub(crate) within: f64,
    /// Number of runs of the model.
    pub(crate) runs: usize,
    /// Number of samples in each run of the model.
    pub(crate) samples: usize,
    /// Number of runs on each side.
    pub(crate) side: usize,
    /// Number of samples in each run of a side.
    pub(crate) side_samples: usize,
}

/// The results of many simulations; fractions unless noted otherwise.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Comparisons of equal sides with a false alarm.
    pub(crate) alarms: f64,
    /// False alarms if runs are assumed to be normally distributed.
    pub(crate) not_widened: f64,
    /// Comparisons that detect a difference of 10 %.
    pub(crate) detected: f64,
    /// The median half-width of the interval, as a fraction.
    pub(crate) half_width: f64,
    /// Models with a significant trend over their runs.
    pub(crate) trend: f64,
    /// Models with significantly more than one mode within their runs.
    pub(crate) modes: f64,
}

/// The p-value of a difference between the logarithms of two sides' levels, for normal runs
fn normal_p_value(noise: &RunNoise, difference: f64, side: usize) -> Option<f64> {
    let student = StudentsT::new(0.0, 1.0, noise.degrees).ok()?;
    let error = noise.stddev * (2.0 / side as f64).sqrt();
    (error > 0.0).then(|| 2.0 * student.sf(difference.abs() / error))
}

impl Scenario {
    pub(crate) fn simulate(self) -> Outcome {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let mut outcome = Outcome::default();
        let mut halves = Vec::new();
        let weight = 1.0 / REPETITIONS as f64;
        for _ in 0..REPETITIONS {
            let all = self.draw_runs(&mut rng);
            let (model, sides) = all.split_at(self.runs);
            let (a, b) = sides.split_at(self.side);
            let increased: Vec<Vec<f64>> =
                b.iter().map(|run| run.iter().map(|sample| sample * 1.1).collect()).collect();
            // Samples that are not above zero have no ratio, and raise no alarm.
            let Some(replicates) = Replicates::new(&[model.to_vec()]) else { continue };
            let significant = |p: Option<f64>| if p.is_some_and(|p| p <= 1.0 - CONFIDENCE) { weight } else { 0.0 };
            let ratio = replicates.noise.ratio(a, b);
            let difference = ratio.map_or(0.0, |ratio| ratio.ratio(CONFIDENCE).estimate.ln());
            outcome.not_widened += significant(normal_p_value(&replicates.noise, difference, self.side));
            outcome.alarms += significant(ratio.map(|ratio| ratio.p_value()));
            outcome.detected += significant(replicates.noise.ratio(a, &increased).map(|ratio| ratio.p_value()));
            let interval = ratio.and_then(|ratio| ratio.ratio(CONFIDENCE).interval);
            halves.extend(interval.map(|interval| (interval.high / interval.low).sqrt() - 1.0));
            let runs: Vec<Samples> = model.iter().flat_map(|run| Samples::new(run)).collect();
            let medians: Vec<f64> = runs.iter().map(Samples::median).collect();
            let over_runs = Samples::new(&medians).ok().and_then(|medians| trend(&medians));
            outcome.trend += significant(over_runs.map(|trend| trend.p_value));
            outcome.modes += significant(joint_dip(&runs).map(|dip| dip.p_value));
        }
        outcome.half_width = Samples::new(&halves).map_or(f64::NAN, |halves| halves.median());
        outcome
    }

    /// The runs of the model, then those of both sides, in time order.
    fn draw_runs(self, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
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
