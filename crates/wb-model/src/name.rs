//! Names of profiles, tests and workers: `[A-Za-z0-9_.-]+`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A name with a character that identifiers cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a name: letters, digits, `_`, `.` and `-` are allowed")]
pub struct InvalidName {
    /// What was given.
    pub name: String,
}

fn validate(name: &str) -> Result<(), InvalidName> {
    let fine = !name.is_empty()
        && name != "."
        && name != ".."
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if fine { Ok(()) } else { Err(InvalidName { name: name.to_owned() }) }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $type(String);

        impl $type {
            /// The name, if it is one.
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
                let name = name.into();
                validate(&name)?;
                Ok(Self(name))
            }

            /// As text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;
            fn from_str(name: &str) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidName;
            fn try_from(name: String) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }
    };
}

name_type! {
    /// A state a host is put into: `Localhost`, `TunedLibvirt`.
    ProfileName
}
name_type! {
    /// Something measurable: `fio`, `himeno`.
    TestName
}
name_type! {
    /// Where a workload runs: `local`, `vm2`.
    WorkerName
}

impl ProfileName {
    /// The bare machine, untouched.
    pub fn localhost() -> Self {
        Self("Localhost".to_owned())
    }
}

impl WorkerName {
    /// This machine.
    pub fn local() -> Self {
        Self("local".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder() {
        for bad in ["", ".", "..", "a/b", "a b", "a:b", "é"] {
            assert!(TestName::new(bad).is_err(), "{bad}");
        }
        assert!(TestName::new("fio-nbd_2.0").is_ok());
    }
}
