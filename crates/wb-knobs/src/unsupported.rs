//! The reason why a knob cannot be read or set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_sys::SysError;

/// Why a knob cannot be read or set here. This is not a failure: most machines lack some knobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unsupported(pub String);

impl From<SysError> for Unsupported {
    fn from(error: SysError) -> Self {
        Self(error.to_string())
    }
}
