//! Numbers as programs print them: with a precision, and with prefixes of units.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Printed {
    value: f64,
    /// How far the figure may be from it: one unit of the last digit, since programs cut digits off or round.
    precision: f64,
}

impl Printed {
    /// Parses a number, with a prefix of its unit or without: `27.1k`, `106Mi`, `1e3`. `None` if it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let prefix_at = text.find(['k', 'K', 'M', 'G', 'T']).unwrap_or(text.len());
        let (digits, prefix) = text.split_at(prefix_at);
        let value: f64 = digits.trim().parse().ok()?;
        let decimals = match digits.trim().split_once('.') {
            // Not in scientific notation, where the digits say less.
            Some((_, decimals)) if decimals.chars().all(|digit| digit.is_ascii_digit()) => decimals.len(),
            Some(_) => return Some(Self { value, precision: value.abs() * 1e-5 }),
            None => 0,
        };
        let power = prefix.chars().next().map_or(0, |prefix| match prefix {
            'k' | 'K' => 1,
            'M' => 2,
            'G' => 3,
            _ => 4,
        });
        let base: f64 = if prefix.len() > 1 && prefix[1..].starts_with('i') { 1024.0 } else { 1000.0 };
        let scale = base.powi(power);
        Some(Self { value: value * scale, precision: 0.1f64.powi(i32::try_from(decimals).ok()?) * scale })
    }

    pub(crate) fn is_zero(self) -> bool {
        self.value == 0.0
    }

    /// In another unit: `factor` of it are one of the printed.
    pub(crate) fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, precision: self.precision * factor }
    }

    /// `None` if there are none.
    pub(crate) fn mean(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let precision = all.iter().map(|one| one.precision).reduce(f64::max)?;
        Some(Self { value: all.iter().map(|one| one.value).sum::<f64>() / count, precision })
    }

    /// Whether the figure may have been printed so.
    pub(crate) fn agrees_with(self, figure: f64) -> bool {
        (figure - self.value).abs() <= self.precision * 1.000_001 + self.value.abs() * 1e-12
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ± {}", self.value, self.precision)
    }
}

/// The text after `start` up to one of `ends`, in the first line that has `start`.
pub(crate) fn between<'a>(text: &'a str, start: &str, ends: &[char]) -> Option<&'a str> {
    let line = text.lines().find(|line| line.contains(start))?;
    let rest = &line[line.find(start)? + start.len()..];
    Some(rest[..rest.find(ends).unwrap_or(rest.len())].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_precision_of_their_last_digit() {
        let parsed = |text| {
            let Printed { value, precision } = Printed::parse(text).unwrap();
            (value, precision)
        };
        assert_eq!(parsed("27.5k"), (27_500.0, 100.0));
        assert_eq!(parsed("106MiB/s"), (106.0 * 1_048_576.0, 1_048_576.0));
        assert_eq!(parsed("4188056"), (4_188_056.0, 1.0));
        assert_eq!(Printed::parse("-"), None);
        let printed = Printed::parse("0.25").unwrap();
        assert!(printed.agrees_with(0.2549) && printed.agrees_with(0.2451) && !printed.agrees_with(0.27));
    }

    #[test]
    fn text_is_found_in_its_line() {
        let report = "a: 1\n  read: IOPS=27.1k, BW=106MiB/s (111MB/s)\n";
        assert_eq!(between(report, "IOPS=", &[',']), Some("27.1k"));
        assert_eq!(between(report, "BW=", &[' ']), Some("106MiB/s"));
        assert_eq!(between(report, "write:", &[',']), None);
    }
}
