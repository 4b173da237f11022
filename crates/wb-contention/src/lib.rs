//! Contention benches: what a sequence of them is, how it is resumed, and what follows from its results. A sequence is
//! no plan of cells: its stages depend on the answers of earlier ones (a footprint to protect, a model that limits the
//! settings), take minutes to hours, and have checkpoints. So it has a driver of its own, in the same run folder:
//! events of the same journal (`JournalEvent::Sequence`), the same lock, the same archive.
//!
//! ```text
//! BenchSpec ─▶ sequence::schedule ─▶ Job ─▶ stages ─▶ execute ──StageRunner──▶ Measurement + SecondReports
//!  what is      order, missing            what is      keeps each result            │
//!  requested    prerequisites             measured     as it comes (record)         ▼
//!                                                               study ─▶ BenchResult ─▶ format
//!                                                                          ▲   │
//!                                                                   merge ─┘   ▼ solve
//! ```
//!
//! - [`benches`]: a folder for each bench: its properties, what its measurements say, and its text.
//! - [`spec`]: `BENCH[:GROUP…]` with typed properties.
//! - [`sequence`]: the order of benches, their stages, and which of these are there already.
//! - [`mod@execute`]: drives a sequence through [`runner::StageRunner`], and reads what it left.
//! - [`record`]: events in the journal of the run folder; a stage is found again by a hash of what it measures and under
//!   which conditions ([`stage`], [`conditions`]).
//! - [`study`]: from [`measurement`] and [`report`] to a result; [`merge`]: one result of several.
//! - [`mod@format`]: results as text, in the layouts of resctl-bench; [`resctl_bench`] reads its result files.
//!
//! What a result is, and what can be read off it, is in [`wb_results::contention`]; this crate computes results.
//!
//! This crate measures nothing, changes nothing on a machine, and prints nothing. It must not depend on tests, workers
//! or agents: who runs stages implements [`runner::StageRunner`]. `docs/contention.md` explains the benches.
//!
//! Start with [`spec::BenchSpec`], then [`sequence::plan()`] and [`execute::execute()`].

#![forbid(unsafe_code)]

pub mod benches;
pub mod conditions;
pub mod distribution;
pub mod execute;
pub mod figures;
pub mod format;
pub mod iocost;
pub mod latency_table;
pub mod machine;
pub mod measurement;
pub mod merge;
pub mod parameters;
pub mod record;
pub mod report;
pub mod resctl_bench;
pub mod runner;
pub mod sequence;
pub mod spec;
pub mod stage;
pub mod study;

pub use benches::iocost_tune::solve;
pub use iocost::vrate_bounds;
pub use parameters::Parameters;
pub use spec::BenchSpec;
