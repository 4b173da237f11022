//! Writes results as comma-separated values, in tidy form: one header line, a row per observation, a column per
//! parameter, and plain numbers in one unit per metric.
//!
//! Start with [`metrics`] and [`samples`]; those of comparisons are in [`crate::compare`].

mod columns;
mod study;
mod units;

pub(crate) use columns::{CellColumns, CellFields};
pub use study::{metrics, samples};
pub(crate) use units::{SharedUnits, scale_figure};

/// Renders rows as text, below the names of their columns. Writing to memory cannot fail; rows must have equal lengths,
/// which the writer requires.
pub(crate) fn to_csv(
    head: impl IntoIterator<Item = impl AsRef<[u8]>>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut is_valid = writer.write_record(head).is_ok();
    for row in rows {
        is_valid &= writer.write_record(&row).is_ok();
    }
    debug_assert!(is_valid, "rows of unequal length");
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
