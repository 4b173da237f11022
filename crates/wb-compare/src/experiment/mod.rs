//! Compares variants that were sampled in interleaved order.
//!
//! Start with [`compare_variants`].

mod duplicates;
mod samples;
mod variant_failures;
mod variants;

pub use duplicates::VariantInputs;
pub use samples::{CaseSamples, InvalidMetric, VariantSamples, attempt_rounds, blocks_by_round, left_behind};
pub use variants::compare_variants;
