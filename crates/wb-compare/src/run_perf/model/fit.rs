//! Fits a tolerance model to builds.
//!
//! Source of the formulas: run-perf, `ModelLinearRegression.identify` and `ModelStdev.identify`.

use wb_results::comparison::Statistic;

use super::{Equation, ModelEntry, NormalRange, ToleranceModel};
use crate::build::{Build, Builds};
use crate::run_perf::uncertainty::uncertainty;

/// How the range of values that is mapped to ± tolerance is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitMethod {
    /// From the minimum to the maximum.
    Linear,
    /// The mean ± 3 standard deviations (of the population) · U(n).
    Stddev,
}

/// A range narrower than the tolerance divided by this is widened to it: values that are too similar would make a model
/// that reports every value as a change.
const MIN_RANGE_DIVISOR: f64 = 1.1;
/// In standard deviations.
const RANGE_STDDEVS: f64 = 3.0;

impl FitMethod {
    /// The version of the files in which run-perf stores models of this method.
    fn version(self) -> u32 {
        match self {
            Self::Linear => 2,
            Self::Stddev => 1,
        }
    }
}

/// Fits a model to every check of the builds, with one value per build. The ends of the range are mapped to
/// `tolerance`, in percent. A check whose range has no width is skipped, since no line can map it.
pub fn fit(method: FitMethod, tolerance: f64, builds: &Builds) -> ToleranceModel {
    let entry = |(id, values): (String, Vec<f64>)| Some((id, fit_values(method, tolerance, &values)?));
    let entries = check_histories(builds).filter_map(entry).collect();
    ToleranceModel { file: None, version: Some(method.version()), tolerance: Some(tolerance), entries }
}

/// The identifier of each check with its values in the builds that have it.
pub(super) fn check_histories(builds: &Builds) -> impl Iterator<Item = (String, Vec<f64>)> {
    let checks = builds.rows().flat_map(|row| Statistic::ALL.map(|statistic| (row, statistic)));
    checks.filter_map(|(row, statistic)| {
        // Of several definitions only the last one is used.
        let has = |build: &&Build| build.value(row, statistic).number().is_some();
        let last = builds.list().iter().rfind(has)?;
        let comparable = builds.list().iter().filter(|build| builds.is_comparable([last, build], row));
        let values: Vec<f64> = comparable.filter_map(|build| build.value(row, statistic).number()).collect();
        (!values.is_empty()).then(|| (builds.id(row, statistic).to_string(), values))
    })
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Fits one check; `None` if the range has no width or the values exceed what can be computed.
pub(super) fn fit_values(method: FitMethod, tolerance: f64, values: &[f64]) -> Option<ModelEntry> {
    let average = mean(values);
    let (low, high) = match method {
        FitMethod::Linear => (
            values.iter().copied().fold(f64::INFINITY, f64::min),
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ),
        FitMethod::Stddev => {
            let squares = values.iter().map(|value| (value - average).powi(2)).sum::<f64>();
            let half_width = RANGE_STDDEVS * (squares / values.len() as f64).sqrt() * uncertainty(values.len());
            (average - half_width, average + half_width)
        }
    };
    let min_half_width = (average * tolerance / 100.0 / MIN_RANGE_DIVISOR).abs();
    let (low, high) = (low.min(average - min_half_width), high.max(average + min_half_width));
    let equation = line_through(low, high, tolerance)?;
    let percent = |end: f64| (end - average) / average * 100.0;
    let spread = Some(NormalRange { min: percent(low), max: percent(high) });
    Some(ModelEntry {
        equation,
        average: Some(average),
        range: spread.filter(|it| it.min.is_finite() && it.max.is_finite()),
    })
}

/// The line that maps `low` to −tolerance and `high` to +tolerance; `None` without width.
fn line_through(low: f64, high: f64, tolerance: f64) -> Option<Equation> {
    let width = high - low;
    let equation = Equation { slope: 2.0 * tolerance / width, intercept: -tolerance * (high + low) / width };
    (width > 0.0 && equation.slope.is_finite() && equation.intercept.is_finite()).then_some(equation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-12 * other.abs().max(1.0)
    }

    #[test]
    fn the_ends_of_the_range_map_to_the_tolerance() {
        let entry = fit_values(FitMethod::Linear, 4.0, &[90.0, 100.0, 120.0]).unwrap();
        assert!(close(entry.equation.score(90.0), -4.0) && close(entry.equation.score(120.0), 4.0));
        let spread = entry.range.unwrap();
        assert!(close(entry.average.unwrap(), 310.0 / 3.0));
        assert!(close(spread.min, (90.0 / (310.0 / 3.0) - 1.0) * 100.0) && spread.max > 0.0);
    }

    #[test]
    fn too_similar_values_are_widened_also_below_zero() {
        for values in [[100.0, 100.0], [-100.0, -100.0]] {
            for method in [FitMethod::Linear, FitMethod::Stddev] {
                let spread = fit_values(method, 4.0, &values).unwrap().range.unwrap();
                assert!(
                    close(spread.max.abs(), 4.0 / 1.1) && close(spread.min.abs(), 4.0 / 1.1),
                    "{method:?} {spread:?}"
                );
            }
        }
    }

    #[test]
    fn a_range_without_width_cannot_be_mapped() {
        assert_eq!(fit_values(FitMethod::Linear, 4.0, &[0.0, 0.0]), None);
        assert_eq!(fit_values(FitMethod::Stddev, 4.0, &[0.0]), None);
        assert_eq!(fit_values(FitMethod::Linear, 4.0, &[1e308, 1e308]), None);
    }
}
