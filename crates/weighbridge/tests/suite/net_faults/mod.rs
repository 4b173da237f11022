//! `weighbridge net` between hosts with addresses of their own, and whatever can happen to them on the way.

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
