//! The benches: for each, its properties, its stages where their order follows from answers, what its measurements say
//! (`study`), and its text.

pub(crate) mod hashd_params;
pub(crate) mod iocost_params;
pub(crate) mod iocost_qos;
pub mod iocost_tune;
pub(crate) mod protection;
pub(crate) mod storage;
