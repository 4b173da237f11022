//! The lines while a run goes.

use super::figures::{bits, figure};

/// What happened in one interval of the data phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tick {
    /// The interval's end in seconds after the data phase began.
    pub at: f64,
    /// Bytes per second that arrived at their receivers; none where a machine has said nothing.
    pub received: Option<f64>,
    /// Bytes per second that were sent.
    pub sent: Option<f64>,
    /// Executions of the client's flowops per second.
    pub operations: Option<f64>,
}

/// A line of an interval, its time told to so many decimals.
pub fn line(tick: &Tick, decimals: usize) -> String {
    let columns =
        [(bits(tick.received), "received"), (bits(tick.sent), "sent"), (figure(tick.operations, "/s"), "operations")];
    let columns: String = columns.iter().map(|(figure, name)| format!("  {figure:>12} {name}")).collect();
    format!("{:>8.decimals$} s{columns}\n", tick.at)
}

/// The line that names what begins.
pub fn begins(at: f64, decimals: usize, name: &str) -> String {
    format!("{at:>8.decimals$} s  {name} begins\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned() {
        let tick = Tick { at: 1.0, received: Some(1.25e9), sent: None, operations: Some(90_300.0) };
        insta::assert_snapshot!(line(&tick, 1), @"     1.0 s     10 Gbit/s received             – sent      90.3 k/s operations");
        let later = Tick { at: 12345.5, received: Some(7.0), ..tick };
        assert_eq!(line(&tick, 1).chars().count(), line(&later, 1).chars().count());
    }
}
