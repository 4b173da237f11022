//! Tests of the statistics by references, properties and simulations.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod averages;
mod comparing;
mod coverage;
mod noise;
#[path = "../../examples/common/page.rs"]
mod page;
#[path = "../../examples/common/populations.rs"]
mod populations;
mod properties;
mod reference;
mod two_sides;
mod verdict;
