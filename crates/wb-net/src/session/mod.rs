//! Sessions: a run as the client sees it, and a server's part in one.
//!
//! Start with [`coordinate`].

pub mod coordinate;
