//! Sizes, counts and times: parsing of common notations, and one canonical notation of each.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    #[error("invalid size `{0}`: expected a number with an optional suffix k, m, g or t (powers of 1024)")]
    Bytes(String),
    #[error("invalid number `{0}`: expected a whole number, or one with k, m, g or t (powers of 1000)")]
    Count(String),
    #[error("invalid number `{0}`: expected at most {max}", max = u64::MAX)]
    LargeCount(String),
    #[error("invalid time `{0}`: expected a number with ns, us, ms, s, min, h, d or w, or plain seconds")]
    Nanos(String),
}

/// A size in bytes. Suffixes are powers of 1024, as in fio and similar tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A number of things. Suffixes are powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(pub u64);

/// A time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

const SIZES: [(&str, u64); 4] = [("t", 1 << 40), ("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)];
const COUNTS: [(&str, u64); 4] = [("t", 1_000_000_000_000), ("g", 1_000_000_000), ("m", 1_000_000), ("k", 1_000)];
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

/// Splits `1.5GiB` and `1e3k` into the number and its suffix.
fn split_suffix(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']).filter(|_| end > 0) {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits(unsigned) > 0 {
            end = text.len() - unsigned.len() + digits(unsigned);
        }
    }
    (&text[..end], text[end..].trim())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScaleError {
    /// It is not a number, or the product is not whole.
    NotWhole,
    /// It has more than 64 bits.
    TooLarge,
}

/// Multiplies a decimal number such as `12`, `1.5` or `1e7` exactly.
fn scale(number: &str, factor: u64) -> Result<u64, ScaleError> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(ScaleError::NotWhole);
    }
    let significant = digits.trim_end_matches('0');
    let trailing = (digits.len() - significant.len()) as i64 - fraction.len() as i64;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    let is_negative = exponent.starts_with('-');
    let far = if is_negative { i64::MIN } else { i64::MAX };
    let power = exponent.parse::<i64>().unwrap_or(far).saturating_add(trailing);
    // A fraction of so many digits is never whole: no factor has as many prime factors 2 and 5.
    let error = if power < 0 { ScaleError::NotWhole } else { ScaleError::TooLarge };
    let product = significant.parse::<u128>().ok().and_then(|value| value.checked_mul(factor.into())).ok_or(error)?;
    let ten = u32::try_from(power.unsigned_abs()).ok().and_then(|power| 10_u128.checked_pow(power)).ok_or(error)?;
    let product = match power {
        0.. => product.checked_mul(ten).ok_or(ScaleError::TooLarge)?,
        _ if product.is_multiple_of(ten) => product / ten,
        _ => return Err(ScaleError::NotWhole),
    };
    u64::try_from(product).map_err(|_| ScaleError::TooLarge)
}

fn to_whole(value: f64) -> Option<u64> {
    (value.is_finite() && value >= 0.0 && value < u64::MAX as f64 && value.fract() == 0.0).then_some(value as u64)
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let bad = || ParseQuantityError::Bytes(text.to_owned());
        let (number, suffix) = split_suffix(text);
        let suffix = suffix.to_ascii_lowercase();
        let letter = suffix.strip_suffix("ib").or_else(|| suffix.strip_suffix('b')).unwrap_or(&suffix);
        let factor = match letter {
            "" => 1,
            letter => SIZES.iter().find(|(name, _)| *name == letter).ok_or_else(bad)?.1,
        };
        scale(number, factor).map(Self).map_err(|_| bad())
    }
}

impl FromStr for Count {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let bad = || ParseQuantityError::Count(text.to_owned());
        let (number, suffix) = split_suffix(text);
        let suffix = suffix.to_ascii_lowercase();
        let factor = match suffix.as_str() {
            "" => 1,
            suffix => COUNTS.iter().find(|(name, _)| *name == suffix).ok_or_else(bad)?.1,
        };
        scale(number, factor).map(Self).map_err(|error| match error {
            ScaleError::NotWhole => bad(),
            ScaleError::TooLarge => ParseQuantityError::LargeCount(text.to_owned()),
        })
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

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
    fn counts_are_read_in_common_notations() {
        for text in ["10000000", "10M", "10m", "10 M", "1e7", "1E7", "1e+7", "0.01g", "1e4k", "100000000e-1", "1.0e7"] {
            assert_eq!(text.parse(), Ok(Count(10_000_000)), "{text}");
        }
        assert_eq!("2.3m".parse(), Ok(Count(2_300_000)));
        assert_eq!("18446744073709551615".parse(), Ok(Count(u64::MAX)));
        for text in ["", "k", "1.5", "1e-1", "-1", "+1", "1e", "e7", "1kb", "1ki", "1_000", "10q", ".", "nan", "inf"] {
            assert_eq!(text.parse::<Count>(), Err(ParseQuantityError::Count(text.to_owned())), "{text}");
        }
        for text in ["18446744073709551616", "1e20", "1e99999999999999999999", "18446744073710t"] {
            assert_eq!(text.parse::<Count>(), Err(ParseQuantityError::LargeCount(text.to_owned())), "{text}");
        }
        assert_eq!("0e99999999999999999999".parse(), Ok(Count(0)));
    }

    #[test]
    fn sizes_and_times_may_have_exponents() {
        assert_eq!("1e6".parse(), Ok(Bytes(1_000_000)));
        assert_eq!("1e1k".parse(), Ok(Bytes(10_240)));
        assert_eq!("1e-3".parse(), Ok(Nanos(1_000_000)));
        assert_eq!("1e3ms".parse(), Ok(Nanos(1_000_000_000)));
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

    // Calculated with f64, both would be rounded.
    #[test]
    fn whole_numbers_above_the_precision_of_floating_point_are_exact() {
        assert_eq!("9079327246707601k".parse(), Ok(Bytes(9_297_231_100_628_583_424)));
        assert_eq!("9007199254740993us".parse(), Ok(Nanos(9_007_199_254_740_993_000)));
    }

    proptest! {
        #[test]
        fn sizes_survive_a_round_trip(value: u64) {
            prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>().unwrap(), Bytes(value));
            prop_assert_eq!(Count(value).to_string().parse::<Count>().unwrap(), Count(value));
            prop_assert_eq!(Nanos(value).to_string().parse::<Nanos>().unwrap(), Nanos(value));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Count>();
            let _ = text.parse::<Nanos>();
        }
    }
}
