//! The better direction of every metric.

use std::collections::BTreeMap;
use std::str::FromStr;

use wb_model::{Class, Direction, MetricKey, strip_worker};

/// Whether metrics of a class say how fast something is, so that a better one is faster.
pub fn is_speed(class: Class) -> bool {
    matches!(class, Class::Throughput | Class::Latency)
}

/// The better direction of metrics: by class (throughput higher; latency, resource lower; check neither), unless set
/// for the metric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directions {
    by_metric: BTreeMap<String, Direction>,
    by_key: BTreeMap<MetricKey, Direction>,
}

impl Directions {
    /// Sets the direction of a metric in one class or, without a class, in all. A setting with a class takes precedence
    /// over one without; of two alike the later one applies.
    pub fn set(&mut self, class: Option<Class>, metric: &str, direction: Direction) {
        match class {
            Some(class) => self.by_key.insert(MetricKey::new(class, metric), direction),
            None => self.by_metric.insert(metric.to_owned(), direction),
        };
    }

    /// Adds overrides of the user, which take precedence; an override without a class applies to every class.
    #[must_use]
    pub fn with_overrides(mut self, overrides: &[DirectionOverride]) -> Self {
        for of in overrides.iter().filter(|of| of.class.is_none()) {
            self.by_key.retain(|key, _| key.name != of.metric);
        }
        self.extend(overrides.iter().cloned());
        self
    }

    /// The better direction of a metric, independent of its worker.
    pub fn of(&self, class: Class, metric: &str) -> Direction {
        if self.by_metric.is_empty() && self.by_key.is_empty() {
            return default_for_class(class);
        }
        let metric = strip_worker(metric);
        let direction = self.by_key.get(&MetricKey::new(class, metric)).or_else(|| self.by_metric.get(metric));
        direction.copied().unwrap_or_else(|| default_for_class(class))
    }
}

fn default_for_class(class: Class) -> Direction {
    match class {
        Class::Throughput => Direction::Higher,
        Class::Latency | Class::Resource => Direction::Lower,
        Class::Check => Direction::Neither,
    }
}

/// A direction override, as given on the command line: `lat=lower`, `latency/score=higher`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionOverride {
    /// `None` for all classes.
    pub class: Option<Class>,
    pub metric: String,
    pub direction: Direction,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid direction `{0}`: expected METRIC=higher, METRIC=lower or METRIC=neither, with METRIC as in `lat` or `latency/lat`"
)]
pub struct ParseDirectionError(String);

impl FromStr for DirectionOverride {
    type Err = ParseDirectionError;

    fn from_str(text: &str) -> Result<Self, ParseDirectionError> {
        let parse = || {
            let (metric, direction) = text.rsplit_once('=')?;
            let direction = Direction::ALL.into_iter().find(|candidate| candidate.as_str() == direction)?;
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
    fn extend<I: IntoIterator<Item = DirectionOverride>>(&mut self, overrides: I) {
        for DirectionOverride { class, metric, direction } in overrides {
            self.set(class, &metric, direction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metrics_direction_takes_precedence_over_its_class() {
        let mut directions = Directions::default();
        assert_eq!(directions.of(Class::Latency, "lat"), Direction::Lower);
        let overrides = ["lat=higher", "throughput/lat=neither"].map(|text| text.parse::<DirectionOverride>().unwrap());
        directions.extend(overrides);
        assert_eq!(directions.of(Class::Latency, "lat"), Direction::Higher);
        assert_eq!(directions.of(Class::Latency, "lat@vm2"), Direction::Higher);
        assert_eq!(directions.of(Class::Throughput, "lat"), Direction::Neither);
        assert_eq!(directions.of(Class::Throughput, "iops_sec"), Direction::Higher);
    }

    #[test]
    fn an_override_without_a_class_applies_to_every_class() {
        let mut of_results = Directions::default();
        of_results.set(Some(Class::Throughput), "score", Direction::Higher);
        let overrides = ["score=lower".parse::<DirectionOverride>().unwrap()];
        assert_eq!(of_results.with_overrides(&overrides).of(Class::Throughput, "score"), Direction::Lower);
    }

    #[test]
    fn an_invalid_direction_is_refused() {
        for bad in ["", "lat", "lat=up", "=lower", "odd/lat=lower"] {
            assert!(bad.parse::<DirectionOverride>().is_err(), "{bad}");
        }
    }
}
