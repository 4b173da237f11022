//! A table of all values: one row per check, one column per build.

use std::io::Write;

use wb_results::comparison::Statistic;

use crate::build::{Builds, MeasuredValue, MetricIndex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFilter {
    /// Primary in any build.
    Primary,
    All,
}

/// The checks of a table, sorted by identifier.
pub fn checks(builds: &Builds, which: CheckFilter) -> Vec<(String, MetricIndex, Statistic)> {
    let is_included = |row: &MetricIndex| match which {
        CheckFilter::Primary => builds.is_primary(*row),
        CheckFilter::All => true,
    };
    let both = builds.rows().filter(is_included).flat_map(|row| Statistic::ALL.map(|statistic| (row, statistic)));
    let present = both.filter(|(row, statistic)| {
        builds.list().iter().any(|build| build.value(*row, *statistic) != MeasuredValue::Missing)
    });
    let mut checks: Vec<_> =
        present.map(|(row, statistic)| (builds.id(row, statistic).to_string(), row, statistic)).collect();
    checks.sort_unstable();
    checks
}

/// Writes the table as CSV: `check` and the builds' names, then a line for each check. Missing values are empty,
/// invalid ones are `invalid`; numbers have all their digits.
pub fn write_csv(builds: &Builds, which: CheckFilter, into: impl Write) -> csv::Result<()> {
    let mut csv = csv::Writer::from_writer(into);
    csv.write_field("check")?;
    csv.write_record(builds.list().iter().map(|build| &build.name))?;
    for (id, row, statistic) in checks(builds, which) {
        csv.write_field(id)?;
        csv.write_record(builds.list().iter().map(|build| match build.value(row, statistic) {
            MeasuredValue::Known(value) => value.to_string(),
            MeasuredValue::Missing => String::new(),
            MeasuredValue::Invalid => "invalid".to_owned(),
        }))?;
    }
    csv.flush()?;
    Ok(())
}
