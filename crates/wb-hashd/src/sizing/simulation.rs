//! A machine for tests of the sequence: rate and latency as functions of the parameters, with noise.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_model::Bytes;
use wb_sys::telemetry::DisturbanceMark;

use super::{Round, RoundOutcome, RoundPlan, SizingConfig, Stage};

/// The footprint at a `mem-frac` of 1.
const MEMORY: u64 = 4 << 30;

pub(super) fn config() -> SizingConfig {
    SizingConfig { memory: Some(Bytes(MEMORY)), ..SizingConfig::default() }
}

/// What disturbed a round.
pub(super) fn disturbed() -> Vec<DisturbanceMark> {
    vec![DisturbanceMark::Steal { percent: 5.0, threshold: 1.0 }]
}

pub(super) struct Machine {
    /// Bytes that a CPU hashes per second.
    pub(super) hash_rate: f64,
    /// Requests per second at saturation.
    pub(super) capacity: f64,
    /// The footprint above which the rate falls.
    pub(super) footprint: f64,
    /// The footprint above which anonymous memory does not fit.
    pub(super) fits: f64,
    /// A footprint whose first round is as if it were sustained.
    pub(super) late_at: Option<f64>,
    /// Relative error of figures.
    pub(super) noise: f64,
    /// The number of rounds from now on that are disturbed.
    pub(super) disturbed_rounds: usize,
    pub(super) rng: ChaCha8Rng,
}

impl Default for Machine {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            hash_rate: 250e6,
            capacity: 500.0,
            footprint: 0.53,
            fits: f64::INFINITY,
            late_at: None,
            noise: 0.01,
            disturbed_rounds: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    pub(super) fn run(&mut self, config: &SizingConfig, plan: RoundPlan) -> Round {
        let outcome = self.outcome(config, &plan);
        let disturbance = if self.disturbed_rounds > 0 { disturbed() } else { Vec::new() };
        self.disturbed_rounds = self.disturbed_rounds.saturating_sub(1);
        Round { plan, outcome, seconds: 30.0, disturbance }
    }

    fn outcome(&mut self, config: &SizingConfig, plan: &RoundPlan) -> RoundOutcome {
        if plan.mem_frac > self.fits {
            return RoundOutcome::DoesNotFit { required: MEMORY, available: MEMORY / 4 };
        }
        let noise = 1.0 + self.noise * self.rng.random_range(-1.0..1.0);
        let params = plan.params(config);
        let bytes = params.file_size_mean.0 as f64 * (1.0 + params.anon_size_ratio) * params.cpu_ratio;
        let (rps, latency) = match plan.stage {
            Stage::HashSize => (1.0, bytes / self.hash_rate),
            Stage::RpsMax => (self.capacity, params.lat_target.seconds()),
            _ => {
                let is_late = self.late_at.take_if(|late| (*late - plan.mem_frac).abs() < 1e-6).is_some();
                let excess = if is_late { 0.0 } else { (plan.mem_frac / self.footprint - 1.0).max(0.0) };
                (params.rps_target.unwrap_or(0.0) * (1.0 - 5.0 * excess).max(0.02), 0.05)
            }
        };
        RoundOutcome::Measured { rps: rps * noise, latency: latency * noise, is_converged: true }
    }
}
