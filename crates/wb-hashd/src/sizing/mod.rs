//! Sizing: finds the parameters with which hashd loads a machine fully.
//!
//! ```text
//! SizingConfig ─▶ sequence::next_step(config, finished rounds) ─▶ the next round, or the answer
//!                      ▲                                              │
//!                      └── Round ◀── find_params ◀── SizingWorkload ◀─┘
//!                                    (driver)        hashd, observed until a Window has converged
//! ```
//!
//! What comes next depends on the finished rounds alone, so an interrupted sizing is resumed by replaying its journal.
//! The order of the rounds and their limits are those of rd-hashd (`--bench`) of resctl-demo, unless said otherwise.
//!
//! Start with [`SizingConfig`] and [`next_step`].

mod config;
mod driver;
mod journal;
mod monitor;
mod round;
mod sequence;
#[cfg(test)]
mod simulation;
mod window;

pub use config::SizingConfig;
pub use driver::{Observation, SizingWorkload, WindowEnd, find_params};
pub use journal::{JournalError, SizingJournal};
pub use monitor::DisturbanceMonitor;
pub use round::{Round, RoundOutcome, RoundPlan, SizingError, SizingLine, SizingRequest, SizingResult, Stage};
pub use sequence::{SizingStep, next_step};
pub use window::{Reading, Window};
