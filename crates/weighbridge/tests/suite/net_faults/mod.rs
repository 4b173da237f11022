//! `weighbridge net` between hosts in network namespaces, under faults.

mod failures;
mod foreign_connections;
mod identification;
pub(crate) mod lab;
mod limits;
mod loss;
mod many;
mod profiles;
pub(crate) mod program;
pub(crate) mod result;
mod server;
mod time;
mod truth;
mod unreachable;
mod variations;
