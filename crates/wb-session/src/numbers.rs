//! Numbers of options, and the messages of invalid ones.

use wb_model::{Count, MAX_THRESHOLD_PERCENT};

/// Parses the smallest difference that matters, in percent.
pub fn parse_threshold(text: &str) -> Result<f64, String> {
    finite(text)
        .filter(|percent| (0.0..=MAX_THRESHOLD_PERCENT).contains(percent))
        .ok_or_else(|| format!("expected a percentage from 0 to {MAX_THRESHOLD_PERCENT}"))
}

/// Parses how much runs of one build differ, in percent. Above 100 % no difference could be confirmed.
pub fn parse_run_noise(text: &str) -> Result<f64, String> {
    finite(text)
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "expected a percentage from 0 to 100".to_owned())
}

/// Parses a whole number that is `LEAST` or more.
pub fn whole_number<T: TryFrom<u64>, const LEAST: u64>(text: &str) -> Result<T, String> {
    whole_number_to::<T, LEAST, { u64::MAX }>(text)
}

/// Parses a whole number from `LEAST` to `MOST`: `10000000`, `10M` or `1e7`.
pub fn whole_number_to<T: TryFrom<u64>, const LEAST: u64, const MOST: u64>(text: &str) -> Result<T, String> {
    let number = text.parse::<Count>().ok().map(|count| count.0).filter(|number| (LEAST..=MOST).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let most = (1..=64).map(|bits| u64::MAX >> (64 - bits)).rfind(|most| T::try_from(*most).is_ok());
        match most.map_or(MOST, |most| most.min(MOST)) {
            u64::MAX => format!("expected a whole number from {LEAST}"),
            most => format!("expected a whole number from {LEAST} to {most}"),
        }
    })
}

pub fn parse_non_negative(text: &str) -> Result<f64, String> {
    finite(text).filter(|value| *value >= 0.0).ok_or_else(|| "expected a number of 0 or more".to_owned())
}

pub fn parse_positive(text: &str) -> Result<f64, String> {
    finite(text).filter(|value| *value > 0.0).ok_or_else(|| "expected a number above 0".to_owned())
}

pub fn parse_fraction(text: &str) -> Result<f64, String> {
    finite(text).filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

fn finite(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|value| value.is_finite());
    plain.or_else(|| text.parse::<Count>().ok().map(|count| count.0 as f64))
}
