//! Environment of a test's processes besides their placement: variables, programs, a command to run before.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Environment variables and a command to run before each attempt; accepted as parameters by every test, and part of a
/// cell's definition only if given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct AttemptSetup {
    /// Environment variables, each `NAME=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// A command line for `sh`, run before each attempt; it must succeed.
    #[serde(rename = "before", skip_serializing_if = "Option::is_none")]
    pub before_command: Option<String>,
}

impl AttemptSetup {
    /// The names of the parameters that make up a setup.
    pub const PARAMS: [&str; 2] = ["env", "before"];

    /// Fails with the first text that is not `NAME=VALUE`.
    pub fn variables(&self) -> Result<Vec<(String, String)>, String> {
        let pair = |text: &String| match text.split_once('=') {
            Some((name, value)) if is_variable(name) && !value.contains('\0') => {
                Ok((name.to_owned(), value.to_owned()))
            }
            _ => Err(format!("invalid environment variable `{text}`: expected NAME=VALUE")),
        };
        self.env.iter().map(pair).collect()
    }
}

/// Whether a name is a valid variable name of a shell.
fn is_variable(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// Environment of all processes of a group: variables, and replacements of programs on `PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct ProcessEnvironment {
    /// Environment variables and their values; those of a command take precedence.
    pub env: Vec<(String, String)>,
    /// Replacement file by program name (`redis-server`). `weighbridge` is the program that runs native workloads.
    pub programs: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Param;

    #[test]
    fn every_field_is_a_parameter() {
        let fields: BTreeSet<String> =
            Param::from_schema::<AttemptSetup>().into_iter().map(|param| param.name).collect();
        assert_eq!(fields, AttemptSetup::PARAMS.map(str::to_owned).into());
    }

    #[test]
    fn variables_have_a_name_and_a_value_which_may_be_empty() {
        let parse = |env: &str| AttemptSetup { env: vec![env.to_owned()], before_command: None }.variables();
        assert_eq!(parse("A_1=b=c").unwrap(), [("A_1".to_owned(), "b=c".to_owned())]);
        assert_eq!(parse("A=").unwrap(), [("A".to_owned(), String::new())]);
        for bad in ["A", "=b", "1A=b", "A B=c", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
