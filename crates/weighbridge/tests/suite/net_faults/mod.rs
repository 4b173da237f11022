//! `weighbridge net` between hosts in network namespaces, under faults.

mod failures;
mod foreign_connections;
mod identification;
mod lab;
mod limits;
mod loss;
mod many;
mod profiles;
mod program;
mod result;
mod server;
mod time;
mod truth;
mod unreachable;
mod variations;
