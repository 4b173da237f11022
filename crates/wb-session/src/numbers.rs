//! Numbers of options, and the messages of invalid ones.

use wb_model::{Count, MAX_THRESHOLD_PERCENT};

/// Parses the smallest difference that matters, in percent.
pub fn parse_threshold(text: &str) -> Result<f64, String> {
    let percentage = format!("a percentage from 0 to {MAX_THRESHOLD_PERCENT}");
    parse_number(text, &percentage, |percent| (0.0..=MAX_THRESHOLD_PERCENT).contains(&percent))
}

/// Parses how much runs of one build differ, in percent. Above 100 % no difference could be confirmed.
pub fn parse_run_noise(text: &str) -> Result<f64, String> {
    parse_number(text, "a percentage from 0 to 100", |percent| (0.0..=100.0).contains(&percent))
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
    parse_number(text, "a number of 0 or more", |value| value >= 0.0)
}

pub fn parse_positive(text: &str) -> Result<f64, String> {
    parse_number(text, "a number above 0", |value| value > 0.0)
}

pub fn parse_fraction(text: &str) -> Result<f64, String> {
    parse_number(text, "a number from 0 to 1", |value| (0.0..=1.0).contains(&value))
}

/// Parses a finite number, also with the suffix of a count.
fn parse_number(text: &str, expected: &str, is_valid: impl Fn(f64) -> bool) -> Result<f64, String> {
    let plain = text.parse().ok().filter(|value: &f64| value.is_finite());
    let number = plain.or_else(|| text.parse::<Count>().ok().map(|count| count.0 as f64));
    number.filter(|value| is_valid(*value)).ok_or_else(|| format!("expected {expected}"))
}
