//! Keys of metrics: `CLASS/METRIC[@WORKER]`.

use std::cmp::Ordering;
use std::fmt;
use std::iter::once;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::ParseIdError;
use crate::{Class, WorkerName, with_worker};

/// Key of a metric of a cell: `latency/p99`, or `latency/p99@vm2` for one of several workers.
///
/// Keys are compared and sorted by their text. The names of imported metrics are arbitrary, so the same text can be that
/// of a name with `@` and that of a name with a worker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct MetricKey {
    /// The class of the metric.
    pub class: Class,
    /// Its name.
    pub name: String,
    /// The worker; absent for the aggregate over all workers.
    pub worker: Option<WorkerName>,
}

impl MetricKey {
    pub fn new(class: Class, name: &str) -> Self {
        Self { class, name: name.to_owned(), worker: None }
    }

    /// The name, with the worker if it has one: `p99@vm2`.
    pub fn full_name(&self) -> String {
        with_worker(&self.name, self.worker.as_ref())
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        let worker = self.worker.iter().flat_map(|worker| once(b'@').chain(worker.as_str().bytes()));
        self.class.as_str().bytes().chain(once(b'/')).chain(self.name.bytes()).chain(worker)
    }
}

impl Ord for MetricKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for MetricKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MetricKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MetricKey {}

impl fmt::Display for MetricKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.class, self.full_name())
    }
}

impl FromStr for MetricKey {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let parse = || {
            let (class, name) = text.split_once('/')?;
            let class = class.parse().ok()?;
            let with_worker = name.rsplit_once('@').and_then(|(name, worker)| Some((name, worker.parse().ok()?)));
            Some(match with_worker {
                Some((name, worker)) => Self { class, name: name.to_owned(), worker: Some(worker) },
                None => Self::new(class, name),
            })
        };
        parse().ok_or_else(|| ParseIdError {
            text: text.to_owned(),
            noun: "metric",
            expected: "CLASS/METRIC or CLASS/METRIC@WORKER",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> MetricKey {
        text.parse().unwrap()
    }

    #[test]
    fn a_worker_follows_the_name() {
        let of_worker = key("latency/p99.9@vm2");
        assert_eq!((of_worker.class, of_worker.name.as_str()), (Class::Latency, "p99.9"));
        assert_eq!(of_worker.worker, Some(WorkerName::new("vm2").unwrap()));
        assert_eq!(key("latency/p99").worker, None);
    }

    #[test]
    fn an_invalid_key_is_refused() {
        for bad in ["", "iops", "odd/iops", "/iops"] {
            assert!(bad.parse::<MetricKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_with_an_at_sign_is_found_by_its_text() {
        let name = "hits@L1";
        assert_eq!(key("check/hits@L1"), MetricKey::new(Class::Check, name));
        assert_eq!(key("check/hits@L1 cache").name, "hits@L1 cache");
    }

    proptest! {
        #[test]
        fn keys_survive_a_round_trip_and_sort_as_their_texts(
            pair in proptest::array::uniform2((0..4usize, "[a-c./@ -]{0,4}", proptest::option::of("[a-c.-]{1,3}"))),
        ) {
            let keys = pair.map(|(class, name, worker)| MetricKey {
                class: [Class::Throughput, Class::Latency, Class::Resource, Class::Check][class],
                name,
                worker: worker.and_then(|name| WorkerName::new(name).ok()),
            });
            for key in &keys {
                prop_assert_eq!(&key.to_string().parse::<MetricKey>().unwrap(), key);
            }
            prop_assert_eq!(keys[0].cmp(&keys[1]), keys[0].to_string().cmp(&keys[1].to_string()));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<MetricKey>();
        }
    }
}
