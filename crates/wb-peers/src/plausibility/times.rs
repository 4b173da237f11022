//! Rules for times in seconds.

use super::{Implausibility, Rule, format_time, is_positive};

/// Bytes that a TCP connection sends before the first acknowledgement: ten segments of 1460 bytes (RFC 6928).
pub const INITIAL_WINDOW: f64 = 14_600.0;

/// Factor by which a transfer must outlast the opening of its window.
const SLOW_START_FACTOR: f64 = 2.0;

/// The power of 1000, up to 10⁹ or its inverse, that brings a figure outside the expected range into it: its unit is
/// not the claimed one.
pub fn unit_factor(figure: f64, (low, high): (f64, f64)) -> Option<f64> {
    let fits = |figure: f64| (low..=high).contains(&figure);
    if !is_positive(figure) || fits(figure) {
        return None;
    }
    [1e-3, 1e3, 1e-6, 1e6, 1e-9, 1e9].into_iter().find(|factor| fits(figure * factor))
}

/// Recognises a figure that is a power of 1000 off the expected range: its unit is wrong.
pub fn unit_against_magnitude(figure: f64, expected: (f64, f64), unit: &str) -> Option<Implausibility> {
    let factor = unit_factor(figure, expected)?;
    let unit = wb_model::Unit::new(unit);
    let [figure, low, high, corrected] =
        [figure, expected.0, expected.1, figure * factor].map(|value| unit.quantity(value).to_string());
    let figures = format!(
        "{figure} is not between {low} and {high}; {corrected} would be, so that the unit is probably off by a factor of \
         {}",
        if factor < 1.0 { 1.0 / factor } else { factor }.round()
    );
    Some(Implausibility { rule: Rule::Unit, figures })
}

/// Recognises a transfer that ends while its window still opens: it measures round trips, not throughput. The window
/// doubles with each round trip, from [`INITIAL_WINDOW`].
pub fn slow_start(bytes: f64, seconds: f64, round_trip: f64) -> Option<Implausibility> {
    if !is_positive(bytes) || !is_positive(seconds) || !is_positive(round_trip) || bytes <= INITIAL_WINDOW {
        return None;
    }
    let rounds = (bytes / INITIAL_WINDOW).log2();
    let opening = rounds * round_trip;
    (seconds < SLOW_START_FACTOR * opening).then(|| Implausibility {
        rule: Rule::SlowStart,
        figures: format!(
            "{} in {}, of which opening the window takes {rounds:.1} round trips of {}: more bytes are needed",
            wb_model::Unit::new("B").quantity(bytes),
            format_time(seconds),
            format_time(round_trip)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_not_seconds() {
        let round_trip = (1e-6, 10.0);
        let found = unit_against_magnitude(87.957, round_trip, "s").unwrap();
        assert_eq!(
            found.figures,
            "88.0 s is not between 1 µs and 10 s; 88.0 ms would be, so that the unit is probably off by a factor of 1000"
        );
        assert_eq!(unit_against_magnitude(0.367, round_trip, "s"), None);
        assert_eq!(unit_factor(5e-8, round_trip), Some(1e3));
        assert_eq!(unit_factor(0.0, round_trip), None);
        assert_eq!(unit_factor(f64::INFINITY, round_trip), None);
    }

    #[test]
    fn a_transfer_within_its_slow_start_measures_round_trips() {
        let found = slow_start(1_048_576.0, 0.010, 0.001).unwrap();
        assert_eq!(
            found.figures,
            "1 MiB in 10 ms, of which opening the window takes 6.2 round trips of 1 ms: more bytes are needed"
        );
        assert_eq!(slow_start(1_048_576.0, 0.020, 0.001), None);
        assert_eq!(slow_start(14_600.0, 1e-9, 0.001), None);
    }
}
