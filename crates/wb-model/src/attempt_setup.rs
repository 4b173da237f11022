//! What the processes of a test find around them, beside where and how they run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a cell's samples find around them. Parameters of every test, which none has unless they are given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct AttemptSetup {
    /// Environment variables, each `NAME=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// A command line for `sh`, run before each attempt; it has to succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_command: Option<String>,
}

impl AttemptSetup {
    /// The environment variables.
    ///
    /// # Errors
    /// With the first that is not `NAME=VALUE`.
    pub fn variables(&self) -> Result<Vec<(String, String)>, String> {
        let pair = |text: &String| match text.split_once('=') {
            Some((name, value)) if is_variable(name) && !value.contains('\0') => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err(format!("`{text}` is no environment variable: `NAME=VALUE` is expected")),
        };
        self.env.iter().map(pair).collect()
    }
}

/// Whether a shell takes it for a variable's name.
fn is_variable(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// What all processes of a group find: variables, and programs in the place of those that the path has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct ProcessEnvironment {
    /// Environment variables and their values; what a process is given itself counts more.
    pub env: Vec<(String, String)>,
    /// By name (`redis-server`), the file that is that program here. `weighbridge` is what runs native workloads.
    pub programs: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_a_name_and_a_value_which_may_be_empty() {
        let of = |env: &str| AttemptSetup { env: vec![env.to_owned()], before_command: None }.variables();
        assert_eq!(of("A_1=b=c").unwrap(), [("A_1".to_owned(), "b=c".to_owned())]);
        assert_eq!(of("A=").unwrap(), [("A".to_owned(), String::new())]);
        for bad in ["A", "=b", "1A=b", "A B=c", ""] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
