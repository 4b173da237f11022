//! Progress lines during a run.

use super::figures::{format_bit_rate, format_figure};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalRates {
    /// The interval's end in seconds since the start of the data phase.
    pub at: f64,
    /// Bytes per second; `None` if a machine did not report.
    pub received: Option<f64>,
    /// Bytes per second.
    pub sent: Option<f64>,
    /// Executions of the client's flowops per second.
    pub operations: Option<f64>,
}

pub fn interval_line(tick: &IntervalRates, decimals: usize) -> String {
    let columns = [
        (format_bit_rate(tick.received), "received"),
        (format_bit_rate(tick.sent), "sent"),
        (format_figure(tick.operations, "/s"), "operations"),
    ];
    let columns: String = columns.iter().map(|(figure, name)| format!("  {figure:>12} {name}")).collect();
    format!("{:>8.decimals$} s{columns}\n", tick.at)
}

pub fn transaction_start_line(seconds: f64, decimals: usize, name: &str) -> String {
    format!("{seconds:>8.decimals$} s  {name} begins\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned() {
        let tick = IntervalRates { at: 1.0, received: Some(1.25e9), sent: None, operations: Some(90_300.0) };
        insta::assert_snapshot!(interval_line(&tick, 1), @"     1.0 s     10 Gbit/s received             – sent      90.3 k/s operations");
        let later = IntervalRates { at: 12345.5, received: Some(7.0), ..tick };
        assert_eq!(interval_line(&tick, 1).chars().count(), interval_line(&later, 1).chars().count());
    }
}
