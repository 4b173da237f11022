//! Amounts and rates as iperf3 writes them: about three digits, and a unit.

use std::str::FromStr;

/// The unit of rates (`-f`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RateUnit {
    /// Bits per second, with the prefix that fits.
    #[default]
    Adaptive,
    /// Bits per second with the decimal prefix of this index.
    Bits(usize),
    /// Bytes per second with the binary prefix of this index.
    Bytes(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of k, m, g, t (bits), K, M, G, T (bytes)")]
pub struct RateUnitError;

impl FromStr for RateUnit {
    type Err = RateUnitError;

    fn from_str(text: &str) -> Result<Self, RateUnitError> {
        let [letter] = text.as_bytes() else { return Err(RateUnitError) };
        let prefix = b"kmgt".iter().position(|prefix| prefix.eq_ignore_ascii_case(letter)).ok_or(RateUnitError)?;
        Ok(if letter.is_ascii_lowercase() { Self::Bits(prefix + 1) } else { Self::Bytes(prefix + 1) })
    }
}

const PREFIXES: [&str; 5] = ["", "K", "M", "G", "T"];

/// Formats a rate in bits per second, without "/sec".
pub(super) fn rate(bits_per_second: f64, unit: RateUnit) -> String {
    match unit {
        RateUnit::Adaptive => adaptive(bits_per_second, 1000.0, "bits"),
        RateUnit::Bits(prefix) => with_prefix(bits_per_second / 1000_f64.powi(prefix as i32), prefix, "bits"),
        RateUnit::Bytes(prefix) => with_prefix(bits_per_second / 8.0 / 1024_f64.powi(prefix as i32), prefix, "Bytes"),
    }
}

pub(super) fn bytes(count: f64) -> String {
    adaptive(count, 1024.0, "Bytes")
}

fn adaptive(value: f64, base: f64, unit: &str) -> String {
    let (mut value, mut prefix) = (value, 0);
    while value >= base && prefix + 1 < PREFIXES.len() {
        value /= base;
        prefix += 1;
    }
    with_prefix(value, prefix, unit)
}

fn with_prefix(value: f64, prefix: usize, unit: &str) -> String {
    let prefix = PREFIXES[prefix.min(PREFIXES.len() - 1)];
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:4.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits_and_a_prefix() {
        let amounts = [0.0, 1023.0 * 1024.0, 940.0 * 1048576.0, 1.82 * 1073741824.0];
        assert_eq!(amounts.map(bytes), ["0.00 Bytes", "1023 KBytes", " 940 MBytes", "1.82 GBytes"]);
        assert_eq!(rate(9_960_000.0, RateUnit::Adaptive), "9.96 Mbits");
        assert_eq!(rate(15.46e9, RateUnit::Adaptive), "15.5 Gbits");
        assert_eq!(rate(15.46e9, "m".parse().unwrap()), "15460 Mbits");
        assert_eq!(rate(8.0 * 1048576.0, "M".parse().unwrap()), "1.00 MBytes");
        for text in ["", "x", "kb"] {
            assert_eq!(text.parse::<RateUnit>(), Err(RateUnitError), "{text}");
        }
    }
}
