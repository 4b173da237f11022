//! Statistics against references, properties and simulations.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod comparing;
mod coverage;
mod noise;
mod properties;
mod reference;
mod two_sides;
