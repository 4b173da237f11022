//! Specifications of benches, as they are recorded.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bench with its properties: what a user requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
// The schema has the name of what the text is; parsing it is no matter of results.
#[schemars(rename = "BenchSpec")]
pub struct SpecText(String);

impl SpecText {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for SpecText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for SpecText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
