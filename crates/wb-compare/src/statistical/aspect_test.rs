//! The test of one aspect of two sides: by the samples alone, and with the noise between runs.
//!
//! The test comes first and the effect later, since the required confidence of an interval depends on how many metrics
//! differ.

use wb_results::comparison::Aspect;
use wb_stats::{
    CONFIDENCE, HodgesLehmann, Interval, MeanShift, NoiseSource, Ratio, RunNoise, RunPrior, Samples, StudentRatio,
    VarianceEstimate, WeightedRun, mean_difference_variance, tail_ratio,
};

use super::ENOUGH_SAMPLES;
use super::observations::Observations;

/// What is known of the noise between runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunVariation<'a> {
    Prior(RunPrior),
    /// An assumption that includes the noise of the samples of single values.
    Results(RunPrior),
    Model(&'a RunNoise),
    /// None, since both sides are of one run.
    SameRun,
}

/// The tests of one aspect, without its values, since there may be millions.
pub(super) struct AspectTest {
    pub(super) aspect: Aspect,
    /// The quantile that is compared, of a tail.
    quantile: Option<f64>,
    pub(super) estimate: f64,
    /// The p-value as if runs did not differ; `None` where the noise of too few samples is known or assumed.
    pub(super) p_by_samples: Option<f64>,
    /// The p-value with the noise between runs: 1 if that is unknown, as by samples if both sides are of one run.
    pub(super) p_by_runs: f64,
    /// The difference with the noise between runs; `None` if it cannot be computed.
    pub(super) by_runs: Option<StudentRatio>,
    /// The same with the assumed noise between runs alone, where both count.
    by_prior: Option<StudentRatio>,
    /// The p-value by ranks, which the interval of the samples belongs to.
    p_by_ranks: f64,
    scale: RunScale,
    pub(super) source: Option<NoiseSource>,
}

/// The scale on which runs differ.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RunScale {
    Logarithms,
    /// The levels in multiples of the magnitude of the larger side's level. Samples of a shift need not be above zero,
    /// so small levels are assumed to vary as much as large ones.
    Values {
        unit: f64,
    },
}

impl RunScale {
    /// `None` if both sides are at zero, where noise by a factor explains no difference at all.
    fn new(aspect: Aspect, [a, b]: &[Samples; 2]) -> Option<Self> {
        let unit = match aspect {
            Aspect::Shift if HodgesLehmann::new(a, b).is_logarithmic() => return Some(Self::Logarithms),
            Aspect::Shift => a.median().abs().max(b.median().abs()),
            Aspect::Mean if a.mean() > 0.0 && b.mean() > 0.0 => return Some(Self::Logarithms),
            Aspect::Mean => a.mean().abs().max(b.mean().abs()),
            _ => return Some(Self::Logarithms),
        };
        (unit > 0.0).then_some(Self::Values { unit })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct AspectEffect {
    /// With the interval of the samples.
    pub(super) ratio: Ratio,
    /// With the noise between runs.
    pub(super) runs_interval: Option<Interval>,
}

impl AspectTest {
    /// `source` is that of the noise between runs of all aspects, if it is assumed. `None` if no ratio can be computed.
    pub(super) fn new(
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
                p_by_samples: Some(p_by_samples),
                p_by_runs: p_by_samples,
                by_runs: None,
                by_prior: None,
                p_by_ranks: p_by_samples,
                scale: RunScale::Logarithms,
                source: None,
            });
        }
        let scale = RunScale::new(aspect, &sides.all);
        let by_samples = BySamples::new(aspect, quantile, &sides.all, scale.unwrap_or(RunScale::Logarithms))?;
        let BySamples { p: p_by_ranks, estimate, difference, variance: sampling } = by_samples;
        let with_runs = scale.and_then(|scale| {
            let [a, b] = levels(aspect, quantile, sides, scale)?;
            // The slowest run alone determines the tail of all samples together, which varies more than an average.
            let difference = if quantile.is_some() { average(&b) - average(&a) } else { difference? };
            with_runs(aspect, difference, [&a, &b], sampling, variation, sides, scale, source)
        });
        let (by_runs, source) = with_runs.unzip();
        let by_prior = match (variation, scale, difference) {
            (RunVariation::Prior(prior), Some(scale), Some(difference))
                if source == Some(Some(NoiseSource::SingleSamples)) =>
            {
                let [a, b] = levels(aspect, quantile, sides, scale)?;
                prior.ratio(difference, &a, &b, NO_VARIANCE, NoiseSource::Prior)
            }
            _ => None,
        };
        // That of several runs is an average of theirs.
        let of_runs = by_runs.filter(|_| quantile.is_some() && sides.runs.iter().any(|runs| runs.len() > 1));
        let estimate = of_runs.map_or(estimate, |by_runs| by_runs.log().exp());
        let p_by_runs = by_runs.map_or(1.0, |by_runs: StudentRatio| by_runs.p_value());
        let p_by_runs = by_prior.map_or(p_by_runs, |by_prior| by_prior.p_value().max(p_by_runs));
        let is_few = sides.counts().min_samples() < ENOUGH_SAMPLES;
        let p_by_samples = match (variation, scale, difference) {
            (RunVariation::Model(_) | RunVariation::Results(_), ..) if is_few => None,
            (_, Some(scale), Some(difference)) if is_few && sides.runs.iter().map(Vec::len).sum::<usize>() > 2 => {
                p_of_few(difference, sides, scale)
            }
            _ => Some(p_by_ranks),
        };
        let scale = scale.unwrap_or(RunScale::Logarithms);
        let source = source.flatten();
        Some(Self { aspect, quantile, estimate, p_by_samples, p_by_runs, by_runs, by_prior, p_by_ranks, scale, source })
    }

    pub(super) fn is_tail(&self) -> bool {
        self.quantile.is_some()
    }

    /// `sides` are those that were tested.
    pub(super) fn effect(&self, sides: &Observations, confidence: f64) -> Option<AspectEffect> {
        let ratio = sides.ratio(self.aspect, self.quantile, self.p_by_ranks, confidence)?;
        let ratio = Ratio { estimate: self.estimate, ..ratio };
        // Noise between runs excludes nothing that the samples include.
        let hull = |runs: Interval| match ratio.interval {
            Some(samples) => Interval { low: runs.low.min(samples.low), high: runs.high.max(samples.high), ..runs },
            None => runs,
        };
        let [a, b] = &sides.all;
        let as_ratio = |interval: Interval| match self.scale {
            RunScale::Logarithms => interval,
            RunScale::Values { unit } => {
                let mean = MeanShift::new(a, b).filter(|_| self.aspect == Aspect::Mean);
                let [low, high] = [interval.low, interval.high].map(|end| match mean {
                    Some(mean) => mean.as_ratio(end.ln()),
                    None => HodgesLehmann::new(a, b).as_ratio(end.ln() * unit),
                });
                Interval { low, high, ..interval }
            }
        };
        let by_runs = [self.by_runs, self.by_prior].into_iter().flatten().map(|by| by.ratio(confidence).interval);
        let by_runs = by_runs.collect::<Option<Vec<Interval>>>().and_then(|all| {
            all.into_iter().reduce(|one, other| Interval {
                low: one.low.min(other.low),
                high: one.high.max(other.high),
                ..one
            })
        });
        let runs_interval = by_runs.map(as_ratio).map(hull);
        Some(AspectEffect { ratio, runs_interval })
    }
}

/// Whether the own runs of both sides vary more in an aspect than the prior allows.
pub(super) fn contradicts(aspect: Aspect, quantile: Option<f64>, sides: &Observations, prior: RunPrior) -> bool {
    let source = || {
        let scale = RunScale::new(aspect, &sides.all)?;
        let levels = levels(aspect, quantile, sides, scale)?;
        // Within runs: without the differences between them, and with the degrees of freedom that their levels take.
        let align = |sample: &f64, level: f64| match scale {
            RunScale::Logarithms => sample / level.exp(),
            RunScale::Values { unit } => sample - level * unit,
        };
        let aligned = |side: usize| {
            let runs = sides.runs[side].iter().zip(&levels[side]);
            let samples = runs.flat_map(|(run, level)| run.iter().map(|sample| align(sample, level.level)));
            Samples::new(&samples.collect::<Vec<_>>()).ok()
        };
        let samples = sides.all.iter().map(Samples::count).sum::<usize>() as f64;
        let within = samples - sides.runs.iter().map(Vec::len).sum::<usize>() as f64;
        let sampling = if within > 0.0 {
            let aligned = BySamples::new(aspect, quantile, &[aligned(0)?, aligned(1)?], scale)?;
            aligned.variance?.variance * samples / within
        } else {
            0.0
        };
        prior.source(&levels[0], &levels[1], sampling)
    };
    sides.runs.iter().any(|runs| runs.len() > 1) && source() == Some(NoiseSource::OwnRuns)
}

/// An aspect of all samples of two sides, as if runs did not differ.
struct BySamples {
    p: f64,
    estimate: f64,
    /// The difference on the scale of the runs; `None` if the ratio has no logarithm.
    difference: Option<f64>,
    /// The variance of the difference; `None` if it is unknown because each side has a single sample.
    variance: Option<VarianceEstimate>,
}

const NO_VARIANCE: VarianceEstimate = VarianceEstimate { variance: 0.0, degrees: 1.0 };

impl BySamples {
    fn new(aspect: Aspect, quantile: Option<f64>, [a, b]: &[Samples; 2], scale: RunScale) -> Option<Self> {
        let degrees = (a.count() + b.count()) as f64 - 2.0;
        let on_logarithms = |estimate: f64| (estimate > 0.0).then(|| estimate.ln());
        let (p, estimate, difference, variance) = match (aspect, quantile) {
            (Aspect::Mean, _) => {
                let shift = MeanShift::new(a, b)?;
                let difference = shift.difference();
                (shift.p_value(), shift.as_ratio(difference), Some(difference), Some(shift.variance()))
            }
            (_, Some(quantile)) => {
                let ratio = tail_ratio(a, b, quantile, CONFIDENCE)?;
                let ends = ratio.interval.filter(|interval| interval.low > 0.0);
                let wider = ends.and_then(|interval| {
                    let [low, high] = [ratio.estimate / interval.low, interval.high / ratio.estimate].map(f64::ln);
                    VarianceEstimate::from_half_width(low.max(high), interval.confidence, degrees)
                });
                (ratio.p_value, ratio.estimate, on_logarithms(ratio.estimate), wider)
            }
            (_, None) => {
                let sides = HodgesLehmann::new(a, b);
                let shift = sides.shift(CONFIDENCE);
                let unit = match scale {
                    RunScale::Logarithms => 1.0,
                    RunScale::Values { unit } => unit,
                };
                // The wider half counts: an interval with the noise between runs must not exclude what that of the samples
                // includes.
                let wider = shift.interval.and_then(|interval| {
                    let half = (shift.estimate - interval.low).max(interval.high - shift.estimate) / unit;
                    VarianceEstimate::from_half_width(half, interval.confidence, degrees)
                });
                (sides.p_value(), sides.as_ratio(shift.estimate), Some(shift.estimate / unit), wider)
            }
        };
        // Too few samples for an interval have means.
        let of_means = || match scale {
            RunScale::Logarithms => Some(MeanShift::new(&positive(a)?, &positive(b)?)?.variance()),
            RunScale::Values { unit } => mean_difference_variance(a, b, unit),
        };
        let variance = variance.or_else(of_means).or_else(|| pooled_variance([a, b], scale));
        Some(Self { p, estimate, difference, variance })
    }
}

/// The variance of the difference of two sides, one of which has a single sample. The single sample is assumed to vary
/// like the other side's samples. `None` if both sides have a single sample, or a sample has no logarithm.
fn pooled_variance(sides: [&Samples; 2], scale: RunScale) -> Option<VarianceEstimate> {
    let of = |side: &Samples| {
        let values = match scale {
            RunScale::Logarithms => positive(side)?.in_order().iter().map(|sample| sample.ln()).collect::<Vec<_>>(),
            RunScale::Values { unit } => side.in_order().iter().map(|sample| sample / unit).collect(),
        };
        let degrees = values.len() as f64 - 1.0;
        // A single sample has none, and no degree of freedom to weigh it.
        let stddev = Samples::new(&values).ok()?.stddev().unwrap_or(0.0);
        Some((stddev.powi(2) * degrees, degrees))
    };
    let [(one, one_degrees), (other, other_degrees)] = [of(sides[0])?, of(sides[1])?];
    let degrees = one_degrees + other_degrees;
    let share = sides.iter().map(|side| 1.0 / side.count() as f64).sum::<f64>();
    (degrees >= 1.0).then(|| VarianceEstimate { variance: (one + other) / degrees * share, degrees })
}

/// The p-value of a difference as if runs did not differ, by Student's t of all samples: so few can hardly be
/// significant by their ranks, while runs can. `None` if a sample has no place on the scale.
fn p_of_few(difference: f64, sides: &Observations, scale: RunScale) -> Option<f64> {
    let of_side = |side: &Samples| {
        let level = |sample: &f64| match scale {
            RunScale::Logarithms => (*sample > 0.0).then(|| sample.ln()),
            RunScale::Values { unit } => Some(sample / unit),
        };
        let run = |sample: &f64| Some(WeightedRun { level: level(sample)?, weight: 1.0 });
        side.in_order().iter().map(run).collect::<Option<Vec<_>>>()
    };
    let [a, b] = [of_side(&sides.all[0])?, of_side(&sides.all[1])?];
    Some(RunPrior::NONE.ratio(difference, &a, &b, NO_VARIANCE, NoiseSource::OwnRuns)?.p_value())
}

/// The levels of the runs of both sides on their scale; `None` if one has no logarithm.
fn levels(
    aspect: Aspect,
    quantile: Option<f64>,
    sides: &Observations,
    scale: RunScale,
) -> Option<[Vec<WeightedRun>; 2]> {
    let level = |run: &Vec<f64>| {
        let samples = Samples::new(run).ok()?;
        let level = match (aspect, quantile) {
            (Aspect::Mean, _) => samples.mean(),
            (_, quantile) => samples.quantile(quantile.unwrap_or(0.5)),
        };
        let level = match scale {
            RunScale::Logarithms => (level > 0.0).then(|| level.ln())?,
            RunScale::Values { unit } => level / unit,
        };
        Some(WeightedRun { level, weight: samples.count() as f64 })
    };
    let [a, b] = sides.runs.each_ref().map(|runs| runs.iter().map(level).collect::<Option<Vec<_>>>());
    Some([a?, b?])
}

#[expect(clippy::too_many_arguments, reason = "all of what is known of both sides")]
fn with_runs(
    aspect: Aspect,
    difference: f64,
    [a, b]: [&[WeightedRun]; 2],
    sampling: Option<VarianceEstimate>,
    variation: RunVariation<'_>,
    sides: &Observations,
    scale: RunScale,
    source: NoiseSource,
) -> Option<(StudentRatio, Option<NoiseSource>)> {
    match variation {
        RunVariation::Model(noise) if aspect == Aspect::Shift && scale == RunScale::Logarithms => {
            Some((noise.ratio(&sides.runs[0], &sides.runs[1])?, None))
        }
        // A model knows how medians vary.
        RunVariation::Model(noise) => Some((noise.aspect_ratio(difference, a, b, sampling)?, None)),
        RunVariation::SameRun => None,
        // The spread of these runs includes the noise of their samples.
        RunVariation::Prior(prior) if source == NoiseSource::SingleSamples => {
            Some((prior.ratio(difference, a, b, NO_VARIANCE, source)?, Some(source)))
        }
        RunVariation::Prior(prior) => Some((prior.ratio(difference, a, b, sampling?, source)?, Some(source))),
        // The prior is of whole results.
        RunVariation::Results(prior) => {
            Some((prior.ratio(difference, a, b, sampling.unwrap_or(NO_VARIANCE), source)?, Some(source)))
        }
    }
}

fn average(runs: &[WeightedRun]) -> f64 {
    let weights: f64 = runs.iter().map(|run| run.weight).sum();
    runs.iter().map(|run| run.level * run.weight / weights).sum()
}

fn positive(samples: &Samples) -> Option<Samples> {
    (samples.min() > 0.0).then(|| samples.clone())
}
