//! Between which values a check is within its tolerance, and by which models.

use std::path::Path;

use super::{Check, Comparison};
use crate::id::Statistic;
use crate::model::Equation;

/// The values of a check that are within its tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct ToleranceLimits {
    /// The models that know the check, by their places among the comparison's; without any the source's value counts.
    pub models: Vec<usize>,
    /// The least and the largest of the values, in the check's unit. What the builds between add to the last build's
    /// score is not in it. None where the source has no number or the score does not depend on the value.
    pub range: Option<(f64, f64)>,
}

impl Comparison<'_> {
    /// The values of a check that are within its tolerance.
    pub fn limits(&self, check: usize) -> ToleranceLimits {
        let Check { row, statistic, .. } = self.checks[check];
        let known = self.models.iter().enumerate();
        let known = known.filter_map(|(at, model)| Some((at, model.entry(row, statistic)?.equation)));
        let (models, equations): (Vec<usize>, Vec<Equation>) = known.unzip();
        let tolerance = self.tolerance(check);
        let range = match equations.as_slice() {
            [] => self.value(check, 0).known().map(|src| around(statistic, src, tolerance)),
            equations => average(equations).range(tolerance),
        };
        // No deviation is below zero.
        let floor = if statistic == Statistic::Stddev { 0.0 } else { f64::NEG_INFINITY };
        ToleranceLimits { models, range: range.map(|(low, high)| (low.min(high).max(floor), low.max(high).max(floor))) }
    }

    /// The files of the models, in their order; none of a model that was not read from one.
    pub fn model_files(&self) -> impl ExactSizeIterator<Item = Option<&Path>> {
        self.models.iter().map(|model| model.file())
    }
}

/// Without a model: so many percent around a mean, so many points around a standard deviation.
fn around(statistic: Statistic, src: f64, tolerance: f64) -> (f64, f64) {
    let half = match statistic {
        Statistic::Mean => src.abs() * tolerance / 100.0,
        Statistic::Stddev => tolerance,
    };
    (src - half, src + half)
}

/// The equation whose score is the average of several ones'.
fn average(equations: &[Equation]) -> Equation {
    let mean = |of: fn(&Equation) -> f64| equations.iter().map(of).sum::<f64>() / equations.len() as f64;
    Equation { slope: mean(|equation| equation.slope), intercept: mean(|equation| equation.intercept) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_of_several_models_have_the_tolerance_as_their_average_score() {
        let equations = [(0.4, -40.0), (0.2, -18.0)].map(|(slope, intercept)| Equation { slope, intercept });
        let (low, high) = average(&equations).range(5.0).unwrap();
        let score = |value| equations.iter().map(|equation| equation.score(value)).sum::<f64>() / 2.0;
        assert!((score(low) + 5.0).abs() < 1e-9 && (score(high) - 5.0).abs() < 1e-9, "{low} {high}");
        assert_eq!(average(&[Equation { slope: 0.0, intercept: 1.0 }]).range(5.0), None);
    }

    #[test]
    fn without_a_model_the_tolerance_lies_around_the_first_value() {
        assert_eq!(around(Statistic::Mean, -200.0, 5.0), (-210.0, -190.0));
        assert_eq!(around(Statistic::Stddev, 7.0, 5.0), (2.0, 12.0));
    }
}
