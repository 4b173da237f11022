//! Integration tests: import of results of other programs, and evaluation of the runs.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod compare;
mod extend;
mod fio;
mod foreign;
mod formats;
mod hostile;
mod iperf3;
mod lab;
mod libp2p;
mod posted;
mod systems;
