//! A system's hardware and software as a table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The description of one machine: its properties by name, in the order to show, those that are not known left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Its host name; empty where it is not known.
    pub host: String,
    /// Name and text of each property: `("processor", "AMD EPYC 7763")`.
    pub properties: Vec<(String, String)>,
}

impl System {
    /// The text of a property.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }
}
