//! Chooses one unit and prefix for a check's values in all builds, so that they can be compared.

use wb_results::comparison::Statistic;

use super::check_table::CheckTable;

/// A divisor and the unit of the divided values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DisplayUnit {
    pub(super) divisor: f64,
    pub(super) suffix: String,
}

impl DisplayUnit {
    pub(super) fn new(table: &CheckTable<'_>, row: usize) -> Self {
        let history = table.history;
        let check_info = history.tolerances.checks[table.any_check(row)];
        if check_info.statistic == Statistic::Stddev {
            return Self { divisor: 1.0, suffix: "%".to_owned() };
        }
        let Some(unit) = history.builds.unit(check_info.row) else {
            return Self { divisor: 1.0, suffix: String::new() };
        };
        let values = (0..table.names.len()).filter_map(|column| table.value(row, column).number());
        let (divisor, suffix) = unit.readable(values.map(f64::abs).fold(0.0, f64::max));
        Self { divisor, suffix }
    }
}
