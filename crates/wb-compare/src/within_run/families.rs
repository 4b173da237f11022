//! Metrics of several parts that are compared with the same metric of the reference: the rows of a table with a column
//! for each part.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wb_model::{Class, strip_worker};

use super::sides::Row;
use crate::build::{InternedCell, InternedMetric, MetricIndex};
use crate::interner::{Interner, Symbol};

/// The metrics that are compared with the same metric of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetricFamily {
    /// Their identity, in which `*` stands for what differs between them and the reference.
    pub(crate) id: InternedMetric,
    /// The metric of each level, if it has one.
    pub(crate) metrics: Vec<Option<MetricIndex>>,
}

type Axes<'a> = BTreeMap<&'a str, &'a str>;

const DIFFERING: &str = "*";

/// The families of all rows, in the order of their first members.
pub(super) fn families(names: &mut Interner, rows: &[Row], levels: usize) -> Vec<MetricFamily> {
    let mut families: Vec<MetricFamily> = Vec::new();
    // Where counterparts may differ in further parameters, a level may have several metrics for one of the reference.
    let mut positions: HashMap<&(InternedCell, Class, String), Vec<usize>> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        let of_reference = positions.entry(&row.reference).or_default();
        let free = of_reference.iter().copied().find(|family| families[*family].metrics[row.level].is_none());
        let family = free.unwrap_or_else(|| {
            let InternedCell { profile, test, serial, case } = row.reference.0;
            let id = InternedMetric { profile, test, serial, case, ..row.id };
            families.push(MetricFamily { id, metrics: vec![None; levels] });
            of_reference.push(families.len() - 1);
            families.len() - 1
        });
        families[family].metrics[row.level] = Some(MetricIndex(index as u32));
        families[family].id = common_id(names, families[family].id, row.id);
    }
    // The metric of the reference is on another worker.
    for family in &mut families {
        let metric = names.resolve(family.id.metric);
        if strip_worker(metric) != metric {
            let of_any = format!("{}@{DIFFERING}", strip_worker(metric));
            family.id.metric = names.intern(&of_any);
        }
    }
    families
}

fn common_id(names: &mut Interner, one: InternedMetric, other: InternedMetric) -> InternedMetric {
    let mut common = |one: Symbol, other: Symbol| if one == other { one } else { names.intern(DIFFERING) };
    let [profile, test, serial] = [(one.profile, other.profile), (one.test, other.test), (one.serial, other.serial)]
        .map(|(one, other)| common(one, other));
    let case = common_case(names, one.case, other.case);
    InternedMetric { profile, test, serial, case, ..one }
}

/// The axes that two cases have in common; of cases without axes, such as run-perf's, the whole case.
fn common_case(names: &mut Interner, one: Symbol, other: Symbol) -> Symbol {
    if one == other {
        return one;
    }
    let axes = |case: Symbol| names.resolve(case).split(',').map(|axis| axis.split_once('=')).collect();
    let (Some(one), Some(other)): (Option<Axes<'_>>, Option<Axes<'_>>) = (axes(one), axes(other)) else {
        return names.intern(DIFFERING);
    };
    let all: BTreeSet<&str> = one.keys().chain(other.keys()).copied().collect();
    let axis = |axis: &str| match (one.get(axis), other.get(axis)) {
        (Some(value), Some(other)) if value == other => format!("{axis}={value}"),
        _ => format!("{axis}={DIFFERING}"),
    };
    let all: Vec<String> = all.into_iter().map(axis).collect();
    names.intern(&all.join(","))
}
