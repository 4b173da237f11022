//! Unifies the features of the workspace's dependencies, so that no selection of crates compiles them anew.
//!
//! Holds no code: `Cargo.toml` is written by `cargo hakari generate`, with the settings in `.config/hakari.toml`.

#![forbid(unsafe_code)]
