//! Units, and the formatting of figures.

mod symbol;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use symbol::{BINARY, MULTIPLES, Prefixes, SYMBOLS, Symbol};

/// Unit of a metric, by its usual short name: `MB/s`, `requests/s`, `ns`, `mflops`, `%`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Unit(String);

impl Unit {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Divisor and unit that make a value, and smaller ones beside it, readable: 1000 and `Gflops` for 4225 of
    /// `mflops`.
    pub fn readable(&self, largest: f64) -> (f64, String) {
        let scale = UnitScale::new(&self.0);
        let (prefix, divisor) = scale.prefix_for(largest * scale.factor);
        (divisor / scale.factor, scale.prefixed(prefix))
    }

    /// Whether its values are shown in powers of 1024.
    pub fn is_binary(&self) -> bool {
        UnitScale::new(&self.0).prefixes == BINARY
    }

    /// Creates the common unit of figures that are shown beside each other. Its prefix suits the largest of the figures
    /// that matter, or a smaller one if the smallest would be below a hundredth. If the figures are more than a million
    /// times apart, each has a unit of its own.
    pub fn common(&self, values: impl IntoIterator<Item = f64>) -> CommonUnit<'_> {
        let sizes = values.into_iter().map(f64::abs).filter(|size| *size > 0.0 && size.is_finite());
        let range = sizes.fold(None, |range: Option<(f64, f64)>, size| {
            Some(range.map_or((size, size), |(low, high)| (low.min(size), high.max(size))))
        });
        let range = range.filter(|(low, high)| high / low <= 1e6);
        CommonUnit { unit: self, scale: range.map(|(low, high)| self.readable(high.min(low * 100.0))) }
    }

    pub fn quantity(&self, value: f64) -> Quantity<'_> {
        Quantity { value, unit: &self.0 }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The unit of figures that stand beside each other.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonUnit<'a> {
    unit: &'a Unit,
    /// The divisor and the unit with its prefix; `None` if each figure has its own.
    scale: Option<(f64, String)>,
}

impl CommonUnit<'_> {
    /// Formats a value with three significant digits.
    pub fn format(&self, value: f64) -> String {
        match &self.scale {
            Some((divisor, suffix)) => format!("{} {suffix}", format_digits(value / divisor)).trim_end().to_owned(),
            None => self.unit.quantity(value).to_string(),
        }
    }
}

/// A value with its unit, printed with three significant digits and a prefix that suits the unit: powers of 1024 for
/// bytes (`12.3 KiB/s`), powers of 1000 for bytes of decimal units, bits, operations and physical units (`12.3 GB/s`,
/// `1.50 µs`, `500 mW`), none for `%` and ratios. A prefix is joined to a symbol (`4.21 Gflops`) and separated from a
/// word (`1.23 M requests/s`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity<'a> {
    pub value: f64,
    pub unit: &'a str,
}

/// Units without prefixes: ratios, logarithmic units and temperatures.
const PLAIN: [&str; 8] = ["", "1", "%", "×", "dB", "dBm", "°C", "ppm"];

/// How the values of a unit are scaled.
struct UnitScale<'a> {
    /// Value of one unit in the base unit: 1e6 for `mflops`.
    factor: f64,
    /// Base unit: `flops` for `mflops`.
    base: &'a str,
    separator: &'static str,
    /// Prefixes for the base unit, largest first; never empty.
    prefixes: Prefixes,
}

impl<'a> UnitScale<'a> {
    fn new(unit: &'a str) -> Self {
        if PLAIN.contains(&unit) {
            let base = if unit == "1" { "" } else { unit };
            return Self { factor: 1.0, base, separator: "", prefixes: &[("", 1.0)] };
        }
        if let Some(scale) = SYMBOLS.iter().find_map(|symbol| Self::of_symbol(symbol, unit)) {
            return scale;
        }
        let prefixed = MULTIPLES.iter().find_map(|(prefix, factor)| {
            Some((*factor, unit.strip_prefix(prefix)?.strip_prefix(' ')?)).filter(|_| !prefix.is_empty())
        });
        let (factor, base) = prefixed.unwrap_or((1.0, unit));
        Self { factor, base, separator: " ", prefixes: &MULTIPLES }
    }

    fn of_symbol(symbol: &'static Symbol, unit: &str) -> Option<Self> {
        symbol.names.iter().find_map(|name| {
            let prefix = unit.strip_suffix(name)?;
            let (_, factor, prefixes) = symbol.read().find(|(read, _, _)| *read == prefix)?;
            Some(Self { factor, base: symbol.name(), separator: "", prefixes })
        })
    }

    /// The largest that gives at least 1 when rounded to three digits, else the smallest. `value` is in the base unit.
    fn prefix_for(&self, value: f64) -> (&'static str, f64) {
        let fits = |(_, scale): &&(&str, f64)| value.abs() >= scale * 0.9995;
        let plain = self.prefixes.iter().find(|(prefix, _)| prefix.is_empty());
        // Zero has no magnitude. Times are measured in nanoseconds.
        let fitting = if value == 0.0 && self.base != "s" { plain } else { self.prefixes.iter().find(fits) };
        fitting.or(self.prefixes.last()).copied().unwrap_or(("", 1.0))
    }

    fn prefixed(&self, prefix: &str) -> String {
        let separator = if prefix.is_empty() { "" } else { self.separator };
        format!("{prefix}{separator}{}", self.base)
    }
}

impl fmt::Display for Quantity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = UnitScale::new(self.unit);
        let value = self.value * scale.factor;
        let (prefix, divisor) = scale.prefix_for(value);
        let figure = format!("{} {}", format_digits(value / divisor), scale.prefixed(prefix));
        f.pad(figure.trim_end())
    }
}

/// Formats a value with three significant digits, with an exponent only for very small values.
fn format_digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    // Round first: 9.996 has as many decimal places as 10.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let places = 2 - rounded.abs().log10().floor() as i32;
    match places {
        ..=0 => format!("{value:.0}"),
        1..=6 => {
            let text = format!("{:.*}", places as usize, value);
            let is_whole = value.abs() >= 1.0 && value.fract() == 0.0;
            if is_whole { format!("{value:.0}") } else { text }
        }
        _ => format!("{value:.2e}"),
    }
}

/// Formats a count with a noun in singular or plural: `1 cell`, `3 cells`.
pub fn pluralize(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_beside_each_other_have_one_unit() {
        for (unit, values, expected) in [
            ("ns", vec![980e3, 1.2e6], vec!["0.980 ms", "1.20 ms"]),
            ("ns", vec![0.0, 1.2e6], vec!["0 ms", "1.20 ms"]),
            ("s", vec![120e-6, 1.5], vec!["0.120 ms", "1500 ms"]),
            ("s", vec![1e-9, 3.0], vec!["1 ns", "3 s"]),
            ("B/s", vec![1000.0, 2048.0], vec!["0.977 KiB/s", "2 KiB/s"]),
            ("mflops", vec![990.0, 4225.0], vec!["0.990 Gflops", "4.22 Gflops"]),
            ("requests", vec![-5.0, 2.0], vec!["-5 requests", "2 requests"]),
            ("%", vec![0.5, 99.0], vec!["0.500 %", "99 %"]),
            ("1", vec![], vec![]),
        ] {
            let unit = Unit::new(unit);
            let common = unit.common(values.iter().copied());
            assert_eq!(values.iter().map(|value| common.format(*value)).collect::<Vec<_>>(), expected, "{unit}");
        }
    }

    fn format(value: f64, unit: &str) -> String {
        Unit::new(unit).quantity(value).to_string()
    }

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        assert_eq!(format(12_345.0, "MB/s"), "12.3 GB/s");
        assert_eq!(format(1536.0, "B"), "1.50 KiB");
        assert_eq!(format(2_345.0, "mflops"), "2.35 Gflops");
        assert_eq!(format(1_500.0, "ns"), "1.50 µs");
        assert_eq!(format(0.25, "ms"), "250 µs");
        assert_eq!(format(1.234, "%"), "1.23 %");
        assert_eq!(format(12_345.0, "×"), "12345 ×");
        assert_eq!(format(0.0, "requests/s"), "0 requests/s");
        assert_eq!(format(0.001_234, ""), "0.00123");
        assert_eq!(format(1.5e-9, ""), "1.50e-9");
    }

    #[test]
    fn a_prefix_of_the_unit_is_not_doubled() {
        assert_eq!(format(12_345.0, "KiB/s"), "12.1 MiB/s");
        assert_eq!(format(12.0, "KiB/s"), "12 KiB/s");
        assert_eq!(format(0.5, "MiB"), "512 KiB");
        assert_eq!(format(12_345.0, "Mbit/s"), "12.3 Gbit/s");
        assert_eq!(format(81_234.0, "MIPS"), "81.2 GIPS");
        assert_eq!(format(0.25, "kB/s"), "250 B/s");
    }

    #[test]
    fn a_prefix_is_joined_to_a_symbol_and_separated_from_a_word() {
        assert_eq!(format(1_234_567.0, "requests/s"), "1.23 M requests/s");
        assert_eq!(format(81_234.0, "ops/s"), "81.2 k ops/s");
        assert_eq!(format(3_500.0, "Hz"), "3.50 kHz");
        assert_eq!(format(5_400.0, "1/s"), "5.40 k/s");
    }

    // `m` was read as mega for every symbol because of `mflops`: 500 mW was shown as 500 MW.
    #[test]
    fn fractions_of_physical_units_are_not_millions() {
        assert_eq!(format(500.0, "mW"), "500 mW");
        assert_eq!(format(5.0, "mHz"), "5 mHz");
        assert_eq!(format(500.0, "MW"), "500 MW");
        assert_eq!(format(0.5, "W"), "500 mW");
        assert_eq!(format(3.0, "m/s"), "3 m/s");
        assert_eq!(format(3.0, "mB"), "3 MB");
        assert_eq!(format(0.0, "mW"), "0 W");
    }

    #[test]
    fn a_readable_unit_is_that_of_the_largest_value() {
        let readable = |unit: &str, largest: f64| Unit::new(unit).readable(largest);
        assert_eq!(readable("mflops", 4225.0), (1e3, "Gflops".to_owned()));
        assert_eq!(readable("MiB", 2048.0), (1024.0, "GiB".to_owned()));
        assert_eq!(readable("ns", 2e6), (1e6, "ms".to_owned()));
        assert_eq!(readable("requests/s", 2e6), (1e6, "M requests/s".to_owned()));
        assert_eq!(readable("%", 2e6), (1.0, "%".to_owned()));
    }

    /// Every symbol with every prefix that it is read with, words with and without a prefix, and plain units.
    fn all_units() -> Vec<String> {
        let symbols = SYMBOLS.iter().flat_map(|symbol| {
            let names = symbol.names.iter();
            names.flat_map(|name| symbol.read().map(move |(prefix, ..)| format!("{prefix}{name}")))
        });
        let words = ["requests/s", "M requests/s", "events", "m/s", "fortnights"].into_iter();
        symbols.chain(words.chain(PLAIN).map(str::to_owned)).collect()
    }

    #[test]
    fn every_unit_has_one_reading() {
        let unique: std::collections::BTreeSet<String> = all_units().into_iter().collect();
        for unit in &unique {
            let readings = SYMBOLS.iter().flat_map(|symbol| symbol.names.iter().map(move |name| (symbol, name)));
            let readings = readings.filter_map(|(symbol, name)| {
                let prefix = unit.strip_suffix(name)?;
                let (_, factor, _) = symbol.read().find(|(read, ..)| *read == prefix)?;
                Some((symbol.name(), factor.to_bits()))
            });
            let readings: std::collections::BTreeSet<_> = readings.collect();
            assert!(readings.len() <= 1, "{unit}: {readings:?}");
        }
    }

    proptest! {
        /// What is shown is, read again, the value in its own unit, as it is in a file: no prefix is lost or confused.
        #[test]
        fn every_symbol_with_every_prefix_survives_a_round_trip(digits in 1.0..10.0_f64, exponent in -3..9_i32) {
            let value = digits * 10_f64.powi(exponent);
            for unit in all_units() {
                for value in [value, -value] {
                    let shown = format(value, &unit);
                    let (number, shown_unit) = shown.split_once(' ').unwrap_or((&shown, ""));
                    let (scale, shown_scale) = (UnitScale::new(&unit), UnitScale::new(shown_unit));
                    prop_assert_eq!(scale.base, shown_scale.base, "{} {} is shown as {}", value, unit, shown);
                    let ratio = number.parse::<f64>().unwrap() * shown_scale.factor / (value * scale.factor);
                    prop_assert!((ratio - 1.0).abs() <= 0.0051, "{} {} is shown as {}", value, unit, shown);
                    let (divisor, readable) = Unit::new(unit.as_str()).readable(value);
                    prop_assert_eq!(readable.as_str(), shown_unit);
                    prop_assert!((value / divisor / number.parse::<f64>().unwrap() - 1.0).abs() <= 0.0051);
                }
            }
        }
    }

    #[test]
    fn values_that_round_up_get_the_next_prefix_and_three_digits() {
        assert_eq!(format(999_960.0, "requests/s"), "1.00 M requests/s");
        assert_eq!(format(999_960.0, "ns"), "1.00 ms");
        assert_eq!(format(1_048_500.0, "B"), "1.00 MiB");
        assert_eq!(format(9.996, "%"), "10.0 %");
        assert_eq!(format(99.97, "ops/s"), "100 ops/s");
    }
}
