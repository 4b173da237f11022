//! Checks of a peers file: bounds that figures of a cell have to be within.

use std::fmt;
use std::str::FromStr;

use wb_model::MetricKey;
use wb_model::outcome::Gate;

/// Bounds of a metric of some cells. Its text is `GATE: METRIC MIN..MAX`, where a missing bound is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureCheck {
    /// Filter on the names of cells; all if empty. Not part of the text.
    pub cells: String,
    /// What a violation is about.
    pub gate: Gate,
    pub metric: MetricKey,
    /// The smallest allowed value, in the unit of the metric.
    pub min: Option<f64>,
    /// The largest allowed value, in the unit of the metric.
    pub max: Option<f64>,
}

impl FigureCheck {
    pub fn allows(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

impl fmt::Display for FigureCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: Option<f64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        write!(f, "{}: {} {}..{}", self.gate, self.metric, bound(self.min), bound(self.max))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid check `{0}`: expected GATE: METRIC MIN..MAX")]
pub struct InvalidCheck(String);

impl FromStr for FigureCheck {
    type Err = InvalidCheck;

    fn from_str(text: &str) -> Result<Self, InvalidCheck> {
        let bound = |text: &str| match text {
            "" => Some(None),
            text => text.parse().ok().map(Some),
        };
        let parse = || {
            let (gate, rest) = text.split_once(": ")?;
            let (metric, bounds) = rest.split_once(' ')?;
            let (min, max) = bounds.split_once("..")?;
            Some(Self {
                cells: String::new(),
                gate: Gate::ALL.into_iter().find(|one| one.to_string() == gate)?,
                metric: metric.parse().ok()?,
                min: bound(min)?,
                max: bound(max)?,
            })
        };
        parse().ok_or_else(|| InvalidCheck(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_check_is_read_as_it_was_written(
            gate in prop::sample::select(Gate::ALL.to_vec()),
            min: Option<i32>,
            max in prop::option::of(-1e12..1e12),
        ) {
            let metric = "throughput/upload".parse().unwrap();
            let check = FigureCheck { cells: String::new(), gate, metric, min: min.map(f64::from), max };
            prop_assert_eq!(check.to_string().parse(), Ok(check));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<FigureCheck>();
        }
    }

    #[test]
    fn bounds_are_inclusive() {
        let check: FigureCheck = "plausibility: latency/connect 1..2.5".parse().unwrap();
        assert_eq!([0.9, 1.0, 2.5, 2.6].map(|value| check.allows(value)), [false, true, true, false]);
        let check: FigureCheck = "work: latency/connect ..2".parse().unwrap();
        assert!(check.allows(-1.0));
    }
}
