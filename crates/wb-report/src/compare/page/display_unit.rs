//! In what the values of a check are shown: one unit and prefix for all builds, so that they can be held against each
//! other.

use wb_compare::Statistic;
use wb_compare::comparison::BuildHistory;

use crate::chart::common_prefix;

/// A divisor, and what then stands behind the values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DisplayUnit {
    pub(super) divisor: f64,
    pub(super) suffix: String,
}

impl DisplayUnit {
    /// Of a check.
    pub(super) fn of(history: &BuildHistory<'_>, check: usize) -> Self {
        let of = history.tolerances.checks[check];
        if of.statistic == Statistic::Stddev {
            return Self { divisor: 1.0, suffix: "%".to_owned() };
        }
        let Some(unit) = history.builds.unit(of.row) else { return Self { divisor: 1.0, suffix: String::new() } };
        let values =
            (0..history.builds.list().len()).filter_map(|build| history.tolerances.value(check, build).known());
        let (divisor, suffix) = common_prefix(&unit, values.map(f64::abs).fold(0.0, f64::max));
        Self { divisor, suffix }
    }
}
