//! Names of profiles, tests and workers: `[A-Za-z0-9_.-]+`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid name `{name}`: expected letters, digits, `_`, `.` and `-`")]
pub struct InvalidName {
    pub name: String,
}

fn validate(name: &str) -> Result<(), InvalidName> {
    let is_valid = !name.is_empty()
        && name != "."
        && name != ".."
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if is_valid { Ok(()) } else { Err(InvalidName { name: name.to_owned() }) }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $type(String);

        impl $type {
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
                let name = name.into();
                validate(&name)?;
                Ok(Self(name))
            }

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
    /// Name of a profile: `Localhost`, `TunedLibvirt`.
    ProfileName
}
name_type! {
    /// Name of a test: `fio`, `himeno`.
    TestName
}
name_type! {
    /// Name of a worker: `local`, `vm2`.
    WorkerName
}

impl ProfileName {
    /// The profile of the unmodified machine.
    pub fn localhost() -> Self {
        Self("Localhost".to_owned())
    }
}

impl WorkerName {
    /// The worker on this machine.
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
