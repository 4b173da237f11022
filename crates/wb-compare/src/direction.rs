//! Which way is better, for every metric.

use std::collections::BTreeMap;
use std::str::FromStr;

use wb_model::{Class, Direction};

/// Which way is better: by class (throughput higher; latency and resource lower; check neither), except for metrics
/// where something else was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directions {
    by_metric: BTreeMap<String, Direction>,
    by_class_and_metric: BTreeMap<(Class, String), Direction>,
}

impl Directions {
    /// Says it of a metric, in one class or, without one, in all. The one with a class wins over the one without; of
    /// two alike the later.
    pub fn set(&mut self, class: Option<Class>, metric: &str, direction: Direction) {
        match class {
            Some(class) => self.by_class_and_metric.insert((class, metric.to_owned()), direction),
            None => self.by_metric.insert(metric.to_owned(), direction),
        };
    }

    /// These, and above them what somebody says: of a metric without a class it holds in every class.
    #[must_use]
    pub fn with_overrides(mut self, said: &[DirectionOverride]) -> Self {
        for of in said.iter().filter(|of| of.class.is_none()) {
            self.by_class_and_metric.retain(|(_, metric), _| *metric != of.metric);
        }
        self.extend(said.iter().cloned());
        self
    }

    /// Which way is better for a metric, whichever its worker.
    pub fn of(&self, class: Class, metric: &str) -> Direction {
        if self.by_metric.is_empty() && self.by_class_and_metric.is_empty() {
            return default_for_class(class);
        }
        let metric = without_worker(metric);
        let said = self.by_class_and_metric.get(&(class, metric.to_owned())).or_else(|| self.by_metric.get(metric));
        said.copied().unwrap_or_else(|| default_for_class(class))
    }
}

/// A metric's own name.
pub(crate) fn without_worker(metric: &str) -> &str {
    metric.split_once('@').map_or(metric, |(metric, _)| metric)
}

fn default_for_class(class: Class) -> Direction {
    match class {
        Class::Throughput => Direction::Higher,
        Class::Latency | Class::Resource => Direction::Lower,
        Class::Check => Direction::Neither,
    }
}

/// One saying, as a user types it: `lat=lower`, `latency/score=higher`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionOverride {
    /// In which class; in all without one.
    pub class: Option<Class>,
    /// Of which metric.
    pub metric: String,
    /// Which way is better.
    pub direction: Direction,
}

/// Text that says no direction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` says no direction: METRIC=higher, METRIC=lower or METRIC=neither is expected, METRIC as in `lat` or `latency/lat`"
)]
pub struct ParseDirectionError(String);

impl FromStr for DirectionOverride {
    type Err = ParseDirectionError;

    fn from_str(text: &str) -> Result<Self, ParseDirectionError> {
        let parse = || {
            let (metric, direction) = text.rsplit_once('=')?;
            let direction = Direction::ALL.into_iter().find(|known| known.as_str() == direction)?;
            let (class, metric) = match metric.split_once('/') {
                Some((class, metric)) => (Some(class.parse().ok()?), metric),
                None => (None, metric),
            };
            (!metric.is_empty()).then(|| Self { class, metric: metric.to_owned(), direction })
        };
        parse().ok_or_else(|| ParseDirectionError(text.to_owned()))
    }
}

impl Extend<DirectionOverride> for Directions {
    fn extend<I: IntoIterator<Item = DirectionOverride>>(&mut self, said: I) {
        for DirectionOverride { class, metric, direction } in said {
            self.set(class, &metric, direction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_of_a_metric_wins_over_its_class() {
        let mut directions = Directions::default();
        assert_eq!(directions.of(Class::Latency, "lat"), Direction::Lower);
        let said = ["lat=higher", "throughput/lat=neither"].map(|text| text.parse::<DirectionOverride>().unwrap());
        directions.extend(said);
        assert_eq!(directions.of(Class::Latency, "lat"), Direction::Higher);
        assert_eq!(directions.of(Class::Latency, "lat@vm2"), Direction::Higher);
        assert_eq!(directions.of(Class::Throughput, "lat"), Direction::Neither);
        assert_eq!(directions.of(Class::Throughput, "iops_sec"), Direction::Higher);
    }

    #[test]
    fn what_somebody_says_of_a_name_holds_in_every_class() {
        let mut of_results = Directions::default();
        of_results.set(Some(Class::Throughput), "score", Direction::Higher);
        let said = ["score=lower".parse::<DirectionOverride>().unwrap()];
        assert_eq!(of_results.with_overrides(&said).of(Class::Throughput, "score"), Direction::Lower);
    }

    #[test]
    fn what_says_no_direction_is_refused() {
        for bad in ["", "lat", "lat=up", "=lower", "odd/lat=lower"] {
            assert!(bad.parse::<DirectionOverride>().is_err(), "{bad}");
        }
    }
}
