//! Pairs metrics whose class changed between the builds. A comparison then names the change, instead of one metric that
//! is missing and another one that is new.

use std::collections::HashMap;

use crate::build::{Build, Builds, InternedMetric, METRIC_CLASS, MetricIndex, MetricReading, ParamSetId};
use crate::interner::Symbol;

/// Moves the readings of later builds to the first build's metric of the same name but another class, if that is all
/// that the first build has of the name in the cell, and the later build has none of its class. Both sides get their
/// class as a parameter, which they then differ in.
pub(super) fn pair_changed_classes(builds: &mut Builds) {
    let mut by_name: HashMap<InternedMetric, Vec<usize>> = HashMap::new();
    for (row, metric) in builds.rows.iter().enumerate() {
        by_name.entry(InternedMetric { class: wb_model::Class::Check, ..*metric }).or_default().push(row);
    }
    let mut several: Vec<Vec<usize>> = by_name.into_values().filter(|rows| rows.len() > 1).collect();
    several.sort();
    for rows in several {
        let [first, later @ ..] = &builds.list[..] else { return };
        let of_first: Vec<usize> = rows.iter().copied().filter(|row| has(first, *row)).collect();
        let [to] = of_first[..] else { continue };
        let pairs = later.iter().enumerate().filter_map(|(index, build)| {
            let of_later: Vec<usize> = rows.iter().copied().filter(|row| has(build, *row)).collect();
            match of_later[..] {
                [from] if from != to => Some((index + 1, from)),
                _ => None,
            }
        });
        let pairs: Vec<(usize, usize)> = pairs.collect();
        for (build, from) in &pairs {
            move_readings(builds, *build, *from, to);
        }
        if !pairs.is_empty() {
            move_readings(builds, 0, to, to);
        }
    }
}

fn has(build: &Build, row: usize) -> bool {
    build.readings(MetricIndex(row as u32)).next().is_some()
}

/// Moves the readings of a metric in a build to another row, with the class of `from` as a parameter.
fn move_readings(builds: &mut Builds, build: usize, from: usize, to: usize) {
    let class = builds.rows[from].class.as_str();
    let class = (builds.names.intern(METRIC_CLASS), builds.names.intern(class));
    for run in 0..builds.list[build].runs.len() {
        let readings = &mut builds.list[build].runs[run].readings;
        let Some(reading) = readings.get_mut(from).and_then(Option::take) else { continue };
        let params = with_param(builds, reading.params, class);
        let readings = &mut builds.list[build].runs[run].readings;
        if readings.len() <= to {
            readings.resize(to + 1, None);
        }
        readings[to] = Some(MetricReading { params, ..reading });
    }
}

/// A set of parameters with another one; both are sorted by name.
fn with_param(builds: &mut Builds, ParamSetId(id): ParamSetId, param: (Symbol, Symbol)) -> ParamSetId {
    let mut params = builds.params[id as usize].to_vec();
    params.push(param);
    params.sort_by(|(one, _), (other, _)| builds.names.resolve(*one).cmp(builds.names.resolve(*other)));
    ParamSetId(builds.params.insert_full(params.into_boxed_slice()).0 as u32)
}
