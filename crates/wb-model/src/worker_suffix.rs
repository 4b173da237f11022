//! Names of what is of one of several workers: `p99@vm2`.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::WorkerName;

pub fn with_worker(name: &str, worker: Option<impl Display>) -> String {
    worker.map_or_else(|| name.to_owned(), |worker| format!("{name}@{worker}"))
}

pub fn strip_worker(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}

/// Merges the values of several workers. A value that some of them lack, or that differs, has its worker in its name.
pub fn merge_workers<'a>(
    each: impl Iterator<Item = (&'a WorkerName, &'a BTreeMap<String, String>)> + Clone,
) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (worker, values) in each.clone() {
        for (name, value) in values {
            let is_same = each.clone().all(|(_, other)| other.get(name) == Some(value));
            all.insert(with_worker(name, (!is_same).then_some(worker)), value.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_appended_and_removed() {
        assert_eq!(with_worker("p99", Some("vm2")), "p99@vm2");
        assert_eq!(with_worker("p99", None::<&str>), "p99");
        assert_eq!([strip_worker("p99@vm2"), strip_worker("p99")], ["p99", "p99"]);
    }

    #[test]
    fn only_values_that_all_workers_share_have_no_worker() {
        let values = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let [a, b] = ["a", "b"].map(|name| WorkerName::new(name).unwrap());
        let (of_a, of_b) =
            (values(&[("isa", "avx2"), ("os", "x"), ("only", "1")]), values(&[("isa", "sse2"), ("os", "x")]));
        let merged = merge_workers([(&a, &of_a), (&b, &of_b)].into_iter());
        assert_eq!(merged, values(&[("isa@a", "avx2"), ("isa@b", "sse2"), ("only@a", "1"), ("os", "x")]));
    }
}
