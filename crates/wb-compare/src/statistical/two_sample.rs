//! Two-sample tests. The test comes first and the effect later, since the required confidence of an interval depends on
//! how many metrics differ.

use wb_stats::{HierarchicalBootstrap, HodgesLehmann, Ratio, RunNoise, Samples, StudentRatio};

use super::observations::{ObservationKind, observations};

/// A two-sample test, by method.
pub(super) enum TwoSampleTest {
    /// A rank test, without its values, since there may be millions.
    RankSum {
        p: f64,
    },
    Bootstrap(HierarchicalBootstrap),
    /// A test with a known spread of runs.
    Student(StudentRatio),
}

impl TwoSampleTest {
    /// Tests the samples of each side's runs, using the `noise` of runs if known; `None` if no ratio can be computed.
    /// Intervals are available at `min_confidence` and above.
    pub(super) fn of(
        runs: &[Vec<Vec<f64>>; 2],
        unit: ObservationKind,
        noise: Option<&RunNoise>,
        min_confidence: f64,
        seed: Option<u64>,
    ) -> Option<Self> {
        if let Some(noisy) = noise.and_then(|model| model.ratio(&runs[0], &runs[1])) {
            return Some(Self::Student(noisy));
        }
        if let Some(bootstrap) =
            seed.and_then(|seed| HierarchicalBootstrap::of(&runs[0], &runs[1], min_confidence, seed))
        {
            return Some(Self::Bootstrap(bootstrap));
        }
        let [a, b] = sides(runs, unit)?;
        Some(Self::RankSum { p: HodgesLehmann::new(&a, &b)?.p_value() })
    }

    /// The p-value: probability of at least this difference if the sides are equal.
    pub(super) fn p(&self) -> f64 {
        match self {
            Self::RankSum { p } => *p,
            Self::Bootstrap(bootstrap) => bootstrap.p_value(),
            Self::Student(noisy) => noisy.p_value(),
        }
    }

    /// The ratio of the sides; `runs` are the tested runs.
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
            Self::Bootstrap(bootstrap) => Some(bootstrap.ratio(confidence)),
            Self::Student(noisy) => Some(noisy.ratio(confidence)),
        }
    }
}

fn sides(runs: &[Vec<Vec<f64>>; 2], unit: ObservationKind) -> Option<[Samples; 2]> {
    let [a, b] = runs.each_ref().map(|runs| Samples::new(&observations(runs, unit)).ok());
    Some([a?, b?])
}
