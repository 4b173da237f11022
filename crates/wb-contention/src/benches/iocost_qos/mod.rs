//! `iocost-qos`: memory offloading and isolation under several QoS settings of io.cost.

pub(crate) mod properties;
pub(crate) mod stages;
pub(crate) mod study;
pub(crate) mod text;
