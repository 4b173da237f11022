//! The test of one aspect of two sides: by the samples alone, and with the noise between runs.
//!
//! The test comes first and the effect later, since the required confidence of an interval depends on how many metrics
//! differ.

use wb_stats::{
    CONFIDENCE, HodgesLehmann, Interval, NoiseSource, Ratio, RunNoise, RunPrior, Samples, StudentRatio,
    VarianceEstimate, WeightedRun, mean_ratio, tail_ratio,
};

use super::aspect::Aspect;
use super::observations::Observations;

/// What is known of the noise between runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunVariation<'a> {
    /// An assumption.
    Prior(RunPrior),
    /// A noise model's estimate.
    Model(&'a RunNoise),
    /// None, since both sides are of one run.
    SameRun,
}

/// The tests of one aspect, without its values, since there may be millions.
pub(super) struct AspectTest {
    pub(super) aspect: Aspect,
    /// The quantile that is compared, of a tail.
    quantile: Option<f64>,
    /// The estimated ratio.
    pub(super) estimate: f64,
    /// The p-value as if runs of one build did not differ.
    pub(super) p_by_samples: f64,
    /// That with the noise between runs: 1 if it is unknown, and the same if both sides are of one run.
    pub(super) p_by_runs: f64,
    /// The ratio with the noise between runs; `None` if a figure is not above zero.
    pub(super) by_runs: Option<StudentRatio>,
    pub(super) source: Option<NoiseSource>,
}

/// The effect of an aspect.
#[derive(Debug, Clone, Copy)]
pub(super) struct AspectEffect {
    /// With the interval of the samples.
    pub(super) ratio: Ratio,
    /// The interval with the noise between runs.
    pub(super) runs_interval: Option<Interval>,
}

impl AspectTest {
    /// `source` is that of the noise between runs of all aspects, if it is assumed. `None` if no ratio can be computed.
    pub(super) fn of(
        aspect: Aspect,
        quantile: Option<f64>,
        sides: &Observations,
        variation: RunVariation<'_>,
        source: NoiseSource,
    ) -> Option<Self> {
        if matches!(variation, RunVariation::SameRun) {
            let p_by_samples = sides.p_value(aspect, quantile)?;
            let estimate = sides.ratio(aspect, quantile, p_by_samples, CONFIDENCE)?.estimate;
            return Some(Self {
                aspect,
                quantile,
                estimate,
                p_by_samples,
                p_by_runs: p_by_samples,
                by_runs: None,
                source: None,
            });
        }
        let BySamples { p: p_by_samples, estimate, variance: sampling } = BySamples::of(aspect, quantile, &sides.all)?;
        let levels = levels(aspect, quantile, sides);
        let with_runs = match levels {
            Some([a, b]) if estimate > 0.0 => {
                // The slowest run alone determines the tail of all samples together, which varies more than an average.
                let log = if quantile.is_some() { average(&b) - average(&a) } else { estimate.ln() };
                with_runs(aspect, log, [&a, &b], sampling, variation, sides, source)
            }
            _ => None,
        };
        let (by_runs, source) = with_runs.unzip();
        // That of several runs is an average of theirs.
        let of_runs = by_runs.filter(|_| quantile.is_some() && sides.runs.iter().any(|runs| runs.len() > 1));
        let estimate = of_runs.map_or(estimate, |by_runs| by_runs.log().exp());
        let p_by_runs = by_runs.map_or(1.0, |by_runs: StudentRatio| by_runs.p_value());
        Some(Self { aspect, quantile, estimate, p_by_samples, p_by_runs, by_runs, source: source.flatten() })
    }

    /// The effect; `sides` are those that were tested.
    pub(super) fn effect(&self, sides: &Observations, confidence: f64) -> Option<AspectEffect> {
        let ratio = sides.ratio(self.aspect, self.quantile, self.p_by_samples, confidence)?;
        let ratio = Ratio { estimate: self.estimate, ..ratio };
        // Noise between runs excludes nothing that the samples include.
        let hull = |runs: Interval| match ratio.interval {
            Some(samples) => Interval { low: runs.low.min(samples.low), high: runs.high.max(samples.high), ..runs },
            None => runs,
        };
        let runs_interval = self.by_runs.and_then(|by_runs| by_runs.ratio(confidence).interval).map(hull);
        Some(AspectEffect { ratio, runs_interval })
    }
}

/// Whether the own runs of both sides vary more in an aspect than the prior allows.
pub(super) fn contradicts(aspect: Aspect, quantile: Option<f64>, sides: &Observations, prior: RunPrior) -> bool {
    let source = || {
        let levels = levels(aspect, quantile, sides)?;
        // Within runs: without the differences between them, and with the degrees of freedom that their levels take.
        let aligned = |side: usize| {
            let runs = sides.runs[side].iter().zip(&levels[side]);
            let samples = runs.flat_map(|(run, level)| run.iter().map(|sample| sample / level.level.exp()));
            Samples::new(&samples.collect::<Vec<_>>()).ok()
        };
        let samples = sides.all.iter().map(Samples::count).sum::<usize>() as f64;
        let within = samples - sides.runs.iter().map(Vec::len).sum::<usize>() as f64;
        let sampling = match within > 0.0 {
            true => BySamples::of(aspect, quantile, &[aligned(0)?, aligned(1)?])?.variance.variance * samples / within,
            false => 0.0,
        };
        prior.source(&levels[0], &levels[1], sampling)
    };
    sides.runs.iter().any(|runs| runs.len() > 1) && source() == Some(NoiseSource::OwnRuns)
}

/// An aspect of all samples of two sides, as if runs did not differ.
struct BySamples {
    p: f64,
    estimate: f64,
    /// Of the log ratio.
    variance: VarianceEstimate,
}

impl BySamples {
    fn of(aspect: Aspect, quantile: Option<f64>, [a, b]: &[Samples; 2]) -> Option<Self> {
        let degrees = (a.count() + b.count()) as f64 - 2.0;
        // The wider half counts: an interval with the noise between runs must not exclude what that of the samples includes.
        let of_interval = |ratio: &Ratio| {
            let interval = ratio.interval?;
            let factor = (ratio.estimate / interval.low).max(interval.high / ratio.estimate);
            let symmetric = Interval { low: 1.0 / factor, high: factor, ..interval };
            VarianceEstimate::from_interval(&symmetric, degrees)
        };
        let (p, estimate, variance) = match (aspect, quantile) {
            (Aspect::Mean, _) => {
                let ratio = mean_ratio(a, b)?;
                (ratio.p_value(), ratio.ratio(CONFIDENCE).estimate, Some(ratio.variance()))
            }
            (_, Some(quantile)) => {
                let ratio = tail_ratio(a, b, quantile, CONFIDENCE)?;
                (ratio.p_value, ratio.estimate, of_interval(&ratio))
            }
            (_, None) => {
                let shift = HodgesLehmann::new(a, b)?;
                let ratio = shift.ratio(shift.p_value(), CONFIDENCE);
                (ratio.p_value, ratio.estimate, of_interval(&ratio))
            }
        };
        // Too few samples for an interval have a ratio of means.
        let variance = variance.or_else(|| Some(mean_ratio(&positive(a)?, &positive(b)?)?.variance()));
        Some(Self { p, estimate, variance: variance.unwrap_or(VarianceEstimate { variance: 0.0, degrees: 1.0 }) })
    }
}

/// The levels of the runs of both sides; `None` if one is not above zero.
fn levels(aspect: Aspect, quantile: Option<f64>, sides: &Observations) -> Option<[Vec<WeightedRun>; 2]> {
    let level = |run: &Vec<f64>| {
        let samples = Samples::new(run).ok()?;
        let level = match (aspect, quantile) {
            (Aspect::Mean, _) => samples.mean(),
            (_, quantile) => samples.quantile(quantile.unwrap_or(0.5)),
        };
        (level > 0.0).then(|| WeightedRun { level: level.ln(), weight: samples.count() as f64 })
    };
    let [a, b] = sides.runs.each_ref().map(|runs| runs.iter().map(level).collect::<Option<Vec<_>>>());
    Some([a?, b?])
}

/// The ratio with the noise between runs.
fn with_runs(
    aspect: Aspect,
    log: f64,
    [a, b]: [&[WeightedRun]; 2],
    sampling: VarianceEstimate,
    variation: RunVariation<'_>,
    sides: &Observations,
    source: NoiseSource,
) -> Option<(StudentRatio, Option<NoiseSource>)> {
    match variation {
        RunVariation::Model(noise) if aspect == Aspect::Shift => {
            Some((noise.ratio(&sides.runs[0], &sides.runs[1])?, None))
        }
        // A model knows how medians vary.
        RunVariation::Model(noise) => Some((noise.aspect_ratio(log, a, b, sampling)?, None)),
        RunVariation::SameRun => None,
        RunVariation::Prior(prior) => Some((prior.ratio(log, a, b, sampling, source)?, Some(source))),
    }
}

/// The weighted average of the levels of runs.
fn average(runs: &[WeightedRun]) -> f64 {
    let weights: f64 = runs.iter().map(|run| run.weight).sum();
    runs.iter().map(|run| run.level * run.weight / weights).sum()
}

/// The samples themselves if all are above zero.
fn positive(samples: &Samples) -> Option<Samples> {
    (samples.min() > 0.0).then(|| samples.clone())
}
