//! Rules for times in seconds.

use super::{Implausibility, Rule, format_time, is_positive};

/// Bytes that a TCP connection sends before the first acknowledgement: ten segments of 1460 bytes (RFC 6928).
pub const INITIAL_WINDOW: f64 = 14_600.0;

/// Smallest part of the time of a transfer that has to depend on its bytes.
const MIN_DEPENDENT_PART: f64 = 0.1;

/// Number of times that the opening of the window has to fit into a transfer.
const SLOW_START_FACTOR: f64 = 2.0;

/// Recognises a latency below the raw round trip of the connection, which every answer needs; `margin` is the factor by
/// which the latter may vary.
pub fn latency_below_round_trip(latency: f64, round_trip: f64, margin: f64) -> Option<Implausibility> {
    if !is_positive(latency) || !is_positive(round_trip) || !is_positive(margin) || latency * margin >= round_trip {
        return None;
    }
    let figures =
        format!("latency of {} is below the raw round trip of {}", format_time(latency), format_time(round_trip));
    Some(Implausibility { rule: Rule::RoundTrip, figures })
}

/// The power of 1000 that brings a figure into the expected range, if it is outside and there is one up to a factor of
/// 10⁹: the figure is in another unit than claimed.
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

/// Recognises two transfers, each of bytes in seconds, of which the larger does not take longer: a sleep, or a transfer
/// that did not happen. At least a tenth of the time of the smaller one has to grow with the bytes.
pub fn independent_of_bytes(first: (f64, f64), second: (f64, f64)) -> Option<Implausibility> {
    let [(small, short), (large, long)] = if first.0 <= second.0 { [first, second] } else { [second, first] };
    if ![small, short, large, long].into_iter().all(is_positive) || large < 2.0 * small {
        return None;
    }
    let ratio = large / small;
    // With time = start + bytes × b, the part of the smaller transfer's time that depends on its bytes.
    let dependent = (long / short - 1.0) / (ratio - 1.0);
    (dependent < MIN_DEPENDENT_PART).then(|| Implausibility {
        rule: Rule::Effort,
        figures: format!(
            "{ratio:.3} times the bytes took {:.3} times as long ({} and {}): the time does not depend on the bytes",
            long / short,
            format_time(short),
            format_time(long)
        ),
    })
}

/// Recognises a transfer that is over while its window still opens: it measures round trips, not throughput. The window
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
    fn an_answer_needs_a_round_trip() {
        let found = latency_below_round_trip(20e-6, 50e-6, 1.05).unwrap();
        assert_eq!(found.figures, "latency of 20 µs is below the raw round trip of 50 µs");
        assert_eq!(latency_below_round_trip(49e-6, 50e-6, 1.05), None);
        assert_eq!(latency_below_round_trip(49e-6, 0.0, 1.05), None);
    }

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
    fn a_sleep_takes_as_long_for_any_number_of_bytes() {
        let found = independent_of_bytes((1e6, 0.044), (1e9, 0.0442)).unwrap();
        assert_eq!(
            found.figures,
            "1000.000 times the bytes took 1.005 times as long (44 ms and 44.2 ms): the time does not depend on the bytes"
        );
        assert!(independent_of_bytes((1e9, 0.044), (1e6, 0.0442)).is_some());
        assert_eq!(independent_of_bytes((1e8, 0.1), (1e9, 0.9)), None);
        // Half of the smaller transfer's time is its start.
        assert_eq!(independent_of_bytes((1e8, 0.2), (2e8, 0.3)), None);
        assert_eq!(independent_of_bytes((1e8, 0.1), (1.5e8, 0.1)), None, "too similar to decide");
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
