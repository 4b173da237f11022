//! `iocost-tune`: QoS settings of io.cost that follow from the results of `iocost-qos`.

pub(crate) mod properties;
pub mod solve;
pub(crate) mod text;
