//! The order of the rounds, as a pure function of those that are finished.

use std::slice;

use wb_model::Bytes;

use super::{Round, RoundOutcome, RoundPlan, SizingConfig, SizingError, SizingResult, Stage};
use crate::params::HASH_TIME;
use crate::{HashdParams, PAGE};

/// Relative tolerance of the hash size and of the latency at saturation.
const TOLERANCE: f64 = 0.05;
const HASH_SIZE_ROUNDS: usize = 10;
const RPS_MAX_ROUNDS: usize = 5;
/// Footprint of the first two stages as a fraction of the largest: four tenths of the machine's memory by default.
const CPU_MEM_FRAC: f64 = 0.1;
/// Step of a growing footprint, in `mem-frac`.
const UP_STEP: f64 = 0.2;
/// Loss of rate from which a footprint is too large while it grows, is bisected, and is refined.
const UP_LOSS: f64 = 0.25;
const BISECT_LOSS: f64 = 0.1;
const REFINE_LOSS: f64 = 0.075;
/// Bisection ends when its bounds are closer than this, in `mem-frac`.
const BISECT_RESOLUTION: f64 = 0.05;
/// Steps of a refined footprint, relative to where it begins, down to half of that.
const REFINE_STEP: f64 = 0.025;
/// How often the bounds of the bisection may turn out to be wrong.
const MAX_CORRECTIONS: usize = 3;
/// Repeats of one disturbed round.
const REPEATS: usize = 2;
/// The number of file chunks of a request is chosen so that it meets its latency target even if this fraction of them
/// is read from a disk, each in this time in seconds. So the number of I/Os does not depend on the CPU.
const DISK_READ_FRACTION: f64 = 0.2;
const DISK_READ_TIME: f64 = 0.0025;

#[derive(Clone, Debug, PartialEq)]
pub enum SizingStep {
    Run(RoundPlan),
    Done(Box<SizingResult>),
}

/// Determines what follows the finished rounds of a resolved configuration. Fails if they are not its rounds, or there
/// is no answer.
pub fn next_step(config: &SizingConfig, rounds: &[Round]) -> Result<SizingStep, SizingError> {
    // The search is written as if each round returned at once: `Replay::measure` takes the finished rounds in order,
    // and where they end is the round to run. So resuming is replaying, and a simulated machine tests all of it.
    match Replay::new(config, rounds).run() {
        Ok(result) => Ok(SizingStep::Done(Box::new(result))),
        Err(Pause::Next(plan)) => Ok(SizingStep::Run(plan)),
        Err(Pause::Failed(error)) => Err(error),
    }
}

enum Pause {
    Next(RoundPlan),
    Failed(SizingError),
}

struct Replay<'a> {
    config: &'a SizingConfig,
    /// Bytes.
    max_footprint: u64,
    all: &'a [Round],
    rest: slice::Iter<'a, Round>,
    repeated: u32,
    disturbed: u32,
    unconverged: Vec<Stage>,
}

#[derive(Clone, Copy)]
struct Load {
    hash_size: Bytes,
    chunk_pages: u32,
    rps_max: f64,
}

impl<'a> Replay<'a> {
    fn new(config: &'a SizingConfig, all: &'a [Round]) -> Self {
        let max_footprint = config.memory.map_or(0, |memory| memory.0);
        Self { config, max_footprint, all, rest: all.iter(), repeated: 0, disturbed: 0, unconverged: Vec::new() }
    }

    fn run(&mut self) -> Result<SizingResult, Pause> {
        let hash_size = self.find_hash_size()?;
        let chunk_pages = self.chunk_pages(hash_size);
        let rps_max = self.find_rps_max(hash_size, chunk_pages)?;
        let load = Load { hash_size, chunk_pages, rps_max };
        let (mem_frac, is_limited_by_memory) = match self.find_saturation(load)? {
            Some(saturated) => (self.refine(load, saturated)?, false),
            None => (1.0, true),
        };
        if let Some(round) = self.rest.next() {
            return Err(self.mismatch(&round.plan));
        }
        let params = HashdParams {
            file_size_mean: hash_size,
            chunk_pages,
            rps_max: Some(rps_max),
            mem_frac,
            ..self.config.params.clone()
        };
        Ok(SizingResult {
            params,
            memory: self.max_footprint,
            footprint: self.footprint(mem_frac),
            is_limited_by_memory,
            unconverged: std::mem::take(&mut self.unconverged),
            rounds: self.all.len() as u32,
            repeated: self.repeated,
            disturbed: self.disturbed,
            seconds: self.all.iter().map(|round| round.seconds).sum(),
        })
    }

    fn footprint(&self, mem_frac: f64) -> u64 {
        (self.max_footprint as f64 * mem_frac) as u64
    }

    /// The size with which hashing takes 15 ms at the controlled quantile, when nothing else is done.
    fn find_hash_size(&mut self) -> Result<Bytes, Pause> {
        let given =
            self.config.hash_size.or(self.config.params.fake_cpu_load.then_some(self.config.params.file_size_mean));
        if let Some(size) = given {
            return Ok(size);
        }
        let mut size = self.config.params.file_size_mean;
        let mut closest: Option<(f64, Bytes)> = None;
        for _ in 0..HASH_SIZE_ROUNDS {
            let plan = self.cpu_plan(Stage::HashSize, size, self.chunk_pages(size));
            let (_, latency) = self.measure_cpu(plan)?;
            let ratio = latency / HASH_TIME.as_secs_f64();
            if closest.is_none_or(|(error, _)| (ratio - 1.0).abs() < error) {
                closest = Some(((ratio - 1.0).abs(), size));
            }
            if (ratio - 1.0).abs() <= TOLERANCE {
                return Ok(size);
            }
            size = Bytes((size.0 as f64 / ratio.clamp(0.1, 10.0)).clamp(PAGE as f64, (1u64 << 30) as f64) as u64);
        }
        self.unconverged.push(Stage::HashSize);
        Ok(closest.map_or(size, |(_, size)| size))
    }

    fn chunk_pages(&self, hash_size: Bytes) -> u32 {
        let params = &self.config.params;
        if let Some(pages) = self.config.chunk_pages.or(params.fake_cpu_load.then_some(params.chunk_pages)) {
            return pages;
        }
        let io_time = params.lat_target.seconds() - HASH_TIME.as_secs_f64() - params.sleep_mean.seconds();
        let chunks = io_time.max(DISK_READ_TIME) * params.file_frac / DISK_READ_TIME / DISK_READ_FRACTION;
        let pages = hash_size.0 as f64 / PAGE as f64;
        (pages / chunks.max(1.0)).ceil().clamp(1.0, 4096.0) as u32
    }

    /// The rate at which the latency reaches its target.
    fn find_rps_max(&mut self, hash_size: Bytes, chunk_pages: u32) -> Result<f64, Pause> {
        if let Some(rps) = self.config.rps_max {
            return Ok(rps);
        }
        let mut last = 1.0;
        for _ in 0..RPS_MAX_ROUNDS {
            let (rps, latency) = self.measure_cpu(self.cpu_plan(Stage::RpsMax, hash_size, chunk_pages))?;
            last = rps;
            if (latency / self.config.params.lat_target.seconds() - 1.0).abs() <= TOLERANCE {
                return Ok(rps.max(1.0));
            }
        }
        self.unconverged.push(Stage::RpsMax);
        Ok(last.max(1.0))
    }

    /// The smallest footprint known to be too large; `None` if even the whole one is sustained.
    fn find_saturation(&mut self, load: Load) -> Result<Option<f64>, Pause> {
        let mut sustained = vec![0.0];
        let mut saturated = None;
        let mut up = UP_STEP;
        while saturated.is_none() {
            let loss = self.loss(Stage::MemoryUp, load, up)?;
            if loss >= UP_LOSS {
                saturated = Some(up);
            } else if up >= 1.0 {
                return Ok(None);
            } else if loss < BISECT_LOSS {
                sustained.push(up);
            }
            // Multiples of the step, which sums would miss.
            up = (((up / UP_STEP).round() + 1.0) * UP_STEP).min(1.0);
        }
        let mut unsustained: Vec<f64> = saturated.into_iter().collect();
        for _ in 0..=MAX_CORRECTIONS {
            let was_sustained = self.bisect(load, &mut sustained, &mut unsustained)?;
            if !self.correct_bound(load, was_sustained, &mut sustained, &mut unsustained)? {
                break;
            }
        }
        Ok(unsustained.last().copied())
    }

    /// Moves the bounds together. Returns whether the last footprint was sustained.
    fn bisect(
        &mut self,
        load: Load,
        sustained: &mut Vec<f64>,
        unsustained: &mut Vec<f64>,
    ) -> Result<Option<bool>, Pause> {
        let mut was_sustained = None;
        while let (Some(&left), Some(&right)) = (sustained.last(), unsustained.last())
            && right - left >= BISECT_RESOLUTION * self.config.grain
        {
            let middle = (left + right) / 2.0;
            let is_sustained = self.loss(Stage::MemoryBisect, load, middle)? < BISECT_LOSS;
            if is_sustained {
                sustained.push(middle)
            } else {
                unsustained.push(middle)
            }
            was_sustained = Some(is_sustained);
        }
        Ok(was_sustained)
    }

    /// Measures the bound that was not measured last once more, because memory reacts late. Returns whether it was
    /// wrong.
    fn correct_bound(
        &mut self,
        load: Load,
        was_sustained: Option<bool>,
        sustained: &mut Vec<f64>,
        unsustained: &mut Vec<f64>,
    ) -> Result<bool, Pause> {
        let Some(was_sustained) = was_sustained else { return Ok(false) };
        let (same, opposite) = if was_sustained { (sustained, unsustained) } else { (unsustained, sustained) };
        let (Some(&position), true) = (opposite.last(), opposite.len() > 1) else { return Ok(false) };
        let is_sustained = self.loss(Stage::MemoryVerify, load, position)? < BISECT_LOSS;
        if is_sustained != was_sustained {
            return Ok(false);
        }
        opposite.pop();
        same.push(position);
        Ok(true)
    }

    /// The first footprint, from `saturated` downwards, at which the rate is full.
    fn refine(&mut self, load: Load, saturated: f64) -> Result<f64, Pause> {
        let step = saturated * REFINE_STEP * self.config.grain;
        let mut mem_frac = saturated;
        for index in 1.. {
            if self.loss(Stage::MemoryRefine, load, mem_frac)? <= REFINE_LOSS {
                return Ok(mem_frac);
            }
            let next = saturated - step * f64::from(index);
            if next < (saturated / 2.0).max(0.001) {
                break;
            }
            mem_frac = next;
        }
        Err(Pause::Failed(SizingError::NothingSustained { rps: load.rps_max, footprint: self.footprint(mem_frac) }))
    }

    /// The lost part of the rate; all of it if the footprint could not be run.
    fn loss(&mut self, stage: Stage, load: Load, mem_frac: f64) -> Result<f64, Pause> {
        let Load { hash_size, chunk_pages, rps_max } = load;
        let round = self.measure(RoundPlan { stage, hash_size, chunk_pages, rps_max: Some(rps_max), mem_frac })?;
        Ok(match round.outcome {
            RoundOutcome::Measured { rps, .. } => 1.0 - rps / rps_max,
            RoundOutcome::DoesNotFit { .. } | RoundOutcome::Killed {} => 1.0,
        })
    }

    fn cpu_plan(&self, stage: Stage, hash_size: Bytes, chunk_pages: u32) -> RoundPlan {
        RoundPlan { stage, hash_size, chunk_pages, rps_max: None, mem_frac: CPU_MEM_FRAC }
    }

    /// Rate (requests per second) and latency of a round whose footprint has to be sustained.
    fn measure_cpu(&mut self, plan: RoundPlan) -> Result<(f64, f64), Pause> {
        let footprint = self.footprint(plan.mem_frac);
        match self.measure(plan)?.outcome {
            RoundOutcome::Measured { rps, latency, .. } => Ok((rps, latency)),
            RoundOutcome::DoesNotFit { .. } | RoundOutcome::Killed {} => {
                Err(Pause::Failed(SizingError::NoMemory { footprint }))
            }
        }
    }

    /// The finished round of a plan. Disturbed ones are followed by repeats, as long as there may be more.
    fn measure(&mut self, plan: RoundPlan) -> Result<&'a Round, Pause> {
        for attempt in 0.. {
            let Some(round) = self.rest.next() else { return Err(Pause::Next(plan)) };
            if !is_same(&round.plan, &plan) {
                return Err(self.mismatch(&plan));
            }
            if !round.disturbance.is_empty() && attempt < REPEATS && self.repeated < self.config.max_repeats {
                self.repeated += 1;
                continue;
            }
            self.disturbed += u32::from(!round.disturbance.is_empty());
            if let RoundOutcome::Measured { is_converged: false, .. } = round.outcome
                && !self.unconverged.contains(&plan.stage)
            {
                self.unconverged.push(plan.stage);
            }
            return Ok(round);
        }
        unreachable!("rounds are not repeated without end")
    }

    fn mismatch(&self, expected: &RoundPlan) -> Pause {
        let number = self.all.len() - self.rest.len();
        Pause::Failed(SizingError::RoundMismatch { number, expected: expected.stage, fraction: expected.mem_frac })
    }
}

/// Whether both are the same, apart from the rounding of a text.
fn is_same(one: &RoundPlan, other: &RoundPlan) -> bool {
    let is_near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(other.abs());
    let rates = match (one.rps_max, other.rps_max) {
        (Some(one), Some(other)) => is_near(one, other),
        (one, other) => one == other,
    };
    let rest = |plan: &RoundPlan| (plan.stage, plan.hash_size, plan.chunk_pages);
    rates && is_near(one.mem_frac, other.mem_frac) && rest(one) == rest(other)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use proptest::prelude::*;
    use wb_sys::telemetry::DisturbanceMark;

    use super::super::simulation::{Machine, config, disturbed};
    use super::*;

    /// Sizes a machine; all rounds, and the answer.
    fn size(config: &SizingConfig, machine: &mut Machine) -> (Vec<Round>, Result<SizingResult, SizingError>) {
        let mut rounds = Vec::new();
        loop {
            match next_step(config, &rounds) {
                Ok(SizingStep::Run(plan)) => rounds.push(machine.run(config, plan)),
                Ok(SizingStep::Done(result)) => return (rounds, Ok(*result)),
                Err(error) => return (rounds, Err(error)),
            }
            assert!(rounds.len() < 200, "{rounds:?}");
        }
    }

    #[track_caller]
    fn assert_near(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual / expected - 1.0).abs() <= tolerance, "{actual}, expected {expected}");
    }

    #[test]
    fn size_rate_and_footprint_of_a_machine_are_found() {
        let (rounds, result) = size(&config(), &mut Machine::default());
        let result = result.unwrap();
        // It hashes 250 MB/s, has a capacity of 500 requests of that size per second, and memory for a footprint of 0.53.
        let bytes = 0.015 * 250e6 / (0.93 * 3.3);
        assert_near(result.params.file_size_mean.0 as f64, bytes, 0.05);
        assert_near(result.params.rps_max.unwrap(), 500.0, 0.05);
        assert_near(result.params.mem_frac, 0.53, 0.05);
        assert_eq!((result.is_limited_by_memory, result.unconverged.len(), result.repeated), (false, 0, 0));
        let stages: Vec<Stage> = rounds.iter().map(|round| round.plan.stage).collect();
        let ups: Vec<f64> = rounds
            .iter()
            .filter(|round| round.plan.stage == Stage::MemoryUp)
            .map(|round| round.plan.mem_frac)
            .collect();
        assert_eq!(ups.len(), 3);
        assert!(ups.iter().zip([0.2, 0.4, 0.6]).all(|(up, expected)| (up - expected).abs() < 1e-9), "{ups:?}");
        assert!(stages.ends_with(&[Stage::MemoryRefine]));
    }

    #[test]
    fn chunks_are_of_a_size_that_gives_as_many_of_them_on_every_machine() {
        let config = config();
        let replay = Replay::new(&config, &[]);
        // Twenty chunks of files.
        assert_eq!(replay.chunk_pages(Bytes(1_258_291)), 16);
        assert_eq!(replay.chunk_pages(Bytes(4 * 1_258_291)), 62);
    }

    #[test]
    fn faked_load_sizes_the_memory_alone() {
        let mut config = config();
        config.params.fake_cpu_load = true;
        config.rps_max = Some(300.0);
        let (rounds, result) = size(&config, &mut Machine::default());
        assert!(rounds.iter().all(|round| round.plan.rps_max == Some(300.0)));
        let params = result.unwrap().params;
        assert_eq!(
            (params.file_size_mean, params.chunk_pages),
            (config.params.file_size_mean, config.params.chunk_pages)
        );
        assert_eq!(params.rps_max, Some(300.0));
    }

    #[test]
    fn footprint_that_is_always_sustained_is_limited_by_the_memory_given() {
        let (_, result) = size(&config(), &mut Machine { footprint: 2.0, ..Machine::default() });
        let result = result.unwrap();
        assert_eq!((result.params.mem_frac, result.is_limited_by_memory), (1.0, true));
        assert_eq!(Some(Bytes(result.footprint)), config().memory);
    }

    #[test]
    fn machine_without_swap_ends_at_what_fits() {
        let mut machine = Machine { fits: 0.33, ..Machine::default() };
        let (rounds, result) = size(&config(), &mut machine);
        let mem_frac = result.unwrap().params.mem_frac;
        assert!((0.31..=0.33).contains(&mem_frac), "{mem_frac}");
        assert!(rounds.iter().any(|round| matches!(round.outcome, RoundOutcome::DoesNotFit { .. })));
    }

    #[test]
    fn too_small_a_memory_is_an_error() {
        let (_, result) = size(&config(), &mut Machine { fits: 0.05, ..Machine::default() });
        assert!(matches!(result, Err(SizingError::NoMemory { .. })));
        let mut fake = config();
        fake.params.fake_cpu_load = true;
        fake.rps_max = Some(100.0);
        let (_, result) = size(&fake, &mut Machine { fits: 0.001, ..Machine::default() });
        assert!(matches!(result, Err(SizingError::NothingSustained { .. })));
    }

    #[test]
    fn bound_that_was_wrong_is_moved() {
        // The first measurement at 0.5 is too good, since memory reacts late.
        let mut machine = Machine { footprint: 0.45, late_at: Some(0.5), ..Machine::default() };
        let (rounds, result) = size(&config(), &mut machine);
        assert!(rounds.iter().any(|round| round.plan.stage == Stage::MemoryVerify));
        assert_near(result.unwrap().params.mem_frac, 0.45, 0.05);
    }

    #[test]
    fn disturbed_rounds_are_repeated_within_limits() {
        let config = SizingConfig { max_repeats: 3, ..config() };
        let mut machine = Machine { disturbed_rounds: usize::MAX, ..Machine::default() };
        let (rounds, result) = size(&config, &mut machine);
        let result = result.unwrap();
        assert_eq!(result.repeated, 3);
        assert_eq!(result.disturbed as usize, rounds.len() - 3);
        let mut machine = Machine { disturbed_rounds: 1, ..Machine::default() };
        let (rounds, result) = size(&config, &mut machine);
        let result = result.unwrap();
        assert_eq!((result.repeated, result.disturbed), (1, 0));
        assert_eq!(rounds[0].plan, rounds[1].plan);
        assert!(matches!(disturbed()[0], DisturbanceMark::Steal { .. }));
    }

    #[test]
    fn rounds_of_another_configuration_are_refused() {
        let (rounds, _) = size(&config(), &mut Machine::default());
        let other = SizingConfig { rps_max: Some(100.0), hash_size: Some(Bytes(1 << 20)), ..config() };
        let error = next_step(&other, &rounds).unwrap_err();
        assert_eq!(
            error.to_string(),
            "round 1 does not belong to this configuration: expected the stage MemoryUp at a footprint of 0.200"
        );
        let mut more = rounds.clone();
        more.push(rounds[0].clone());
        assert!(matches!(next_step(&config(), &more), Err(SizingError::RoundMismatch { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn footprint_is_found_on_every_machine(
            footprint in 0.08..0.95f64, hash_rate in 50e6..2e9f64, seed: u64, noise in 0.0..0.02f64,
        ) {
            let mut machine = Machine { footprint, hash_rate, noise, ..Machine::new(seed) };
            let (rounds, result) = size(&config(), &mut machine);
            let result = result.unwrap();
            // The rate falls by 7.5 % within 1.5 % of the footprint.
            prop_assert!((result.params.mem_frac / footprint - 1.0).abs() < 0.08, "{} {footprint}", result.params.mem_frac);
            prop_assert!(rounds.len() < 60);
        }

        #[test]
        fn every_prefix_of_the_rounds_leads_to_the_same_next_round(
            footprint in 0.08..1.2f64, seed: u64, disturbed_rounds in 0..10usize,
        ) {
            let mut machine = Machine { footprint, disturbed_rounds, noise: 0.02, ..Machine::new(seed) };
            let config = config();
            let (rounds, _) = size(&config, &mut machine);
            let text = serde_json::to_string(&rounds).unwrap();
            let read: Vec<Round> = serde_json::from_str(&text).unwrap();
            for count in 0..rounds.len() {
                prop_assert_eq!(next_step(&config, &read[..count]).unwrap(), SizingStep::Run(rounds[count].plan.clone()));
            }
        }
    }
}
