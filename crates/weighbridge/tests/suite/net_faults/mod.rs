//! `weighbridge net` between hosts in network namespaces, under faults.

mod ends;
mod lab;
mod limits;
mod loss;
mod many;
mod profiles;
mod program;
mod result;
mod server;
mod shapes;
mod strangers;
mod time;
mod unreachable;
