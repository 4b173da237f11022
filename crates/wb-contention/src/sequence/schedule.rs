//! The order of a sequence: benches as requested, each after those whose answers it needs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wb_results::contention::{Bench, Instance, InstanceLabel};

use super::{Job, Origin};
use crate::Parameters;
use crate::spec::{BenchSpec, Dither, IocostQosProperties, Properties};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("duplicate id `{id}` of {bench}: expected a unique one for each instance")]
    DuplicateId { bench: Bench, id: String },
}

/// Orders the requested benches. Where one needs an answer that is neither in force nor given by an earlier one, a
/// later one that gives it is moved before it, or else one with default properties is added. Fails if ids are not
/// unique.
pub fn schedule(specs: &[BenchSpec], parameters: &Parameters) -> Result<Vec<Job>, ScheduleError> {
    let mut ids = BTreeSet::new();
    for spec in specs {
        let Some(id) = &spec.id else { continue };
        if !ids.insert((spec.bench(), id)) {
            return Err(ScheduleError::DuplicateId { bench: spec.bench(), id: id.clone() });
        }
    }
    let mut given = BTreeSet::new();
    given.extend(parameters.iocost.is_some().then_some(Bench::IocostParams));
    given.extend(parameters.hashd.is_some().then_some(Bench::HashdParams));
    let mut scheduler = Scheduler { waiting: specs.iter().cloned().collect(), ordered: Vec::new(), given };
    while let Some(spec) = scheduler.waiting.pop_front() {
        scheduler.add(spec, Origin::Requested);
    }
    Ok(name_instances(scheduler.ordered))
}

struct Scheduler {
    waiting: VecDeque<BenchSpec>,
    ordered: Vec<(BenchSpec, Origin)>,
    /// The benches whose answers are known when the next one begins.
    given: BTreeSet<Bench>,
}

impl Scheduler {
    fn add(&mut self, spec: BenchSpec, origin: Origin) {
        let bench = spec.bench();
        for required in requirements(bench) {
            if self.given.contains(required) {
                continue;
            }
            let later = self.waiting.iter().position(|spec| gives(spec) == Some(*required));
            match later.and_then(|position| self.waiting.remove(position)) {
                Some(later) => self.add(later, Origin::Requested),
                None => self.add(default_spec(*required, bench), Origin::RequiredBy(bench)),
            }
        }
        self.given.extend(gives(&spec));
        self.ordered.push((spec, origin));
    }
}

/// The benches whose answers a bench needs. `iocost-qos` measures the protection of `storage`'s footprint, which is
/// hashd's protection at full load.
fn requirements(bench: Bench) -> &'static [Bench] {
    match bench {
        Bench::IocostParams | Bench::HashdParams | Bench::Storage => &[],
        Bench::IocostQos | Bench::Protection => &[Bench::IocostParams, Bench::HashdParams],
        Bench::IocostTune => &[Bench::IocostQos],
    }
}

/// The bench whose answer later ones have when a bench has ended.
fn gives(spec: &BenchSpec) -> Option<Bench> {
    match &spec.properties {
        Properties::IocostParams(properties) => (properties.apply || properties.commit).then_some(Bench::IocostParams),
        Properties::HashdParams(properties) => (properties.apply || properties.commit).then_some(Bench::HashdParams),
        Properties::Storage(properties) => (properties.apply || properties.commit).then_some(Bench::HashdParams),
        Properties::IocostQos(_) => Some(Bench::IocostQos),
        Properties::IocostTune(_) | Properties::Protection(_) => None,
    }
}

/// The bench that is added for another. `iocost-tune` needs many vrates, which several runs should not share.
fn default_spec(bench: Bench, required_by: Bench) -> BenchSpec {
    match (bench, required_by) {
        (Bench::IocostQos, Bench::IocostTune) => BenchSpec {
            properties: Properties::IocostQos(IocostQosProperties {
                dither: Some(Dither::HalfStep),
                vrate_max: 125.0,
                vrate_intvs: 25,
                ..IocostQosProperties::default()
            }),
            ..BenchSpec::new(bench)
        },
        _ => BenchSpec::new(bench),
    }
}

fn name_instances(ordered: Vec<(BenchSpec, Origin)>) -> Vec<Job> {
    let mut positions: BTreeMap<Bench, u32> = BTreeMap::new();
    let mut job = |(spec, origin): (BenchSpec, Origin)| {
        let bench = spec.bench();
        let label = match &spec.id {
            Some(id) => InstanceLabel::Id(id.clone()),
            None => {
                let position = positions.entry(bench).or_default();
                *position += 1;
                InstanceLabel::Position(*position)
            }
        };
        Job { instance: Instance { bench, label }, spec, origin }
    };
    ordered.into_iter().map(&mut job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(specs: &str, parameters: &Parameters) -> String {
        let specs: Vec<BenchSpec> = specs.split(' ').map(|spec| BenchSpec::parse(spec).unwrap()).collect();
        let name = |job: &Job| match job.origin {
            Origin::Requested => job.instance.to_string(),
            Origin::RequiredBy(bench) => format!("({} for {bench})", job.instance),
        };
        schedule(&specs, parameters).unwrap().iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn missing_prerequisites_are_added_before_the_bench_that_needs_them() {
        let none = Parameters::default();
        assert_eq!(
            order("iocost-tune", &none),
            "(iocost-params for iocost-qos) (hashd-params for iocost-qos) (iocost-qos for iocost-tune) iocost-tune"
        );
        assert_eq!(order("storage iocost-params", &none), "storage iocost-params");
    }

    #[test]
    fn requested_benches_serve_as_prerequisites_wherever_they_are() {
        let none = Parameters::default();
        assert_eq!(order("iocost-params hashd-params iocost-qos", &none), "iocost-params hashd-params iocost-qos");
        assert_eq!(
            order("protection hashd-params iocost-params:id=p", &none),
            "iocost-params@p hashd-params protection"
        );
        assert_eq!(order("storage:apply protection", &none), "storage (iocost-params for protection) protection");
        assert_eq!(
            order("iocost-params:apply=false,commit=false hashd-params protection", &none),
            "iocost-params hashd-params (iocost-params.2 for protection) protection"
        );
    }

    #[test]
    fn instances_are_numbered_or_named_by_their_ids() {
        let none = Parameters::default();
        assert_eq!(order("storage storage:id=a storage:id=b storage", &none), "storage storage@a storage@b storage.2");
        let twice = ["storage:id=a", "storage:id=a"].map(|spec| BenchSpec::parse(spec).unwrap());
        let error = schedule(&twice, &none).unwrap_err();
        assert_eq!(error.to_string(), "duplicate id `a` of storage: expected a unique one for each instance");
        let different = ["storage:id=a", "hashd-params:id=a"].map(|spec| BenchSpec::parse(spec).unwrap());
        assert!(schedule(&different, &none).is_ok());
    }
}
