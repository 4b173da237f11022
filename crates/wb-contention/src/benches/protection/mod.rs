//! `protection`: how well hashd is protected from a memory hog.

pub(crate) mod properties;
pub(crate) mod study;
pub(crate) mod text;
