//! Chooses one unit and prefix for a check's values in all builds, so that they can be compared.

use wb_compare::Statistic;
use wb_compare::comparison::BuildHistory;

/// A divisor and the unit of the divided values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DisplayUnit {
    pub(super) divisor: f64,
    pub(super) suffix: String,
}

impl DisplayUnit {
    /// The unit for a check.
    pub(super) fn of(history: &BuildHistory<'_>, check: usize) -> Self {
        let check_info = history.tolerances.checks[check];
        if check_info.statistic == Statistic::Stddev {
            return Self { divisor: 1.0, suffix: "%".to_owned() };
        }
        let Some(unit) = history.builds.unit(check_info.row) else {
            return Self { divisor: 1.0, suffix: String::new() };
        };
        let values =
            (0..history.builds.list().len()).filter_map(|build| history.tolerances.value(check, build).number());
        let (divisor, suffix) = unit.readable(values.map(f64::abs).fold(0.0, f64::max));
        Self { divisor, suffix }
    }
}
