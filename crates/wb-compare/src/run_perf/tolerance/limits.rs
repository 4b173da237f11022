//! The range of values within the tolerance of a check, and the models that determine it.

use std::path::Path;

use wb_results::comparison::Statistic;

use super::{Check, Comparison};
use crate::run_perf::model::Equation;

#[derive(Debug, Clone, PartialEq)]
pub struct ToleranceLimits {
    /// Indices of the models that have the check; without any, the reference's value determines the range.
    pub models: Vec<usize>,
    /// Minimum and maximum in the check's unit, without the influence of the builds in between on the last build's
    /// score. `None` if the reference has no valid value or the score does not depend on the value.
    pub range: Option<(f64, f64)>,
}

impl Comparison<'_> {
    pub fn limits(&self, check: usize) -> ToleranceLimits {
        let Check { row, statistic, .. } = self.checks[check];
        let entries = self.models.iter().enumerate();
        let entries = entries.filter_map(|(index, model)| Some((index, model.entry(row, statistic)?.equation)));
        let (models, equations): (Vec<usize>, Vec<Equation>) = entries.unzip();
        let tolerance = self.tolerance(check);
        let range = match equations.as_slice() {
            [] => self.value(check, 0).number().map(|reference| around(statistic, reference, tolerance)),
            equations => average(equations).range(tolerance),
        };
        // Deviations are not negative.
        let floor = if statistic == Statistic::Stddev { 0.0 } else { f64::NEG_INFINITY };
        ToleranceLimits { models, range: range.map(|(low, high)| (low.min(high).max(floor), low.max(high).max(floor))) }
    }

    /// The files of the models, in order; `None` for a model that was not read from a file.
    pub fn model_files(&self) -> impl ExactSizeIterator<Item = Option<&Path>> {
        self.models.iter().map(|model| model.file())
    }
}

/// The range without a model: in percent around a mean, in percentage points around a standard deviation.
fn around(statistic: Statistic, reference: f64, tolerance: f64) -> (f64, f64) {
    let half_width = match statistic {
        Statistic::Mean => reference.abs() * tolerance / 100.0,
        Statistic::Stddev => tolerance,
    };
    (reference - half_width, reference + half_width)
}

/// The equation whose score is the average score of several equations.
fn average(equations: &[Equation]) -> Equation {
    let mean = |of: fn(&Equation) -> f64| equations.iter().map(of).sum::<f64>() / equations.len() as f64;
    Equation { slope: mean(|equation| equation.slope), intercept: mean(|equation| equation.intercept) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_several_models_is_based_on_their_average_score() {
        let equations = [(0.4, -40.0), (0.2, -18.0)].map(|(slope, intercept)| Equation { slope, intercept });
        let (low, high) = average(&equations).range(5.0).unwrap();
        let score = |value| equations.iter().map(|equation| equation.score(value)).sum::<f64>() / 2.0;
        assert!((score(low) + 5.0).abs() < 1e-9 && (score(high) - 5.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(average(&[Equation { slope: 0.0, intercept: 1.0 }]).range(5.0), None);
    }

    #[test]
    fn without_a_model_the_range_is_around_the_first_value() {
        assert_eq!(around(Statistic::Mean, -200.0, 5.0), (-210.0, -190.0));
        assert_eq!(around(Statistic::Stddev, 7.0, 5.0), (2.0, 12.0));
    }
}
