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
    pub fn quantity(&self, value: f64) -> Quantity<'_> {
        Quantity { value, unit: &self.0 }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A value with its unit, printed with three significant digits and a prefix that fits the unit: powers of 1024 for
/// bytes (`12.3 KiB/s`), powers of 1000 for bytes of decimal units, bits, operations and time (`12.3 GB/s`, `1.50 µs`),
/// none for `%` and ratios. A prefix is joined to a symbol (`4.21 Gflops`) and stands before a word (`1.23 M
/// requests/s`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity<'a> {
    /// The value, in `unit`.
    pub value: f64,
    /// The unit's name.
    pub unit: &'a str,
}

const BINARY: [(&str, f64); 4] =
    [("Ti", 1_099_511_627_776.0), ("Gi", 1_073_741_824.0), ("Mi", 1_048_576.0), ("Ki", 1024.0)];
const DECIMAL: [(&str, f64); 4] = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
const TIMES: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];

/// How values of a unit are scaled.
enum UnitScale<'a> {
    /// No prefix fits: percentages and ratios.
    None,
    /// Nanoseconds in one of it.
    Time(f64),
    /// Bytes in one of it, and what stands behind them: `B`, `B/s`.
    Binary(f64, &'a str),
    /// How many of a symbol are in one of it: 1e6 and `flops` for `mflops`.
    Decimal(f64, &'a str),
    /// A word, or anything that is not listed: `requests/s`.
    Word(&'a str),
}

impl<'a> UnitScale<'a> {
    fn of(unit: &'a str) -> Self {
        match unit {
            "" | "1" | "%" | "×" => return Self::None,
            "ns" => return Self::Time(1.0),
            "us" | "µs" => return Self::Time(1e3),
            "ms" => return Self::Time(1e6),
            "s" => return Self::Time(1e9),
            "1/s" | "/s" => return Self::Decimal(1.0, "/s"),
            _ => {}
        }
        let binary = |name: &'a str| {
            let bytes = |rest: &'a str| matches!(rest, "B" | "B/s").then_some(rest);
            let prefixed = BINARY.iter().find_map(|(prefix, scale)| Some((*scale, bytes(name.strip_prefix(prefix)?)?)));
            prefixed.or_else(|| Some((1.0, bytes(name)?)))
        };
        if let Some((factor, base)) = binary(unit) {
            return Self::Binary(factor, base);
        }
        // Whoever writes `mflops` or `KB/s` means a million and a thousand.
        let factors =
            [("k", 1e3), ("K", 1e3), ("M", 1e6), ("m", 1e6), ("G", 1e9), ("g", 1e9), ("T", 1e12), ("t", 1e12)];
        let prefixed = factors.iter().find_map(|(prefix, factor)| Some((*factor, symbol(unit.strip_prefix(prefix)?)?)));
        match prefixed.or_else(|| Some((1.0, symbol(unit)?))) {
            Some((factor, base)) => Self::Decimal(factor, base),
            None => Self::Word(unit),
        }
    }
}

/// The symbol that a name without its prefix stands for; none where it is a word.
fn symbol(name: &str) -> Option<&'static str> {
    Some(match name {
        "B" => "B",
        "B/s" => "B/s",
        "bit" => "bit",
        "bit/s" | "bits/s" | "bits/sec" | "b/s" | "bps" => "bit/s",
        "flops" | "flop/s" | "FLOPS" | "FLOP/s" => "flops",
        "IPS" => "IPS",
        "Hz" => "Hz",
        "W" => "W",
        "J" => "J",
        _ => return None,
    })
}

impl fmt::Display for Quantity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.render())
    }
}

impl Quantity<'_> {
    fn render(&self) -> String {
        match UnitScale::of(self.unit) {
            UnitScale::None => match self.unit {
                "" | "1" => format_digits(self.value),
                unit => format!("{} {unit}", format_digits(self.value)),
            },
            UnitScale::Time(nanos) => {
                let value = self.value * nanos;
                let (name, scale) = largest_prefix(&TIMES, value).unwrap_or(TIMES[3]);
                format!("{} {name}", format_digits(value / scale))
            }
            UnitScale::Binary(factor, base) => format_with_prefix(&BINARY, self.value * factor, "", base),
            UnitScale::Decimal(factor, base) => format_with_prefix(&DECIMAL, self.value * factor, "", base),
            UnitScale::Word(word) => format_with_prefix(&DECIMAL, self.value, " ", word),
        }
    }
}

/// The largest prefix of which a value has one, as far as three digits show it.
fn largest_prefix<'a>(prefixes: &[(&'a str, f64)], value: f64) -> Option<(&'a str, f64)> {
    prefixes.iter().find(|(_, scale)| value.abs() >= scale * 0.9995).copied()
}

fn format_with_prefix(prefixes: &[(&str, f64)], value: f64, between: &str, unit: &str) -> String {
    match largest_prefix(prefixes, value) {
        Some((prefix, scale)) => format!("{} {prefix}{between}{unit}", format_digits(value / scale)),
        None => format!("{} {unit}", format_digits(value)),
    }
}

/// Three significant digits, without an exponent where a person would write none.
fn format_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    // Rounded first: 9.996 has as many places as 10.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let places = 2 - rounded.abs().log10().floor() as i32;
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
pub fn pluralize(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64, unit: &str) -> String {
        Unit::new(unit).quantity(value).to_string()
    }

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        assert_eq!(shown(12_345.0, "MB/s"), "12.3 GB/s");
        assert_eq!(shown(1536.0, "B"), "1.50 KiB");
        assert_eq!(shown(2_345.0, "mflops"), "2.35 Gflops");
        assert_eq!(shown(1_500.0, "ns"), "1.50 µs");
        assert_eq!(shown(0.25, "ms"), "250 µs");
        assert_eq!(shown(1.234, "%"), "1.23 %");
        assert_eq!(shown(12_345.0, "×"), "12345 ×");
        assert_eq!(shown(0.0, "requests/s"), "0 requests/s");
        assert_eq!(shown(0.001_234, ""), "0.00123");
        assert_eq!(shown(1.5e-9, ""), "1.50e-9");
    }

    #[test]
    fn a_prefix_that_the_unit_has_already_is_not_put_before_it_again() {
        assert_eq!(shown(12_345.0, "KiB/s"), "12.1 MiB/s");
        assert_eq!(shown(12.0, "KiB/s"), "12 KiB/s");
        assert_eq!(shown(0.5, "MiB"), "512 KiB");
        assert_eq!(shown(12_345.0, "Mbit/s"), "12.3 Gbit/s");
        assert_eq!(shown(81_234.0, "MIPS"), "81.2 GIPS");
        assert_eq!(shown(0.25, "kB/s"), "250 B/s");
    }

    #[test]
    fn a_prefix_stands_before_a_word_and_is_joined_to_a_symbol() {
        assert_eq!(shown(1_234_567.0, "requests/s"), "1.23 M requests/s");
        assert_eq!(shown(81_234.0, "ops/s"), "81.2 k ops/s");
        assert_eq!(shown(3_500.0, "Hz"), "3.50 kHz");
        assert_eq!(shown(5_400.0, "1/s"), "5.40 k/s");
    }

    #[test]
    fn what_rounds_up_takes_the_next_prefix_and_keeps_three_digits() {
        assert_eq!(shown(999_960.0, "requests/s"), "1.00 M requests/s");
        assert_eq!(shown(999_960.0, "ns"), "1.00 ms");
        assert_eq!(shown(1_048_500.0, "B"), "1.00 MiB");
        assert_eq!(shown(9.996, "%"), "10.0 %");
        assert_eq!(shown(99.97, "ops/s"), "100 ops/s");
    }
}
