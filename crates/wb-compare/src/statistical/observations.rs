//! The samples of both sides of a comparison, by run.

use wb_results::comparison::{Aspect, ObservationCounts};
use wb_stats::{Samples, paired_widening, widening};

use super::ENOUGH_SAMPLES;
use crate::build::{Build, Builds, MetricIndex, Run};
use crate::schedule::samples_by_round;

pub(super) struct Observations {
    /// By side and run, without empty runs.
    pub(super) runs: [Vec<Vec<f64>>; 2],
    /// Of all runs together.
    pub(super) all: [Samples; 2],
    /// Whether the samples of both sides form pairs, in this order.
    pub(super) paired: bool,
}

impl Observations {
    /// Within one run, those of the same rounds if there are enough. `None` if a side has no sample.
    pub(super) fn new(builds: &Builds, sides: [&Build; 2], row: MetricIndex) -> Option<Self> {
        if let (Some(_), [[reference], [judged]]) = (builds.within_run(), sides.map(|side| &side.runs[..])) {
            let pairs = samples_by_round([reference, judged], row);
            if pairs[0].len() >= ENOUGH_SAMPLES {
                let [reference, judged] = pairs.each_ref().map(|side| Samples::new(side).ok());
                return Some(Self { all: [reference?, judged?], runs: pairs.map(|side| vec![side]), paired: true });
            }
        }
        let runs = sides.map(|side| runs(side, row));
        let [reference, judged] = runs.each_ref().map(|runs| Samples::new(&runs.concat()).ok());
        Some(Self { all: [reference?, judged?], runs, paired: false })
    }

    /// The magnitude of the first side's level in an aspect, the unit of differences; `None` if no sample is below
    /// zero.
    pub(super) fn base(&self, aspect: Aspect) -> Option<f64> {
        let [reference, judged] = &self.all;
        let level = match (aspect, aspect.quantile()) {
            (Aspect::Mean, _) => reference.mean(),
            (_, quantile) => reference.quantile(quantile.unwrap_or(0.5)),
        };
        (reference.min().min(judged.min()) < 0.0).then_some(level.abs())
    }

    /// Whether each run has a single sample, so that the noise of samples cannot be told from that between runs.
    pub(super) fn are_single_samples(&self) -> bool {
        self.runs.iter().flatten().all(|run| run.len() == 1)
    }

    /// The factor by which the dependence of samples on those before them widens the interval of a ratio, as it widens
    /// those of runs. Pairs depend on those before them.
    pub(super) fn widening(&self) -> f64 {
        let [a, b] = &self.all;
        if self.paired {
            return paired_widening(a, b);
        }
        // Each run has the share of its samples in the variance of its side, and each side the larger share the fewer samples
        // it has, as if all samples varied alike.
        let inflation = |runs: &[Vec<f64>], all: &Samples| {
            let of_run = |run: &Vec<f64>| {
                let samples = Samples::new(run).ok()?;
                Some(samples.count() as f64 * widening(&samples).powi(2))
            };
            runs.iter().filter_map(of_run).sum::<f64>() / all.count() as f64
        };
        let [from, to] = [a, b].map(|side| 1.0 / side.count() as f64);
        ((inflation(&self.runs[0], a) * from + inflation(&self.runs[1], b) * to) / (from + to)).sqrt()
    }

    pub(super) fn counts(&self) -> ObservationCounts {
        ObservationCounts {
            samples: self.all.each_ref().map(Samples::count),
            runs: self.runs.each_ref().map(Vec::len),
            paired: self.paired,
        }
    }
}

/// The numbers of samples and runs of sides that need not have samples.
pub(super) fn counts(sides: [&Build; 2], row: MetricIndex) -> ObservationCounts {
    let runs = sides.map(|side| runs(side, row));
    ObservationCounts {
        samples: runs.each_ref().map(|runs| runs.iter().map(Vec::len).sum()),
        runs: runs.each_ref().map(Vec::len),
        paired: false,
    }
}

fn runs(side: &Build, row: MetricIndex) -> Vec<Vec<f64>> {
    side.runs.iter().map(|run| samples(run, row)).filter(|samples| !samples.is_empty()).collect()
}

/// The finite samples of a run; its mean if no samples were recorded.
pub(crate) fn samples(run: &Run, row: MetricIndex) -> Vec<f64> {
    match run.samples(row) {
        [] => run.reading(row).and_then(|reading| reading.mean.number()).into_iter().collect(),
        samples => samples.iter().copied().filter(|sample| sample.is_finite()).collect(),
    }
}
