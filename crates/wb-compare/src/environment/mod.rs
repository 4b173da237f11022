//! Environments: the recorded state of a run's machines, and the differences between two of them.
//!
//! Start with [`differences()`]; [`values`] flattens recorded sections into comparable values, and [`changes`] pairs
//! them.

mod changes;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use changes::ValueChange;
pub(crate) use changes::changes;
use values::Values;

/// The machines of a run, by profile or `World`, run-perf's name for hosts before any profile.
pub type Environments = BTreeMap<String, Vec<MachineEnvironment>>;

/// The environment of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineEnvironment {
    /// The worker's name; `None` if the record has no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The recorded values, by section: `kernel`, `packages`, `profile`, … Keys that end in `_raw` have the original of
    /// a filtered value and are not compared.
    pub sections: BTreeMap<String, Value>,
}

/// A section in which the machines of two builds differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SectionDifference {
    /// The machines with this difference.
    pub machines: Vec<MachineRef>,
    /// The section: `kernel`, `packages`, `profile`, …
    pub section: String,
    /// The differing values.
    pub changes: Vec<ValueChange>,
}

/// A reference to a machine of an environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MachineRef {
    /// `World`, or the profile.
    pub environment: String,
    /// The worker; `None` if the environment has one machine on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// The section with volatile values, which is not compared.
const VOLATILE: &str = "transient";

/// The section that reports a machine that is missing on one side.
const MACHINE: &str = "machine";

/// Whether a section or key is compared.
fn is_compared(name: &str) -> bool {
    name != VOLATILE && !name.ends_with("_raw")
}

/// The differences between the environments of two builds, each given by those of its runs. Equal differences of
/// several machines are merged.
pub fn differences(src: &[&Environments], dst: &[&Environments]) -> Vec<SectionDifference> {
    let names: BTreeSet<&String> = src.iter().chain(dst).flat_map(|run| run.keys()).collect();
    let mut all = Vec::new();
    for name in names {
        // Without a record on one side, nothing is known to have changed.
        let [src, dst] = [src, dst].map(|runs| runs.iter().filter_map(|run| run.get(name)).collect::<Vec<_>>());
        if src.is_empty() || dst.is_empty() {
            continue;
        }
        let [src, dst] = [src, dst].map(|runs| ComparableMachines::of_runs(runs.into_iter().map(Vec::as_slice)));
        for MachineDifference { worker, sections } in src.differences(&dst) {
            let place = MachineRef { environment: name.clone(), worker };
            for (section, changes) in sections {
                add_difference(&mut all, &place, section, changes);
            }
        }
    }
    all
}

fn add_difference(all: &mut Vec<SectionDifference>, place: &MachineRef, section: String, changes: Vec<ValueChange>) {
    match all.iter_mut().find(|other| other.section == section && other.changes == changes) {
        Some(same) => same.machines.push(place.clone()),
        None => all.push(SectionDifference { machines: vec![place.clone()], section, changes }),
    }
}

/// The differences of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineDifference {
    /// The worker; `None` if there is one machine on both sides.
    pub worker: Option<String>,
    /// The differing sections with their changes.
    pub sections: Vec<(String, Vec<ValueChange>)>,
}

/// The machines of an environment, as values by section and name.
#[derive(Debug, Default)]
pub struct ComparableMachines(Vec<ComparableMachine>);

/// The values of a machine over all runs of a build.
#[derive(Debug)]
struct ComparableMachine {
    worker: Option<String>,
    sections: BTreeMap<String, Values>,
}

impl ComparableMachines {
    /// The machines of one run.
    pub fn of(machines: &[MachineEnvironment]) -> Self {
        Self::of_runs([machines])
    }

    /// The machines of all runs of a build.
    fn of_runs<'a>(runs: impl IntoIterator<Item = &'a [MachineEnvironment]>) -> Self {
        let mut all: Vec<ComparableMachine> = Vec::new();
        for machines in runs {
            for (at, machine) in machines.iter().enumerate() {
                let index = match &machine.worker {
                    Some(worker) => all.iter().position(|other| other.worker.as_ref() == Some(worker)),
                    None => (at < all.len()).then_some(at),
                };
                let index = index.unwrap_or_else(|| {
                    all.push(ComparableMachine { worker: machine.worker.clone(), sections: BTreeMap::new() });
                    all.len() - 1
                });
                for (name, section) in machine.sections.iter().filter(|(name, _)| is_compared(name)) {
                    values::collect(section, all[index].sections.entry(name.clone()).or_default());
                }
            }
        }
        Self(all)
    }

    /// The differences by machine. Machines of the same name are paired, the others in recorded order.
    pub fn differences(&self, other: &Self) -> Vec<MachineDifference> {
        let (mut old, mut new): (Vec<&ComparableMachine>, Vec<&ComparableMachine>) =
            (Vec::new(), other.0.iter().collect());
        let mut pairs = Vec::new();
        for machine in &self.0 {
            let same = new.iter().position(|other| machine.worker.is_some() && other.worker == machine.worker);
            match same {
                Some(at) => pairs.push((Some(machine), Some(new.remove(at)))),
                None => old.push(machine),
            }
        }
        let unpaired = old.len().max(new.len());
        pairs.extend((0..unpaired).map(|at| (old.get(at).copied(), new.get(at).copied())));
        let several = self.0.len().max(other.0.len()) > 1;
        let difference = |(number, (src, dst)): (usize, (Option<&ComparableMachine>, Option<&ComparableMachine>))| {
            let name = |machine: Option<&ComparableMachine>| machine.and_then(|machine| machine.worker.clone());
            let name = name(src).or_else(|| name(dst)).unwrap_or_else(|| format!("machine {}", number + 1));
            let sections = match (src, dst) {
                (Some(src), Some(dst)) => section_changes(&src.sections, &dst.sections),
                _ => {
                    let present = |machine: Option<&ComparableMachine>| machine.map(|_| name.clone());
                    vec![(MACHINE.to_owned(), vec![ValueChange::new(&name, present(src), present(dst))])]
                }
            };
            MachineDifference { worker: several.then_some(name), sections }
        };
        let all = pairs.into_iter().enumerate().map(difference);
        all.filter(|difference| !difference.sections.is_empty()).collect()
    }
}

fn section_changes(src: &BTreeMap<String, Values>, dst: &BTreeMap<String, Values>) -> Vec<(String, Vec<ValueChange>)> {
    let names: BTreeSet<&String> = src.keys().chain(dst.keys()).collect();
    let none = Values::new();
    let of = |name: &String| {
        let [src, dst] = [src, dst].map(|sections| sections.get(name).unwrap_or(&none));
        (name.clone(), changes(src, dst))
    };
    names.into_iter().map(of).filter(|(_, changes)| !changes.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(worker: Option<&str>, sections: Value) -> MachineEnvironment {
        let sections = serde_json::from_value(sections).unwrap();
        MachineEnvironment { worker: worker.map(str::to_owned), sections }
    }

    fn environments(machines: Vec<MachineEnvironment>) -> Environments {
        Environments::from([("Tuned".to_owned(), machines)])
    }

    fn described(src: &[&Environments], dst: &[&Environments]) -> Vec<String> {
        let change = |change: &ValueChange| {
            let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
            format!("{} {} → {}", change.name, side(&change.before), side(&change.after))
        };
        let place =
            |place: &MachineRef| format!("{}@{}", place.environment, place.worker.as_deref().unwrap_or_default());
        let section = |all: SectionDifference| {
            let places: Vec<String> = all.machines.iter().map(place).collect();
            let changes: Vec<String> = all.changes.iter().map(change).collect();
            format!("{} {}: {}", places.join(" "), all.section, changes.join(", "))
        };
        differences(src, dst).into_iter().map(section).collect()
    }

    #[test]
    fn momentary_and_raw_keys_are_not_compared() {
        let with = |count: u32| {
            let nested = json!({"governor": "performance", "governor_raw": count});
            environments(vec![machine(None, json!({"transient": {"load": count}, "kernel_raw": count, "cpu": nested}))])
        };
        assert_eq!(described(&[&with(1)], &[&with(2)]), [""; 0]);
    }

    #[test]
    fn machines_are_paired_by_name_and_equal_differences_are_merged() {
        let with = |kernel: &str, names: [&str; 2]| {
            environments(names.map(|name| machine(Some(name), json!({"kernel": {"release": kernel}}))).to_vec())
        };
        let (old, new) = (with("5.0.9", ["vm1", "vm2"]), with("5.6.13", ["vm2", "vm1"]));
        assert_eq!(described(&[&old], &[&new]), ["Tuned@vm1 Tuned@vm2 kernel: release 5.0.9 → 5.6.13"]);
        let alone = environments(old["Tuned"][..1].to_vec());
        assert_eq!(described(&[&old], &[&alone]), ["Tuned@vm2 machine: vm2 vm2 → -"]);
    }

    #[test]
    fn runs_of_a_build_that_differ_among_themselves_show_all_values() {
        let with = |kernel: &str| environments(vec![machine(None, json!({"kernel": {"release": kernel}}))]);
        let runs = [with("6.1"), with("6.2"), with("6.1")];
        let new = with("6.2");
        assert_eq!(described(&[&runs[0], &runs[1], &runs[2]], &[&new]), ["Tuned@ kernel: release 6.1 | 6.2 → 6.2"]);
    }
}
