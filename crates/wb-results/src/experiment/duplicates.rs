//! Variants that ran identical programs: any difference between their results is noise.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two variants that ran identical programs and have the same parameters, except those that only affect the build: any
/// difference between their results is noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DuplicateVariants {
    /// The names of both variants.
    pub variants: [String; 2],
    /// The SHA-256 of each program that both ran, by the program's name.
    pub programs: BTreeMap<String, String>,
    /// Build parameters in which they differ, and compilers and other build tools that both use in different versions;
    /// none had an effect on the programs.
    pub differences: Vec<String>,
}

impl fmt::Display for DuplicateVariants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.variants;
        let prefix = |sha256: &str| sha256.chars().take(12).collect::<String>();
        let programs: Vec<String> =
            self.programs.iter().map(|(name, sha256)| format!("{name} (SHA-256 {}…)", prefix(sha256))).collect();
        write!(f, "`{one}` and `{other}` ran identical programs: {}", programs.join(", "))?;
        if !self.differences.is_empty() {
            write!(f, ", although they differ in {}", self.differences.join(", "))?;
        }
        f.write_str("; any difference between their results is noise")
    }
}
