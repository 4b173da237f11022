//! Moves a tolerance model to a new level.

use super::fit::{check_histories, fit_values, mean};
use super::{FitMethod, ModelEntry, NormalRange, ToleranceModel};
use crate::build::Builds;

#[derive(Debug, Clone, PartialEq)]
pub struct RebasedModel {
    pub model: ToleranceModel,
    /// Checks that the builds do not have.
    pub unchanged: usize,
}

impl ToleranceModel {
    /// Keeps the normal deviation, in the unit of the check, and moves the level to the builds' mean: for an intended
    /// change with too few builds for a new fit. The mean, and the ends of the range in percent of it, move
    /// accordingly. Checks that the model does not have are fitted by `method`, with the model's tolerance or else
    /// `tolerance`; those that the builds do not have are unchanged.
    ///
    /// Source of the formula: run-perf, `ModelLinearRegression.rebase`, which does not update average and range.
    pub fn rebase(&self, method: FitMethod, tolerance: f64, builds: &Builds) -> RebasedModel {
        let tolerance = self.tolerance.unwrap_or(tolerance);
        let version = self.version.or(Some(2));
        let mut model = Self { file: None, version, tolerance: Some(tolerance), entries: self.entries.clone() };
        let mut unmoved = self.entries.len();
        for (id, values) in check_histories(builds) {
            let entry = match self.entries.get(&id) {
                Some(entry) => {
                    unmoved -= 1;
                    Some(shift_entry(entry, mean(&values), tolerance))
                }
                None => fit_values(method, tolerance, &values),
            };
            model.entries.extend(entry.map(|entry| (id, entry)));
        }
        RebasedModel { model, unchanged: unmoved }
    }
}

/// Moves the center of an entry, where the score is 0, to a new mean.
fn shift_entry(entry: &ModelEntry, average: f64, tolerance: f64) -> ModelEntry {
    let mut equation = entry.equation;
    equation.intercept = -equation.slope * average;
    let half_width = (tolerance / equation.slope / average * 100.0).abs();
    let spread = half_width.is_finite().then_some(NormalRange { min: -half_width, max: half_width });
    ModelEntry { equation, average: Some(average), range: spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebase_keeps_the_deviation_and_moves_the_level() {
        let entry = fit_values(FitMethod::Linear, 4.0, &[90.0, 110.0]).unwrap();
        let moved = shift_entry(&entry, 200.0, 4.0);
        let (low, high) = moved.equation.range(4.0).unwrap();
        assert!((low - 190.0).abs() < 1e-9 && (high - 210.0).abs() < 1e-9);
        assert_eq!(moved.average, Some(200.0));
        let spread = moved.range.unwrap();
        assert!((spread.min + 5.0).abs() < 1e-9 && (spread.max - 5.0).abs() < 1e-9);
    }
}
