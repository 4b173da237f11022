//! Description of a system's hardware and software as a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Description of a machine: its known properties by name, in display order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Its host name; empty if unknown.
    pub host: String,
    /// Name and value of each property: `("processor", "AMD EPYC 7763")`.
    pub properties: Vec<(String, String)>,
}

impl System {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(property, _)| property == name).map(|(_, text)| text.as_str())
    }
}
