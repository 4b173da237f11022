//! The hello: the versions that both sides announce once they trust each other.

use serde::{Deserialize, Serialize};

/// The version of the messages after the hello; it must be the same on both sides
pub const PROTOCOL: u32 = 5;

/// The versions of one side; fields never change their meaning, new ones may be added
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlHello {
    pub protocol: u32,
    pub program: String,
}

impl ControlHello {
    pub fn local() -> Self {
        Self { protocol: PROTOCOL, program: env!("CARGO_PKG_VERSION").into() }
    }
}
