//! Numbers of signals, for [`crate::Process::signal`] and [`crate::ExitReason::Signalled`].

use rustix::process::Signal;

pub const SIGINT: i32 = Signal::INT.as_raw();
pub const SIGKILL: i32 = Signal::KILL.as_raw();
pub const SIGTERM: i32 = Signal::TERM.as_raw();
