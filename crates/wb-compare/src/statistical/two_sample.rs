//! How two sides of a metric are held against each other: whether they differ first, by how much after that, since how
//! wide an interval has to be depends on how many metrics differ.

use wb_stats::{HierarchicalBootstrap, HodgesLehmann, Ratio, RunNoise, Samples, StudentRatio};

use super::observations::{ObservationKind, observations};

/// What a test of two sides left.
pub(super) enum TwoSampleTest {
    /// Values were ranked; they are not kept, since there may be millions.
    RankSum {
        p: f64,
    },
    Bootstrap(HierarchicalBootstrap),
    /// How far runs lie apart was known.
    Student(StudentRatio),
}

impl TwoSampleTest {
    /// Of each side's runs with their samples, by what is `known` of their noise if anything is; none where no ratio can
    /// be had. Intervals are taken at `least` confidence and above.
    pub(super) fn of(
        runs: &[Vec<Vec<f64>>; 2],
        unit: ObservationKind,
        known: Option<&RunNoise>,
        least: f64,
        seed: Option<u64>,
    ) -> Option<Self> {
        if let Some(noisy) = known.and_then(|noise| noise.ratio(&runs[0], &runs[1])) {
            return Some(Self::Student(noisy));
        }
        if let Some(drawn) = seed.and_then(|seed| HierarchicalBootstrap::of(&runs[0], &runs[1], least, seed)) {
            return Some(Self::Bootstrap(drawn));
        }
        let [a, b] = sides(runs, unit)?;
        Some(Self::RankSum { p: HodgesLehmann::new(&a, &b)?.p_value() })
    }

    /// How likely sides that differ in nothing are so far apart.
    pub(super) fn p(&self) -> f64 {
        match self {
            Self::RankSum { p } => *p,
            Self::Bootstrap(drawn) => drawn.p_value(),
            Self::Student(noisy) => noisy.p_value(),
        }
    }

    /// By which factor the sides differ; `runs` are those that were tested.
    pub(super) fn effect(
        &self,
        runs: impl FnOnce() -> [Vec<Vec<f64>>; 2],
        unit: ObservationKind,
        confidence: f64,
    ) -> Option<Ratio> {
        match self {
            Self::RankSum { p } => {
                let [a, b] = sides(&runs(), unit)?;
                Some(HodgesLehmann::new(&a, &b)?.ratio(*p, confidence))
            }
            Self::Bootstrap(drawn) => Some(drawn.ratio(confidence)),
            Self::Student(noisy) => Some(noisy.ratio(confidence)),
        }
    }
}

fn sides(runs: &[Vec<Vec<f64>>; 2], unit: ObservationKind) -> Option<[Samples; 2]> {
    let [a, b] = runs.each_ref().map(|runs| Samples::new(&observations(runs, unit)).ok());
    Some([a?, b?])
}
