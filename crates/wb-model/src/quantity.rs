//! Sizes and times: parsing of common notations, and one canonical notation of each.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Error of parsing a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Invalid size.
    #[error("invalid size `{0}`: expected a number with an optional suffix k, m, g or t (powers of 1024)")]
    Bytes(String),
    /// Invalid time.
    #[error("invalid time `{0}`: expected a number with ns, us, ms, s, min, h, d or w, or plain seconds")]
    Nanos(String),
}

/// A size in bytes. Suffixes are powers of 1024, as in fio and similar tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

const SIZES: [(&str, u64); 4] = [("t", 1 << 40), ("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)];
const TIMES: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Units that are read, and never written.
const DAYS: [(&str, u64); 2] = [("d", 86_400_000_000_000), ("w", 604_800_000_000_000)];

/// Splits `1.5GiB` into its number and its suffix.
fn split_suffix(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Multiplies a whole number exactly, another one as a floating-point number. `None` if the product is not a whole number
/// of 64 bits.
fn scale(number: &str, factor: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    to_whole(number.parse::<f64>().ok()? * factor as f64)
}

fn to_whole(value: f64) -> Option<u64> {
    (value.is_finite() && value >= 0.0 && value < u64::MAX as f64 && value.fract() == 0.0).then_some(value as u64)
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let bad = || ParseQuantityError::Bytes(text.to_owned());
        if let Ok(number) = text.trim().parse() {
            return Ok(Self(number));
        }
        let (number, suffix) = split_suffix(text);
        let suffix = suffix.to_ascii_lowercase();
        let letter = suffix.strip_suffix("ib").or_else(|| suffix.strip_suffix('b')).unwrap_or(&suffix);
        let factor = match letter {
            "" => 1,
            letter => SIZES.iter().find(|(name, _)| *name == letter).ok_or_else(bad)?.1,
        };
        scale(number, factor).map(Self).ok_or_else(bad)
    }
}

impl FromStr for Nanos {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let bad = || ParseQuantityError::Nanos(text.to_owned());
        let (number, suffix) = split_suffix(text);
        let factor = match suffix {
            "" => 1_000_000_000,
            suffix => TIMES.iter().chain(&DAYS).find(|(name, _)| *name == suffix).ok_or_else(bad)?.1,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(Self).ok_or_else(bad);
        }
        let number: f64 = number.parse().map_err(|_| bad())?;
        to_whole((number * factor as f64).round()).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZES.iter().find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor)) {
            Some((suffix, factor)) => write!(f, "{}{suffix}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TIMES.iter().find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor)) {
            Some((suffix, factor)) => write!(f, "{}{suffix}", self.0 / factor),
            None => write!(f, "{}s", self.0),
        }
    }
}

impl Nanos {
    /// Converts to seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Converts from seconds; negative and NaN values become zero.
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds.max(0.0) * 1e9).round() as u64)
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Duration::from_nanos(nanos.0)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A number or a string with a suffix, as accepted in a plan.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Whole(u64),
    Number(f64),
    Text(String),
}

macro_rules! as_written {
    ($type:ident, $format:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = match NumberOrText::deserialize(deserializer)? {
                    NumberOrText::Whole(number) => number.to_string(),
                    NumberOrText::Number(number) => number.to_string(),
                    NumberOrText::Text(text) => text,
                };
                text.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": ["string", "number"], "format": $format })
            }
        }
    };
}

as_written!(Bytes, "bytes");
as_written!(Nanos, "duration");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_sizes_have_the_same_canonical_notation() {
        for text in ["4096", "4k", "4K", "4KiB", "4 kb", "4kib"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), "4k", "{text}");
        }
        assert_eq!("1.5g".parse::<Bytes>().unwrap().to_string(), "1536m");
        assert_eq!("1000".parse::<Bytes>().unwrap().to_string(), "1000");
    }

    #[test]
    fn equal_times_have_the_same_canonical_notation() {
        for text in ["0.5", "500ms", "0.5s", "500000us"] {
            assert_eq!(text.parse::<Nanos>().unwrap().to_string(), "500ms", "{text}");
        }
        assert_eq!("90".parse::<Nanos>().unwrap().to_string(), "90s");
        assert_eq!("2min".parse::<Nanos>().unwrap().to_string(), "2min");
    }

    #[test]
    fn invalid_quantities_are_refused() {
        for text in ["", "k", "4q", "-1", "1e400", "nan", "1.0001k"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["", "s", "5m", "-1s", "nan"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn whole_numbers_above_the_precision_of_floating_point_are_exact() {
        assert_eq!("9079327246707601k".parse(), Ok(Bytes(9_297_231_100_628_583_424)));
        assert_eq!("9007199254740993us".parse(), Ok(Nanos(9_007_199_254_740_993_000)));
    }

    proptest! {
        #[test]
        fn sizes_survive_a_round_trip(value: u64) {
            prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>().unwrap(), Bytes(value));
            prop_assert_eq!(Nanos(value).to_string().parse::<Nanos>().unwrap(), Nanos(value));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Nanos>();
        }
    }
}
