//! Errors in texts that users write (plans, inventories, profiles, command lines): what is wrong, where, and the way
//! out.
//!
//! This crate does not depend on any other of the workspace, reads no files and prints nothing.
//!
//! Start with [`diagnostic`] (one error, with its position in a [`source_text`]), then [`suggestion`] ("did you mean").
//! A parser that reports all errors of a text returns [`diagnostics`]; [`excerpt`] renders the lines around an error.
//! The library that renders source lines (miette) is known here and in `wb-net` only, so that an error in a text has
//! one type, whoever wrote the parser, and a name is suggested by one rule.

#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod diagnostics;
pub mod excerpt;
pub mod serde_message;
pub mod source_text;
pub mod suggestion;

pub use diagnostic::{Diagnostic, Location};
pub use diagnostics::{DiagnosticCollector, Diagnostics};
pub use excerpt::render_excerpt;
pub use serde_message::{UnknownKind, UnknownName, humanize_serde_error};
pub use source_text::{Position, SourceText};
pub use suggestion::{Suggestion, help_with_suggestion, suggest};
