//! Sides of few runs, compared with an assumed noise between runs. Lower is better.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wb_stats::{CONFIDENCE, Interval, NoiseSource, Ratio, RunPrior, Samples, VarianceEstimate, WeightedRun, ratio};

use super::page::Rows;
use super::populations::normal;

/// Runs on each side.
const COUNTS: [usize; 4] = [1, 2, 4, 8];
/// True standard deviations of the logarithms of runs.
const BETWEEN: [f64; 4] = [0.0, 0.02, 0.05, 0.1];
/// Standard deviation of the logarithms of runs that is assumed.
const PRIOR: f64 = 0.05;
/// Samples in each run.
const SAMPLES: usize = 10;
/// Standard deviation of the logarithms of samples around their run.
const WITHIN: f64 = 0.02;
/// The smallest change that matters.
const THRESHOLD: f64 = 0.05;
/// The true changes.
pub(crate) const CHANGES: [f64; 5] = [0.05, 0.1, 0.15, 0.2, 0.29];
const REPETITIONS: usize = 2000;
const SEED: u64 = 6;

/// The results for one number of runs per side and one true noise between them; fractions of comparisons.
pub(crate) struct Row {
    pub(crate) count: usize,
    pub(crate) between: f64,
    pub(crate) equal: EqualSides,
    /// Regressed, for each of [`CHANGES`].
    pub(crate) regressed: [f64; CHANGES.len()],
}

/// Comparisons of equal sides.
#[derive(Default)]
pub(crate) struct EqualSides {
    pub(crate) regressed: f64,
    /// Beyond the threshold and significant by the samples alone, but not with the noise between runs.
    pub(crate) unconfirmed: f64,
    /// The interval is within the threshold.
    pub(crate) equivalent: f64,
    /// The interval by the samples alone is within the threshold.
    pub(crate) equivalent_by_samples: f64,
    /// The runs vary more than the prior allows.
    pub(crate) own_runs: f64,
    /// Regressed if no noise between runs is assumed.
    pub(crate) regressed_without_noise: f64,
    /// The runs vary more than without any noise between runs.
    pub(crate) own_runs_without_noise: f64,
}

/// Simulates numbers of runs with noises
pub(crate) fn simulate(rows: Rows) -> Vec<Row> {
    let kinds = rows.of(BETWEEN.into_iter().flat_map(|between| COUNTS.map(|count| (count, between))));
    kinds.into_iter().map(|(count, between)| simulate_row(count, between)).collect()
}

fn simulate_row(count: usize, between: f64) -> Row {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut row = Row { count, between, equal: EqualSides::default(), regressed: [0.0; CHANGES.len()] };
    let weight = |condition: bool| if condition { 1.0 / REPETITIONS as f64 } else { 0.0 };
    for _ in 0..REPETITIONS {
        let sides = Comparison::draw(&mut rng, count, between);
        let (samples, prior) = (sides.by_samples, sides.with_prior(PRIOR, 0.0));
        let equal = &mut row.equal;
        equal.regressed += weight(is_regressed(&prior.0));
        equal.unconfirmed += weight(differs(&samples) && !differs(&prior.0));
        equal.equivalent += weight(is_equivalent(&prior.0));
        equal.equivalent_by_samples += weight(is_equivalent(&samples));
        equal.own_runs += weight(prior.1 == NoiseSource::OwnRuns);
        let without_noise = sides.with_prior(0.0, 0.0);
        equal.regressed_without_noise += weight(is_regressed(&without_noise.0));
        equal.own_runs_without_noise += weight(without_noise.1 == NoiseSource::OwnRuns);
        for (regressed, change) in row.regressed.iter_mut().zip(CHANGES) {
            *regressed += weight(is_regressed(&sides.with_prior(PRIOR, change).0));
        }
    }
    row
}

/// Two sides of runs.
struct Comparison {
    a: Vec<WeightedRun>,
    b: Vec<WeightedRun>,
    /// The Hodges–Lehmann ratio of all samples, as if they were of one run.
    by_samples: Ratio,
    sampling: VarianceEstimate,
    /// The variance of the log ratio due to the samples within runs.
    within: f64,
}

impl Comparison {
    fn draw(rng: &mut impl Rng, count: usize, between: f64) -> Self {
        let [a, b] = [(); 2].map(|()| (0..count).map(|_| draw_run(rng, between)).collect::<Vec<_>>());
        let all = |side: &[Samples]| {
            let values: Vec<f64> = side.iter().flat_map(|run| run.in_order()).copied().collect();
            Samples::new(&values).expect("drawn samples are finite")
        };
        let by_samples = ratio(&all(&a), &all(&b), CONFIDENCE);
        let interval = by_samples.interval.expect("there are enough samples for an interval");
        let degrees = (2 * count * SAMPLES - 2) as f64;
        // Without the differences between runs, and with the degrees of freedom that their levels take.
        let aligned = |side: &[Samples]| {
            let samples = side.iter().flat_map(|run| run.in_order().iter().map(|sample| sample / run.median()));
            Samples::new(&samples.collect::<Vec<_>>()).expect("drawn samples are finite")
        };
        let within = ratio(&aligned(&a), &aligned(&b), CONFIDENCE).interval;
        let within = within.and_then(|interval| VarianceEstimate::from_interval(&interval, degrees));
        let samples = SAMPLES as f64;
        let within = within.expect("there are enough samples for an interval").variance * samples / (samples - 1.0);
        let weighted = |side: Vec<Samples>| {
            side.iter().map(|run| WeightedRun { level: run.median().ln(), weight: run.count() as f64 }).collect()
        };
        let sampling = VarianceEstimate::from_interval(&interval, degrees).expect("the interval is above zero");
        Self { a: weighted(a), b: weighted(b), by_samples, sampling, within }
    }

    /// The ratio if the second side is higher by `change`, with a noise between runs.
    fn with_prior(&self, stddev: f64, change: f64) -> (Ratio, NoiseSource) {
        let prior = RunPrior::new(stddev).expect("the standard deviation is valid");
        let log = self.by_samples.estimate.ln() + change.ln_1p();
        let source = prior.source(&self.a, &self.b, self.within).expect("the figures are valid");
        let result = prior.ratio(log, &self.a, &self.b, self.sampling, source).expect("the figures are valid");
        (result.ratio(CONFIDENCE), source)
    }
}

fn draw_run(rng: &mut impl Rng, between: f64) -> Samples {
    let level = between * normal(rng);
    let values: Vec<f64> = (0..SAMPLES).map(|_| (level + WITHIN * normal(rng)).exp()).collect();
    Samples::new(&values).expect("drawn samples are finite")
}

fn is_regressed(ratio: &Ratio) -> bool {
    ratio.p_value <= 1.0 - CONFIDENCE && ratio.estimate > 1.0 + THRESHOLD
}

/// Improved or regressed.
fn differs(ratio: &Ratio) -> bool {
    is_regressed(ratio) || ratio.p_value <= 1.0 - CONFIDENCE && ratio.estimate < 1.0 / (1.0 + THRESHOLD)
}

fn is_equivalent(ratio: &Ratio) -> bool {
    let within = |interval: Interval| interval.low >= 1.0 / (1.0 + THRESHOLD) && interval.high <= 1.0 + THRESHOLD;
    ratio.interval.is_some_and(within)
}
