//! Formats figures for the page and its data.

use serde::{Serialize, Serializer};

use crate::phrasing::is_about_symmetric;

/// Formats a difference in percent with sign and two decimals.
pub(super) fn format_percent(value: f64) -> String {
    match value {
        f64::INFINITY => "+∞ %".to_owned(),
        f64::NEG_INFINITY => "−∞ %".to_owned(),
        // No zero is negative.
        value => format!("{}{:.2} %", if value <= -0.005 { "−" } else { "+" }, value.abs()),
    }
}

/// Formats a difference of standard deviations in percentage points, which is positive if there is less deviation.
/// Beside both deviations only words can say which; weighted scores have a sign of their own.
pub(super) fn format_points(value: f64, is_weighted: bool) -> String {
    let signed = format_percent(value);
    let figure = signed.trim_end_matches(" %");
    match value {
        _ if is_weighted || figure == "+0.00" => format!("{figure} points"),
        _ if value < 0.0 => format!("{} points more", figure.trim_start_matches('−')),
        _ => format!("{} points less", figure.trim_start_matches('+')),
    }
}

/// Formats the ends of an interval in percent beside its estimate: `±2.1`, or both ends if its halves are not about
/// equal or if the half would say something else about zero.
pub(super) fn format_interval(estimate: f64, [low, high]: [f64; 2]) -> String {
    let half = round_significant((high - low) / 2.0, 2);
    let contradicts_zero = (estimate - half > 0.0) != (low > 0.0) || (estimate + half < 0.0) != (high < 0.0);
    if is_about_symmetric(estimate - low, high - estimate) && !contradicts_zero {
        return format!("±{half}");
    }
    let [low, high] = [low, high].map(|end| format_percent(end).trim_end_matches(" %").to_owned());
    format!("[{low}, {high}]")
}

pub(super) fn round_significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = digits - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(power.abs());
    let rounded = if power < 0 { (value / scale).round() * scale } else { (value * scale).round() / scale };
    if rounded.is_finite() { rounded } else { value }
}

/// Formats a value with four significant digits, or up to six if it is a thousand or more.
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

/// A figure in the page's data: null, a word, or a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum JsonFigure {
    None,
    Word(&'static str),
    Number(f64),
}

impl JsonFigure {
    /// A difference in percent, rounded to the displayed precision.
    pub(super) fn percent(value: Option<f64>) -> Self {
        Self::from_rounded(value, |value| if value.abs() < 1e9 { (value * 100.0).round() / 100.0 } else { value })
    }

    /// `digits` counts significant digits.
    pub(super) fn new(value: Option<f64>, digits: i32) -> Self {
        Self::from_rounded(value, |value| round_significant(value, digits))
    }

    /// Encodes a rounded number; infinite ones become words, because JSON has no infinity.
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

impl Serialize for JsonFigure {
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
    fn values_have_four_to_six_significant_digits() {
        let values = [183_743.169, 12.3456, 1.0, 0.0, 0.123_456, 0.000_001_234, -5.5, 999.96, 1234.56, 1.5e12];
        let expected = ["183743", "12.35", "1", "0", "0.1235", "1.234e−6", "−5.5", "1000", "1235", "1.500e12"];
        assert_eq!(values.map(format_value), expected);
    }

    #[test]
    fn rounding_preserves_extreme_values() {
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
    fn halves_that_differ_by_a_fifth_are_an_interval() {
        assert_eq!(format_interval(-7.29, [-29.83, 50.50]), "[−29.83, +50.50]");
        assert_eq!(format_interval(-7.29, [-9.4, -5.3]), "±2.1");
        assert_eq!(format_interval(19.49, [0.61, 41.9]), "[+0.61, +41.90]", "±21 would include zero");
    }

    #[test]
    fn differences_have_a_sign() {
        assert_eq!(
            [-0.004, 0.0, 12.345, f64::NEG_INFINITY].map(format_percent),
            ["+0.00 %", "+0.00 %", "+12.35 %", "−∞ %"]
        );
    }

    // A negative sign for more contradicted both deviations that stand beside it.
    #[test]
    fn differences_of_deviations_say_which_is_more() {
        let texts = [-11.46, 2.0, -0.001].map(|points| format_points(points, false));
        assert_eq!(texts, ["11.46 points more", "2.00 points less", "+0.00 points"]);
        assert_eq!(format_points(-11.46, true), "−11.46 points");
    }

    #[test]
    fn data_are_as_short_as_json_allows() {
        let data = [None, Some(2.0), Some(2.345_678_9), Some(f64::NEG_INFINITY)].map(|value| JsonFigure::new(value, 4));
        assert_eq!(serde_json::to_string(&data).unwrap(), r#"[null,2,2.346,"−∞"]"#);
    }
}
