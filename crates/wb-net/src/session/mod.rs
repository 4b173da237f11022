//! Sessions: the client that runs a profile, and the server that executes its part.
//!
//! Start with [`client`] and [`server`]; [`coordinator`] is the run itself, [`limits`] bounds what a server executes.

pub mod client;
pub mod coordinator;
pub mod limits;
pub mod server;
