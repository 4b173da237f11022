//! What this machine is and does: facts, environment, processes, telemetry.
//!
//! Everything is read through a [`SysRoot`], which is `/` or a made one, so that a laptop, a server
//! and a box that nobody has can all be tested on any machine. This crate knows no test, no plan and
//! no record, and judges nothing: what is noisy is for the knobs to say. What is changed of it is changed through
//! [`undo`] alone.
//!
//! Start with [`root`], then [`facts`] (what a plan depends on) and [`environment`] (the world, to be
//! compared before and after); [`mod@system`] puts both into the table that reports show.

pub mod cgroup;
pub mod environment;
pub mod facts;
pub mod fake_root;
pub mod process;
pub mod sys_root;
pub mod system;
pub mod telemetry;
pub mod undo;

pub use environment::Environment;
pub use facts::facts;
pub use sys_root::{SysError, SysRoot};
pub use system::system;
pub use undo::UndoLog;
