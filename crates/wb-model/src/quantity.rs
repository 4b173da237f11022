//! Sizes and times as people write them, and one canonical spelling of each.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Text that is not the quantity it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not a size.
    #[error("`{0}` is not a size: write 4096, 4k, 4KiB, 1m or 2g (powers of 1024)")]
    Bytes(String),
    /// Not a time.
    #[error("`{0}` is not a time: write 500ms, 5s, 2min, 1h, or plain seconds")]
    Nanos(String),
}

/// A size in bytes. Suffixes are powers of 1024, as fio and most tools of the field read them.
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

/// Splits `1.5GiB` into its number and its suffix.
fn split_suffix(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

fn scale(number: f64, factor: u64) -> Option<u64> {
    let value = number * factor as f64;
    (value.is_finite() && value >= 0.0 && value < u64::MAX as f64 && value.fract() == 0.0).then_some(value as u64)
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let bad = || ParseQuantityError::Bytes(text.to_owned());
        if let Ok(plain) = text.trim().parse() {
            return Ok(Self(plain));
        }
        let (number, suffix) = split_suffix(text).ok_or_else(bad)?;
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
        let (number, suffix) = split_suffix(text).ok_or_else(bad)?;
        let factor = match suffix {
            "" => 1_000_000_000,
            suffix => TIMES.iter().find(|(name, _)| *name == suffix).ok_or_else(bad)?.1,
        };
        let nanos = (number * factor as f64).round();
        scale(nanos, 1).map(Self).ok_or_else(bad)
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
    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// From seconds; negative and non-finite ones become zero.
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

/// A number or a text with a suffix, as it may stand in a plan.
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
    fn one_size_has_one_spelling() {
        for text in ["4096", "4k", "4K", "4KiB", "4 kb", "4kib"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), "4k", "{text}");
        }
        assert_eq!("1.5g".parse::<Bytes>().unwrap().to_string(), "1536m");
        assert_eq!("1000".parse::<Bytes>().unwrap().to_string(), "1000");
    }

    #[test]
    fn one_time_has_one_spelling() {
        for text in ["0.5", "500ms", "0.5s", "500000us"] {
            assert_eq!(text.parse::<Nanos>().unwrap().to_string(), "500ms", "{text}");
        }
        assert_eq!("90".parse::<Nanos>().unwrap().to_string(), "90s");
        assert_eq!("2min".parse::<Nanos>().unwrap().to_string(), "2min");
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "k", "4q", "-1", "1e400", "nan", "1.0001k"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["", "s", "5m", "-1s", "nan"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn spelling_and_reading_agree(value: u64) {
            prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>().unwrap(), Bytes(value));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Nanos>();
        }
    }
}
