//! What the machine used.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;

/// What the machine used over the seconds of a measurement, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    /// Over all of it.
    pub all: BTreeMap<String, Distribution>,
    /// With the final footprints.
    pub last: BTreeMap<String, Distribution>,
}
