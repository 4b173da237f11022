//! Parameters that differ between builds.

use std::collections::{BTreeMap, BTreeSet};

use wb_results::comparison::ParamDifference;

use crate::build::{Build, Builds, MetricIndex};

pub(super) fn last_param_differences(builds: &Builds, row: MetricIndex) -> Vec<ParamDifference> {
    let [reference, .., judged] = builds.list() else { return Vec::new() };
    param_differences(builds, [reference, judged], row)
}

pub(super) fn param_differences(
    builds: &Builds,
    [reference, judged]: [&Build; 2],
    row: MetricIndex,
) -> Vec<ParamDifference> {
    let (Some(reference), Some(judged)) = (reference.readings(row).next(), judged.readings(row).next()) else {
        return Vec::new();
    };
    if reference.params == judged.params {
        return Vec::new();
    }
    let all = |id| builds.params(id).collect::<BTreeMap<&str, &str>>();
    let (reference, judged) = (all(reference.params), all(judged.params));
    let names: BTreeSet<&str> = reference.keys().chain(judged.keys()).copied().collect();
    let is_different = |name: &&str| reference.get(name) != judged.get(name) && !builds.is_ignored(row, name);
    let differing = names.into_iter().filter(is_different);
    let difference = |name: &str| ParamDifference {
        name: name.to_owned(),
        before: reference.get(name).map(|value| (*value).to_owned()),
        after: judged.get(name).map(|value| (*value).to_owned()),
    };
    differing.map(difference).collect()
}
