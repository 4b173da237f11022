//! Sessions: the client that runs a profile, and the server that executes its part.
//!
//! Start with [`client`] and [`server`]; [`coordinator`] is the run itself, [`limits`] bounds what a server executes.

pub mod client;
pub mod coordinator;
pub mod limits;
pub mod server;

use std::time::Duration;

/// After a failure on this machine, how long to wait for a failure or disconnect of the other side that may have caused
/// it. A side that dies takes its connections with it: the reset of one of them may be noticed first.
const ROOT_CAUSE_WINDOW: Duration = Duration::from_millis(500);
