//! How figures are written on the page.

use serde::{Serialize, Serializer};

/// A difference in percent, with its sign, to two decimals.
pub(super) fn format_percent(value: f64) -> String {
    match value {
        f64::INFINITY => "+∞ %".to_owned(),
        f64::NEG_INFINITY => "−∞ %".to_owned(),
        value => format!("{}{:.2} %", if value < 0.0 { "−" } else { "+" }, value.abs()),
    }
}

/// A number, rounded to so many digits that count.
pub(super) fn round_significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = digits - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(power.abs());
    let rounded = if power < 0 { (value / scale).round() * scale } else { (value * scale).round() / scale };
    if rounded.is_finite() { rounded } else { value }
}

/// A value with four digits that count, all of them where it is a thousand or more, up to six.
pub(super) fn format_value(value: f64) -> String {
    let magnitude = value.abs();
    if value != 0.0 && !(1e-4..1e9).contains(&magnitude) {
        return format!("{value:.3e}").replace('-', "−");
    }
    let value = round_significant(value, if magnitude < 1000.0 { 4 } else { 6 });
    let decimals = if value == 0.0 { 0 } else { (3 - magnitude.log10().floor() as i32).max(0) as usize };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.replace('-', "−")
}

/// A figure in the page's data: nothing, a word, or a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Datum {
    None,
    Word(&'static str),
    Number(f64),
}

impl Datum {
    /// A difference in percent, as fine as it is shown.
    pub(super) fn percent(value: Option<f64>) -> Self {
        Self::from_rounded(value, |value| if value.abs() < 1e9 { (value * 100.0).round() / 100.0 } else { value })
    }

    /// A number with so many digits that count.
    pub(super) fn of(value: Option<f64>, digits: i32) -> Self {
        Self::from_rounded(value, |value| round_significant(value, digits))
    }

    /// One that is infinite is a word, because JSON has no such number.
    fn from_rounded(value: Option<f64>, round: impl Fn(f64) -> f64) -> Self {
        match value {
            None => Self::None,
            Some(f64::INFINITY) => Self::Word("∞"),
            Some(f64::NEG_INFINITY) => Self::Word("−∞"),
            Some(value) if value.is_nan() => Self::None,
            Some(value) => Self::Number(round(value)),
        }
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::None => serializer.serialize_none(),
            Self::Word(word) => serializer.serialize_str(word),
            Self::Number(value) if value.fract() == 0.0 && value.abs() < 1e15 => serializer.serialize_i64(value as i64),
            Self::Number(value) => serializer.serialize_f64(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_and_keep_what_counts() {
        let told = [183_743.169, 12.3456, 1.0, 0.0, 0.123_456, 0.000_001_234, -5.5, 999.96, 1234.56, 1.5e12];
        let wanted = ["183743", "12.35", "1", "0", "0.1235", "1.234e−6", "−5.5", "1000", "1235", "1.500e12"];
        assert_eq!(told.map(format_value), wanted);
    }

    #[test]
    fn rounding_keeps_what_cannot_be_rounded() {
        for value in [0.0, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX, 5e-324] {
            assert!(!round_significant(value, 30).is_nan());
            assert!(
                (round_significant(value, 6) - value).abs() <= value.abs() * 1e-5
                    || value.is_infinite()
                    || value < 1e-300
            );
        }
        assert_eq!((round_significant(183_743.169, 6), round_significant(-12.34567, 4)), (183_743.0, -12.35));
    }

    #[test]
    fn differences_have_a_sign() {
        assert_eq!(
            [-0.004, 0.0, 12.345, f64::NEG_INFINITY].map(format_percent),
            ["−0.00 %", "+0.00 %", "+12.35 %", "−∞ %"]
        );
    }

    #[test]
    fn data_are_as_short_as_json_allows() {
        let data = [None, Some(2.0), Some(2.345_678_9), Some(f64::NEG_INFINITY)].map(|value| Datum::of(value, 4));
        assert_eq!(serde_json::to_string(&data).unwrap(), r#"[null,2,2.346,"−∞"]"#);
    }
}
