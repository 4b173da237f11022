//! Values of properties.

use std::fmt;

use wb_model::Bytes;
use wb_results::contention::{Passive, Percentile};

pub(crate) trait Value: Sized {
    /// For messages: `a whole number`.
    const EXPECTED: &'static str;

    fn parse(text: &str) -> Option<Self>;

    /// The value of a key without one; `None` if a value is required.
    fn alone() -> Option<Self> {
        None
    }
}

impl Value for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn alone() -> Option<Self> {
        Some(true)
    }
}

impl Value for u32 {
    const EXPECTED: &'static str = "a whole number up to 4294967295";

    fn parse(text: &str) -> Option<Self> {
        u64::parse(text)?.try_into().ok()
    }
}

impl Value for u64 {
    const EXPECTED: &'static str = "a whole number";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(|wb_model::Count(count)| count)
    }
}

/// A whole number from 1.
pub(crate) struct Count(pub(crate) u32);

impl Value for Count {
    const EXPECTED: &'static str = "a whole number from 1 to 4294967295";

    fn parse(text: &str) -> Option<Self> {
        u32::parse(text).filter(|count| *count > 0).map(Self)
    }
}

impl Value for f64 {
    const EXPECTED: &'static str = "a number from 0";

    fn parse(text: &str) -> Option<Self> {
        plain_number(text)
    }
}

/// A number from 0: digits, or a count such as `10k` or `1e7`. Without a negative exponent, because `-` separates the
/// ends of a range.
pub(crate) fn plain_number(text: &str) -> Option<f64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_plain {
        return text.parse().ok().filter(|number: &f64| number.is_finite());
    }
    u64::parse(text).filter(|_| !text.contains('-')).map(|count| count as f64)
}

/// A number from 0, or a percentage: `0.9` and `90%` are the same.
pub(crate) struct Fraction(pub(crate) f64);

impl Value for Fraction {
    const EXPECTED: &'static str = "a fraction such as 0.9 or 90%";

    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => plain_number(percent).map(|percent| Self(percent / 100.0)),
            None => plain_number(text).map(Self),
        }
    }
}

/// A fraction of at most 1.
pub(crate) struct UnitFraction(pub(crate) f64);

impl Value for UnitFraction {
    const EXPECTED: &'static str = "a fraction up to 1, such as 0.9 or 90%";

    fn parse(text: &str) -> Option<Self> {
        Fraction::parse(text).filter(|Fraction(fraction)| *fraction <= 1.0).map(|Fraction(fraction)| Self(fraction))
    }
}

/// A size above 0.
pub(crate) struct Size(pub(crate) Bytes);

impl Value for Size {
    const EXPECTED: &'static str = "a size above 0, such as 4096, 4k or 1.5g";

    fn parse(text: &str) -> Option<Self> {
        Bytes::parse(text).filter(|size| size.0 > 0).map(Self)
    }
}

impl Value for Bytes {
    const EXPECTED: &'static str = "a size such as 4096, 4k or 1.5g";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Percentile {
    const EXPECTED: &'static str = "a percentile such as 01, 99.9 or max";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Passive {
    const EXPECTED: &'static str = "ALL, all, cpu, mem, fs, io, oomd or none, joined by `/`";

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for String {
    const EXPECTED: &'static str = "a text";

    fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// A property to print: `KEY=VALUE`, or a key alone.
pub(crate) struct Property {
    key: String,
    value: Option<String>,
}

impl Property {
    pub(crate) fn new(key: impl Into<String>, value: impl fmt::Display) -> Self {
        Self { key: key.into(), value: Some(value.to_string()) }
    }

    pub(crate) fn key(key: impl Into<String>) -> Self {
        Self { key: key.into(), value: None }
    }

    /// A property, unless it has its default.
    pub(crate) fn unless<T: PartialEq + fmt::Display>(key: &str, value: T, default: T) -> Option<Self> {
        (value != default).then(|| Self::new(key, value))
    }

    pub(crate) fn given<T: fmt::Display>(key: &str, value: Option<T>) -> Option<Self> {
        value.map(|value| Self::new(key, value))
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}
