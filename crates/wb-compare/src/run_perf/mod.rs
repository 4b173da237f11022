//! What is compatible with run-perf: its folders and results, its method of comparison, its models.
//!
//! [`mod@tolerance`] compares by differences in percent, with [`model`]s of normal ranges; [`mod@nearest`] finds the
//! most similar build; [`mod@strip`] reduces a result folder. Formulas are run-perf's; each module lists where it
//! differs.

pub(crate) mod format;
pub mod model;
pub mod nearest;
pub mod strip;
pub mod tolerance;
pub(crate) mod uncertainty;
