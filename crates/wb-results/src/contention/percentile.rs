//! Percentiles, as they are named in specifications and tables.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A percentile from 0 to 100 with up to three decimals: `01`, `99.9`, `100`. In thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Percentile(u32);

const SCALE: u32 = 1000;

/// The percentiles of a latency within a second: the rows of the nested table.
pub const LATENCY_PERCENTILES: [Percentile; 14] =
    percentiles([0, 1000, 5000, 10000, 25000, 50000, 75000, 90000, 95000, 99000, 99900, 99990, 99999, 100_000]);
/// The percentiles of such values over the seconds.
pub const TIME_PERCENTILES: [Percentile; 12] =
    percentiles([0, 1000, 5000, 10000, 25000, 50000, 75000, 90000, 95000, 99000, 99900, 100_000]);
/// The percentiles of isolation and of other figures over the seconds.
pub const PERCENTILES: [Percentile; 11] =
    percentiles([0, 1000, 5000, 10000, 25000, 50000, 75000, 90000, 95000, 99000, 100_000]);

const fn percentiles<const N: usize>(thousandths: [u32; N]) -> [Percentile; N] {
    let mut all = [Percentile(0); N];
    let mut index = 0;
    while index < N {
        all[index] = Percentile(thousandths[index]);
        index += 1;
    }
    all
}

impl Percentile {
    pub const MIN: Self = Self(0);
    pub const MAX: Self = Self(100 * SCALE);
    pub const P50: Self = Self(50 * SCALE);
    pub const P90: Self = Self(90 * SCALE);
    pub const P99: Self = Self(99 * SCALE);
    pub const P05: Self = Self(5 * SCALE);

    /// As a fraction of 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(100 * SCALE)
    }

    pub fn percent(self) -> f64 {
        f64::from(self.0) / f64::from(SCALE)
    }

    /// In tables: `p99.9`, `min`, `max`.
    pub fn label(self) -> String {
        match self {
            Self::MIN => "min".to_owned(),
            Self::MAX => "max".to_owned(),
            other => format!("p{other}"),
        }
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / SCALE, self.0 % SCALE);
        match rest {
            0 => f.pad(&format!("{whole:02}")),
            _ => f.pad(format!("{whole:02}.{rest:03}").trim_end_matches('0')),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid percentile `{0}`: expected a number from 0 to 100 with up to three decimals")]
pub struct ParsePercentileError(String);

impl FromStr for Percentile {
    type Err = ParsePercentileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParsePercentileError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Percentile> {
    match text {
        "min" => return Some(Percentile::MIN),
        "max" => return Some(Percentile::MAX),
        _ => {}
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || whole.len() > 3 || decimals.len() > 3 {
        return None;
    }
    let thousandths = whole.parse::<u32>().ok()? * SCALE + format!("{decimals:0<3}").parse::<u32>().ok()?;
    (thousandths <= Percentile::MAX.0).then_some(Percentile(thousandths))
}

impl TryFrom<String> for Percentile {
    type Error = ParsePercentileError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Percentile> for String {
    fn from(percentile: Percentile) -> Self {
        percentile.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_written_with_two_digits_and_the_decimals_that_they_have() {
        let canonical = |text: &str| text.parse::<Percentile>().map(|percentile| percentile.to_string());
        for (given, expected) in [("1", "01"), ("99.90", "99.9"), ("max", "100"), ("0", "00"), ("99.999", "99.999")] {
            assert_eq!(canonical(given).unwrap(), expected);
        }
        for invalid in ["", "101", "100.001", "-1", "1e1", "99.9999", ".5", "5."] {
            assert!(canonical(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn the_smallest_and_the_largest_have_names() {
        let labels = PERCENTILES.map(Percentile::label);
        assert_eq!((labels[0].as_str(), labels[1].as_str(), labels[10].as_str()), ("min", "p01", "max"));
    }
}
