//! `weighbridge net` between hosts with addresses of their own, and whatever can happen to them on the way.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

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
