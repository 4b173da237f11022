//! Two cells of one run, on systems whose level changes during the run. Lower is better.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use wb_compare::statistical::{Options, Threshold, Verdict, compare_pairs, compare_samples};
use wb_model::Direction;
use wb_stats::RunPrior;

use super::populations::normal;

/// Samples of each cell.
const SAMPLES: [usize; 3] = [6, 12, 30];
/// The standard deviation of a sample, relative to the level of the system.
const SPREAD: f64 = 0.02;
/// By how much the level of a drifting system rises during the run.
const DRIFT: f64 = 0.2;
/// The scale of a wandering level, and its correlation from one sample to the next.
const WANDER: (f64, f64) = (0.05, 0.97);
/// The true changes that are to be found.
pub(crate) const CHANGES: [f64; 2] = [0.07, 0.1];
const REPETITIONS: usize = 400;
const SEED: u64 = 9;

/// How the level of a system changes during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Steady,
    Drifting,
    Wandering,
}

/// How two cells are sampled and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Design {
    /// In rounds, samples of the same round as pairs.
    Pairs,
    /// In rounds, compared as two runs without noise between runs.
    Rounds,
    /// One cell after the other.
    Sequence,
}

impl System {
    pub(crate) const ALL: [Self; 3] = [Self::Steady, Self::Drifting, Self::Wandering];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Drifting => "drifting",
            Self::Wandering => "wandering",
        }
    }

    /// Its level at the time of each sample.
    fn levels(self, rng: &mut ChaCha8Rng, samples: usize) -> Vec<f64> {
        let (scale, correlation) = WANDER;
        let mut state = normal(rng);
        let level = |at: usize| match self {
            Self::Steady => 1.0,
            Self::Drifting => 1.0 + DRIFT * at as f64 / samples as f64,
            Self::Wandering => {
                state = correlation * state + (1.0 - correlation * correlation).sqrt() * normal(rng);
                (scale * state).exp()
            }
        };
        (0..samples).map(level).collect()
    }
}

impl Design {
    const ALL: [Self; 3] = [Self::Pairs, Self::Rounds, Self::Sequence];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pairs => "rounds, as pairs",
            Self::Rounds => "rounds, not as pairs",
            Self::Sequence => "one after the other",
        }
    }

    /// The samples of both cells, in the order of their rounds.
    fn sample(self, system: System, rng: &mut ChaCha8Rng, samples: usize) -> [Vec<f64>; 2] {
        let levels = system.levels(rng, 2 * samples);
        let mut all: Vec<f64> = levels.iter().map(|level| level * (1.0 + SPREAD * normal(rng))).collect();
        if self == Self::Sequence {
            let judged = all.split_off(samples);
            return [all, judged];
        }
        let mut sides = [Vec::new(), Vec::new()];
        for round in all.chunks_exact(2) {
            let first = usize::from(rng.random::<bool>());
            sides[first].push(round[0]);
            sides[1 - first].push(round[1]);
        }
        sides
    }

    fn verdict(self, sides: &[Vec<f64>; 2], change: f64, threshold: f64) -> Verdict {
        let [reference, judged] = sides.clone();
        let slower: Vec<f64> = judged.iter().map(|sample| sample * (1.0 + change)).collect();
        let run_noise = RunPrior::NONE;
        let options = Options { threshold: Threshold::Percent(threshold), run_noise, ..Options::default() };
        let compared = match self {
            Self::Pairs => compare_pairs([reference, slower], Direction::Lower, &options),
            Self::Rounds | Self::Sequence => {
                compare_samples([vec![reference], vec![slower]], Direction::Lower, &options)
            }
        };
        compared.expect("both sides have samples").verdict
    }
}

/// The verdicts on cells of one kind; fractions of comparisons.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) system: System,
    pub(crate) design: Design,
    pub(crate) samples: usize,
    /// Equal cells that differ, without a threshold and with one of 5 %.
    pub(crate) differ: [f64; 2],
    /// Equal cells that are equivalent.
    pub(crate) equivalent: f64,
    /// Slower cells that are found, for each of [`CHANGES`].
    pub(crate) found: [f64; CHANGES.len()],
}

pub(crate) fn simulate() -> Vec<Row> {
    let kinds = System::ALL.iter().flat_map(|system| Design::ALL.map(|design| (*system, design)));
    let kinds: Vec<_> = kinds.flat_map(|(system, design)| SAMPLES.map(|samples| (system, design, samples))).collect();
    kinds.into_par_iter().map(|(system, design, samples)| row(system, design, samples)).collect()
}

fn row(system: System, design: Design, samples: usize) -> Row {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut row = Row { system, design, samples, differ: [0.0; 2], equivalent: 0.0, found: [0.0; CHANGES.len()] };
    let share = 1.0 / REPETITIONS as f64;
    for _ in 0..REPETITIONS {
        let sides = design.sample(system, &mut rng, samples);
        for (differ, threshold) in row.differ.iter_mut().zip([0.0, 5.0]) {
            let verdict = design.verdict(&sides, 0.0, threshold);
            *differ += if matches!(verdict, Verdict::Regressed | Verdict::Improved) { share } else { 0.0 };
            row.equivalent += if verdict == Verdict::Equivalent { share } else { 0.0 };
        }
        for (found, change) in row.found.iter_mut().zip(CHANGES) {
            *found += if design.verdict(&sides, change, 5.0) == Verdict::Regressed { share } else { 0.0 };
        }
    }
    row
}
