//! Sessions: the client that runs a profile, and the server that executes its part.
//!
//! Start with [`client`] and [`server`]; [`coordinate`] is the run itself, and [`limits`] what a server does at most.

pub mod client;
pub mod coordinator;
pub mod limits;
pub mod server;
