//! Identifiers of cells: `PROFILE/TEST/SERIAL:CASE`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Case, MetricKey, ProfileName, TestName};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {noun} `{text}`: expected {expected}")]
pub struct ParseIdError {
    pub(crate) text: String,
    pub(crate) noun: &'static str,
    pub(crate) expected: &'static str,
}

/// Distinguishes the tests of one name in a plan, by position or by the id given with `id=`.
///
/// A test with an id does not occupy a position, so that adding or removing it renumbers nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Serial {
    /// Position among the tests of the same name without an id, from 0; four digits.
    Position(u16),
    /// The id given in the plan.
    Id(TestName),
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(position) => write!(f, "{position:04}"),
            Self::Id(id) => write!(f, "{id}"),
        }
    }
}

impl FromStr for Serial {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let bad =
            || ParseIdError { text: text.to_owned(), noun: "serial", expected: "four digits, or a name with a letter" };
        if text.chars().all(|c| c.is_ascii_digit()) {
            return if text.len() == 4 { text.parse().map(Self::Position).map_err(|_| bad()) } else { Err(bad()) };
        }
        TestName::new(text).map(Self::Id).map_err(|_| bad())
    }
}

/// Identifier of a cell, the unit that is scheduled, sampled, resumed and compared: profile × test × serial × case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CellId {
    /// The profile of the host.
    pub profile: ProfileName,
    /// The test.
    pub test: TestName,
    /// Which of the tests of this name.
    pub serial: Serial,
    /// The combination of its axes.
    pub case: Case,
}

impl CellId {
    /// Checks that it can be read again once it is written, as an id of digits alone (`123`) cannot.
    pub fn require_readable(&self) -> Result<(), ParseIdError> {
        let text = self.to_string();
        match text.parse::<Self>() {
            Ok(read) if read == *self => Ok(()),
            _ => Err(ParseIdError { text, noun: "cell", expected: "PROFILE/TEST/SERIAL:CASE, with a letter in an id" }),
        }
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}/{}:{}", self.profile, self.test, self.serial, self.case))
    }
}

impl FromStr for CellId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let parse = || {
            let mut parts = text.splitn(3, '/');
            let (profile, test, rest) = (parts.next()?, parts.next()?, parts.next()?);
            let (serial, case) = rest.split_once(':')?;
            Some(Self {
                profile: profile.parse().ok()?,
                test: test.parse().ok()?,
                serial: serial.parse().ok()?,
                case: case.parse().ok()?,
            })
        };
        parse().ok_or_else(|| ParseIdError {
            text: text.to_owned(),
            noun: "cell",
            expected: "PROFILE/TEST/SERIAL:CASE",
        })
    }
}

macro_rules! text_form {
    ($($type:ident),*) => {$(
        impl TryFrom<String> for $type {
            type Error = ParseIdError;
            fn try_from(text: String) -> Result<Self, ParseIdError> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(id: $type) -> String {
                id.to_string()
            }
        }
    )*};
}

text_form!(Serial, CellId, MetricKey);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cell_id_survives_a_round_trip() {
        let text = "TunedLibvirt/fio/0000:block-size=4k,rw=read";
        let id: CellId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(id.case.get("rw"), Some("read"));
    }

    #[test]
    fn a_serial_is_four_digits_or_an_id() {
        assert_eq!("0012".parse::<Serial>().unwrap(), Serial::Position(12));
        assert!("12".parse::<Serial>().is_err());
        assert_eq!("nightly".parse::<Serial>().unwrap().to_string(), "nightly");
    }

    // An import with `--id` of digits alone wrote a cell that the parser of run.json refuses.
    #[test]
    fn an_id_of_digits_is_not_readable() {
        let cell = |serial: Serial| CellId { serial, .."P/fio/0000:rw=read".parse::<CellId>().unwrap() };
        let id = |text: &str| cell(Serial::Id(TestName::new(text).unwrap()));
        assert_eq!((id("a1").require_readable(), cell(Serial::Position(7)).require_readable()), (Ok(()), Ok(())));
        assert!(id("123").require_readable().is_err() && id("0001").require_readable().is_err());
    }

    proptest! {
        #[test]
        fn a_readable_cell_is_parsed_as_it_was(serial in "[0-9a-z]{1,4}", name in ".{0,3}", value in ".{0,6}") {
            let case = Case::new([(name.as_str(), &crate::ParamValue::Text(value))]);
            let serial = Serial::Id(TestName::new(serial).unwrap());
            let cell = CellId { serial, case, .."P/fio/0000:-".parse::<CellId>().unwrap() };
            let read = cell.to_string().parse::<CellId>().ok().filter(|read| *read == cell);
            prop_assert_eq!(cell.require_readable().is_ok(), read.is_some());
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<CellId>();
        }
    }
}
