//! How two sides of a metric are held against each other: whether they differ first, by how much after that, since how
//! wide an interval has to be depends on how many metrics differ.

use wb_stats::{Drawn, NoisyRatio, Ratio, RunNoise, Samples, TwoSides};

use super::units::{Unit, values};

/// What a test of two sides left.
pub(super) enum Tested {
    /// Values were ranked; they are not kept, since there may be millions.
    Ranked {
        p: f64,
    },
    Drawn(Drawn),
    /// How far runs lie apart was known.
    Noisy(NoisyRatio),
}

impl Tested {
    /// Of each side's runs with their samples, by what is `known` of their noise if anything is; none where no ratio can
    /// be had. Intervals are taken at `least` confidence and above.
    pub(super) fn of(
        runs: &[Vec<Vec<f64>>; 2],
        unit: Unit,
        known: Option<&RunNoise>,
        least: f64,
        seed: Option<u64>,
    ) -> Option<Self> {
        if let Some(noisy) = known.and_then(|noise| noise.ratio(&runs[0], &runs[1])) {
            return Some(Self::Noisy(noisy));
        }
        if let Some(drawn) = seed.and_then(|seed| Drawn::of(&runs[0], &runs[1], least, seed)) {
            return Some(Self::Drawn(drawn));
        }
        let [a, b] = sides(runs, unit)?;
        Some(Self::Ranked { p: TwoSides::new(&a, &b)?.p() })
    }

    /// How likely sides that differ in nothing are so far apart.
    pub(super) fn p(&self) -> f64 {
        match self {
            Self::Ranked { p } => *p,
            Self::Drawn(drawn) => drawn.p(),
            Self::Noisy(noisy) => noisy.p(),
        }
    }

    /// By which factor the sides differ; `runs` are those that were tested.
    pub(super) fn effect(
        &self,
        runs: impl FnOnce() -> [Vec<Vec<f64>>; 2],
        unit: Unit,
        confidence: f64,
    ) -> Option<Ratio> {
        match self {
            Self::Ranked { p } => {
                let [a, b] = sides(&runs(), unit)?;
                Some(TwoSides::new(&a, &b)?.ratio(*p, confidence))
            }
            Self::Drawn(drawn) => Some(drawn.ratio(confidence)),
            Self::Noisy(noisy) => Some(noisy.ratio(confidence)),
        }
    }
}

fn sides(runs: &[Vec<Vec<f64>>; 2], unit: Unit) -> Option<[Samples; 2]> {
    let [a, b] = runs.each_ref().map(|runs| Samples::new(&values(runs, unit)).ok());
    Some([a?, b?])
}
