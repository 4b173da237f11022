//! A table of all values: a row for each check, a column for each build.

use std::io::Write;

use crate::build::{Builds, MeasuredValue, MetricIndex};
use crate::id::Statistic;

/// Which checks a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFilter {
    /// Those that are primary in any build.
    Primary,
    /// All.
    All,
}

/// The checks of a table with their identifiers, sorted by those.
pub fn checks(builds: &Builds, which: CheckFilter) -> Vec<(String, MetricIndex, Statistic)> {
    let wanted = |row: &MetricIndex| match which {
        CheckFilter::Primary => builds.list().iter().any(|build| build.primary(*row) == Some(true)),
        CheckFilter::All => true,
    };
    let both = builds.rows().filter(wanted).flat_map(|row| Statistic::ALL.map(|statistic| (row, statistic)));
    let known = both.filter(|(row, statistic)| {
        builds.list().iter().any(|build| build.value(*row, *statistic) != MeasuredValue::Missing)
    });
    let mut checks: Vec<_> =
        known.map(|(row, statistic)| (builds.id(row, statistic).to_string(), row, statistic)).collect();
    checks.sort_unstable();
    checks
}

/// Writes the table as CSV: `check` and the builds' names, then a line for each check. What is missing is empty, what
/// is invalid says so; numbers have all their digits.
///
/// Errors: the writer's.
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
