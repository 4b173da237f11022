//! Sessions: a run as the client makes it, and a server's part in one.
//!
//! Start with [`client`] and [`server`]; [`coordinate`] is the run itself, and [`limits`] what a server does at most.

pub mod client;
pub mod coordinator;
pub mod limits;
pub mod server;
