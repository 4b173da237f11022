//! Units, and the one way to print a figure.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a metric, by its usual short name: `MB/s`, `requests/s`, `ns`, `mflops`, `%`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Unit(String);

impl Unit {
    /// The unit of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A figure of this unit.
    pub fn figure(&self, value: f64) -> Figure<'_> {
        Figure { value, unit: &self.0 }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A value with its unit, printed with three significant digits and a prefix that fits the unit:
/// powers of 1024 for `B`, powers of 1000 for what is counted or timed, none for `%` and ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure<'a> {
    /// The value, in `unit`.
    pub value: f64,
    /// The unit's name.
    pub unit: &'a str,
}

const BINARY: [(&str, f64); 4] =
    [("Ti", 1_099_511_627_776.0), ("Gi", 1_073_741_824.0), ("Mi", 1_048_576.0), ("Ki", 1024.0)];
const DECIMAL: [(&str, f64); 4] = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];

impl fmt::Display for Figure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl Figure<'_> {
    fn text(&self) -> String {
        let magnitude = self.value.abs();
        let nanos = match self.unit {
            "ns" => Some(1.0),
            "us" | "µs" => Some(1e3),
            "ms" => Some(1e6),
            "s" => Some(1e9),
            _ => None,
        };
        if let Some(factor) = nanos {
            let value = self.value * factor;
            let (name, scale) = TIMES.iter().find(|(_, scale)| value.abs() >= *scale).unwrap_or(&TIMES[3]);
            return format!("{} {name}", digits(value / scale));
        }
        match self.unit {
            "" => digits(self.value),
            "%" => format!("{} %", digits(self.value)),
            "B" | "B/s" => self.prefixed(&BINARY, magnitude, self.unit),
            "KB/s" | "kB/s" => {
                Figure { value: self.value * 1e3, unit: "xB/s" }.prefixed(&DECIMAL, magnitude * 1e3, "B/s")
            }
            "MB/s" => Figure { value: self.value * 1e6, unit: "xB/s" }.prefixed(&DECIMAL, magnitude * 1e6, "B/s"),
            "mflops" => Figure { value: self.value * 1e6, unit: "flops" }.prefixed(&DECIMAL, magnitude * 1e6, "flops"),
            "gflops" => Figure { value: self.value * 1e9, unit: "flops" }.prefixed(&DECIMAL, magnitude * 1e9, "flops"),
            unit => self.prefixed(&DECIMAL, magnitude, unit),
        }
    }

    fn prefixed(&self, prefixes: &[(&str, f64)], magnitude: f64, unit: &str) -> String {
        match prefixes.iter().find(|(_, scale)| magnitude >= *scale) {
            Some((prefix, scale)) => format!("{} {prefix}{unit}", digits(self.value / scale)),
            None => format!("{} {unit}", digits(self.value)),
        }
    }
}

/// Three significant digits, without an exponent where a person would write none.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let places = 2 - value.abs().log10().floor() as i32;
    match places {
        ..=0 => format!("{value:.0}"),
        1..=6 => {
            let text = format!("{:.*}", places as usize, value);
            let whole = value.abs() >= 1.0 && value.fract() == 0.0;
            if whole { format!("{value:.0}") } else { text }
        }
        _ => format!("{value:.2e}"),
    }
}

/// So many of a thing, in words: `1 cell`, `3 cells`.
pub fn counted(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64, unit: &str) -> String {
        Unit::new(unit).figure(value).to_string()
    }

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        assert_eq!(shown(12_345.0, "MB/s"), "12.3 GB/s");
        assert_eq!(shown(1536.0, "B"), "1.50 KiB");
        assert_eq!(shown(2_345.0, "mflops"), "2.35 Gflops");
        assert_eq!(shown(81_234.0, "requests/s"), "81.2 krequests/s");
        assert_eq!(shown(1_500.0, "ns"), "1.50 µs");
        assert_eq!(shown(0.25, "ms"), "250 µs");
        assert_eq!(shown(1.234, "%"), "1.23 %");
        assert_eq!(shown(0.0, "requests/s"), "0 requests/s");
        assert_eq!(shown(0.001_234, ""), "0.00123");
        assert_eq!(shown(1.5e-9, ""), "1.50e-9");
    }
}
