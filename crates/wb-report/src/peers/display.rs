//! The units in which figures are shown: bits per second, as in the suites, and times.

use wb_model::Unit;

use super::Scenario;

/// From B/s to the suites' Gbit/s.
const GIGABITS_PER_BYTE: f64 = 8.0 / 1e9;
/// From ns to the suites' ms.
const MILLIS: f64 = 1.0 / 1e6;

pub(super) trait DisplayScenario {
    fn display_unit(&self) -> Unit;

    /// A sample in [`Self::display_unit`].
    fn displayed(&self, sample: f64) -> f64;

    fn format(&self, sample: f64) -> String;

    fn suite_unit(&self) -> &'static str;

    /// A sample as a number in the suites' files.
    fn suite_number(&self, sample: f64) -> String;

    /// The name at the start of a title.
    fn title(&self) -> String;
}

impl DisplayScenario for Scenario {
    fn display_unit(&self) -> Unit {
        Unit::new(if self.is_rate() { "bit/s" } else { "ns" })
    }

    fn displayed(&self, sample: f64) -> f64 {
        if self.is_rate() { sample * 8.0 } else { sample }
    }

    fn format(&self, sample: f64) -> String {
        self.display_unit().quantity(self.displayed(sample)).to_string()
    }

    fn suite_unit(&self) -> &'static str {
        if self.is_rate() { "Gbps" } else { "ms" }
    }

    fn suite_number(&self, sample: f64) -> String {
        format_decimal(sample * if self.is_rate() { GIGABITS_PER_BYTE } else { MILLIS })
    }

    fn title(&self) -> String {
        let mut letters = self.name().chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

/// Formats a number with five significant digits and no exponent.
pub(super) fn format_decimal(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let magnitude = number.abs().log10().floor() as i32;
    let decimals = (4 - magnitude).clamp(0, 12) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_five_digits_in_the_suites_units() {
        assert_eq!(Scenario::Upload.suite_number(3.5512e9 / 8.0), "3.5512");
        assert_eq!(Scenario::Latency.suite_number(87_957_123.0), "87.957");
        assert_eq!(Scenario::Upload.suite_number(125.0), "0.000001");
        assert_eq!([format_decimal(0.0), format_decimal(f64::NAN), format_decimal(123_456.0)], ["0", "null", "123456"]);
        assert_eq!(Scenario::Upload.format(125e6), "1 Gbit/s");
    }
}
