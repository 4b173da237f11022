//! Rules that recognise impossible or meaningless figures of a transfer, measured or imported.
//!
//! They are functions over plain figures: rates in bytes per second, times in seconds. A rule that cannot decide
//! returns `None`.

mod rates;
mod samples;
mod times;

use std::fmt;

use wb_model::Gate;

pub use rates::{ASYMMETRY, CEILING_MARGIN, asymmetric_rates, rate_above_ceiling};
pub use samples::{
    TimeCluster, clustered_rates, clustered_times, quantised_samples, quantised_times, rate_cluster, time_cluster,
};
pub use times::{INITIAL_WINDOW, slow_start, unit_against_magnitude, unit_factor};

use wb_model::Unit;

/// A figure that is impossible, or that measures something else than it claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Implausibility {
    pub rule: Rule,
    /// The figures that violate the rule, as a sentence without a full stop.
    pub figures: String,
}

impl fmt::Display for Implausibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.figures)
    }
}

/// A rule for the figures of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Upload and download of one cell have similar rates.
    Asymmetry,
    /// No rate exceeds what a baseline reaches.
    Ceiling,
    /// A figure has the magnitude of its unit.
    Unit,
    /// Samples do not end at a time limit.
    TimeLimit,
    /// Samples are not multiples of the step of a clock.
    Resolution,
    /// A transfer lasts longer than the opening of its window.
    SlowStart,
}

impl Rule {
    pub const ALL: [Self; 6] =
        [Self::Asymmetry, Self::Ceiling, Self::Unit, Self::TimeLimit, Self::Resolution, Self::SlowStart];

    pub fn name(self) -> &'static str {
        match self {
            Self::Asymmetry => "asymmetry",
            Self::Ceiling => "ceiling",
            Self::Unit => "unit",
            Self::TimeLimit => "time-limit",
            Self::Resolution => "resolution",
            Self::SlowStart => "slow-start",
        }
    }

    /// The gate that a sample fails if it violates the rule.
    pub fn gate(self) -> Gate {
        match self {
            Self::Asymmetry | Self::Ceiling | Self::Resolution => Gate::Plausibility,
            Self::Unit => Gate::Output,
            Self::TimeLimit | Self::SlowStart => Gate::Effort,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Formats a rate as bits per second, the unit of the suites.
pub fn format_rate(bytes_per_second: f64) -> String {
    Unit::new("bit/s").quantity(bytes_per_second * 8.0).to_string()
}

pub fn format_time(seconds: f64) -> String {
    Unit::new("s").quantity(seconds).to_string()
}

/// Whether a figure can be judged: finite and above 0.
fn is_positive(figure: f64) -> bool {
    figure.is_finite() && figure > 0.0
}

/// Converts a rate of a suite, in Gbit/s, to bytes per second.
#[cfg(test)]
fn gbps(rate: f64) -> f64 {
    rate * 1e9 / 8.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_rules_are_unique() {
        let mut names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Rule::ALL.len());
    }

    proptest! {
        #[test]
        fn no_figures_panic(a: f64, b: f64, c: f64, list: Vec<f64>) {
            asymmetric_rates(a, b);
            rate_above_ceiling(a, b, c);
            unit_against_magnitude(a, (b, c), "s");
            slow_start(a, b, c);
            clustered_times(&list, Some(a));
            clustered_rates(&list);
            quantised_samples(&list, a);
            quantised_times(&list, a);
        }
    }
}
