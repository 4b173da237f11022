//! Identifiers: `PROFILE/TEST/SERIAL:CASE/CLASS/METRIC[@WORKER][#STATISTIC]`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Case, Class, ProfileName, TestName, WorkerName};

/// Text that is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {noun}: `{expected}` is expected")]
pub struct ParseIdError {
    text: String,
    noun: &'static str,
    expected: &'static str,
}

/// Which of the tests of one name in a plan: its position, or the name that `id=` pins to it.
///
/// A test with an id takes no position, so that adding or removing it renumbers nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Serial {
    /// The position among the tests of its name that have no id, from 0; four digits.
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
            || ParseIdError { text: text.to_owned(), noun: "a serial", expected: "0000, or a name with a letter" };
        if text.chars().all(|c| c.is_ascii_digit()) {
            return if text.len() == 4 { text.parse().map(Self::Position).map_err(|_| bad()) } else { Err(bad()) };
        }
        TestName::new(text).map(Self::Id).map_err(|_| bad())
    }
}

/// The unit that is scheduled, sampled, resumed and compared: profile × test × serial × case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CellId {
    /// The state the host is in.
    pub profile: ProfileName,
    /// What is measured.
    pub test: TestName,
    /// Which of the tests of that name.
    pub serial: Serial,
    /// Which combination of its axes.
    pub case: Case,
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
            noun: "a cell",
            expected: "PROFILE/TEST/SERIAL:CASE",
        })
    }
}

/// A metric of a cell; without a worker the aggregate over all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct MetricId {
    /// The cell it was measured in.
    pub cell: CellId,
    /// What kind of figure it is.
    pub class: Class,
    /// Its name.
    pub metric: String,
    /// The worker it was measured on.
    pub worker: Option<WorkerName>,
    /// The statistic over samples that is meant.
    pub statistic: Option<String>,
}

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.cell, self.class, self.metric)?;
        if let Some(worker) = &self.worker {
            write!(f, "@{worker}")?;
        }
        if let Some(statistic) = &self.statistic {
            write!(f, "#{statistic}")?;
        }
        Ok(())
    }
}

impl FromStr for MetricId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let parse = || {
            let (rest, statistic) = match text.split_once('#') {
                Some((rest, statistic)) => (rest, Some(statistic.to_owned()).filter(|s| !s.is_empty())),
                None => (text, None),
            };
            let (rest, worker) = match rest.rsplit_once('@') {
                Some((rest, worker)) => (rest, Some(worker.parse().ok()?)),
                None => (rest, None),
            };
            let (rest, metric) = rest.rsplit_once('/')?;
            let (cell, class) = rest.rsplit_once('/')?;
            let named = !metric.is_empty();
            named.then_some(())?;
            Some(Self {
                cell: cell.parse().ok()?,
                class: class.parse().ok()?,
                metric: metric.to_owned(),
                worker,
                statistic,
            })
        };
        let form = "PROFILE/TEST/SERIAL:CASE/CLASS/METRIC[@WORKER][#STATISTIC]";
        parse().ok_or_else(|| ParseIdError { text: text.to_owned(), noun: "a metric", expected: form })
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

text_form!(Serial, CellId, MetricId);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_contracts_example_reads_and_writes_the_same() {
        let text = "TunedLibvirt/fio/0000:block-size=4k,rw=read/throughput/iops@vm2#median";
        let id: MetricId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(id.cell.case.get("rw"), Some("read"));
        assert_eq!(id.worker.unwrap().as_str(), "vm2");
        assert_eq!(id.statistic.unwrap(), "median");
    }

    #[test]
    fn a_serial_is_four_digits_or_an_id() {
        assert_eq!("0012".parse::<Serial>().unwrap(), Serial::Position(12));
        assert!("12".parse::<Serial>().is_err());
        assert_eq!("nightly".parse::<Serial>().unwrap().to_string(), "nightly");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<CellId>();
            let _ = text.parse::<MetricId>();
        }
    }
}
