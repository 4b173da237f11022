//! `storage`: how much memory a storage device can stand in for.

pub(crate) mod properties;
pub(crate) mod study;
pub(crate) mod text;
