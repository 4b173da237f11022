//! Moving a model to a new level.

use super::fit::{check_histories, fit_values, mean};
use super::{FitMethod, ModelEntry, NormalRange, ToleranceModel};
use crate::build::Builds;

/// A model at a new level.
#[derive(Debug, Clone, PartialEq)]
pub struct RebasedModel {
    /// The model.
    pub model: ToleranceModel,
    /// How many of its checks the builds do not have, so that they stay where they were.
    pub unchanged: usize,
}

impl ToleranceModel {
    /// Keeps what deviation is normal, in the unit of the check, and moves the level to the builds' average: for a
    /// change that was wanted, of which there are too few builds to fit anew. The average, and the ends of the range in
    /// percent of it, are moved with it. Checks that the model does not know are fitted as `how` says, by the model's
    /// tolerance or else `tolerance`; those that the builds do not know stay as they are.
    ///
    /// Source of the formula: run-perf, `ModelLinearRegression.rebase`, which leaves average and range as they were.
    pub fn rebase(&self, how: FitMethod, tolerance: f64, builds: &Builds) -> RebasedModel {
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
                None => fit_values(how, tolerance, &values),
            };
            model.entries.extend(entry.map(|entry| (id, entry)));
        }
        RebasedModel { model, unchanged: unmoved }
    }
}

/// The entry with its middle, where the score is 0, at a new average.
fn shift_entry(entry: &ModelEntry, average: f64, tolerance: f64) -> ModelEntry {
    let mut equation = entry.equation;
    equation.intercept = -equation.slope * average;
    let half = (tolerance / equation.slope / average * 100.0).abs();
    let spread = half.is_finite().then_some(NormalRange { min: -half, max: half });
    ModelEntry { equation, average: Some(average), range: spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_kept_and_the_level_moves() {
        let entry = fit_values(FitMethod::Linear, 4.0, &[90.0, 110.0]).unwrap();
        let moved = shift_entry(&entry, 200.0, 4.0);
        let (low, high) = moved.range(4.0).unwrap();
        assert!((low - 190.0).abs() < 1e-9 && (high - 210.0).abs() < 1e-9);
        assert_eq!(moved.average, Some(200.0));
        let spread = moved.range.unwrap();
        assert!((spread.min + 5.0).abs() < 1e-9 && (spread.max - 5.0).abs() < 1e-9);
    }
}
