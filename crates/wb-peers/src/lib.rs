//! Matrices of implementations: every pair of implementations of a protocol, over every combination of what both
//! support.
//!
//! This crate starts nothing and measures nothing: it reads the file that defines a matrix, lists its cells, and
//! selects among them, with the reason for each cell that is left out.
//!
//! Start with [`matrix`] (endpoints and axes), then [`expansion`] (the cells) and [`selection`] (filters).
//! [`mod@format`] reads files: our own in TOML or YAML, and those of libp2p's performance suites. [`plausibility`]
//! judges the figures of cells.

#![forbid(unsafe_code)]

pub mod check;
pub mod expansion;
pub mod expectation;
pub mod format;
pub mod launch;
pub mod matrix;
pub mod plausibility;
pub mod scenario;
pub mod selection;
pub mod suite_output;

pub use check::FigureCheck;
pub use expansion::Cell;
pub use expectation::Expectations;
pub use format::{MatrixError, read_matrix};
pub use launch::{ContainerImage, Counts, DURATION, Dialect, EndpointCommand, Launch, Payload};
pub use matrix::{Aliases, Axis, AxisValues, Endpoint, ExpectedFailure, Matrix, Rule, Suite};
pub use scenario::CustomScenario;
pub use selection::{Decision, Exclusion, SelectionError, SelectionFlags, select};
