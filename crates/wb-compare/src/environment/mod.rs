//! The differences between the environments of two builds: the recorded state of their machines.
//!
//! Start with [`differences()`]; [`values`] flattens recorded sections into comparable values, and [`changes()`] pairs
//! them.

mod changes;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use wb_results::comparison::{Environments, MachineEnvironment, MachineRef, SectionDifference, ValueChange};

pub(crate) use changes::changes;
pub(crate) use values::Values;

/// The section with transient values, such as the load. It is not compared.
const TRANSIENT: &str = "transient";

/// The section of the difference that a machine is missing in one build.
const MACHINE: &str = "machine";

/// The key with the identity of a boot. Another boot of a system, or a fresh guest, is no difference of its state.
const BOOT: &str = "boot-id";

fn is_compared(name: &str) -> bool {
    name != TRANSIENT && name != BOOT && !name.ends_with("_raw")
}

/// The differences between two builds, given by their runs. Equal differences of several machines are merged.
pub fn differences(before: &[&Environments], after: &[&Environments]) -> Vec<SectionDifference> {
    let profiles: BTreeSet<&String> = before.iter().chain(after).flat_map(|run| run.keys()).collect();
    let mut differences = Vec::new();
    for profile in profiles {
        let [before, after] =
            [before, after].map(|runs| runs.iter().filter_map(|run| run.get(profile)).collect::<Vec<_>>());
        // If one build has no record, nothing is known to have changed.
        if before.is_empty() || after.is_empty() {
            continue;
        }
        let [before, after] =
            [before, after].map(|runs| ComparableMachines::from_runs(runs.into_iter().map(Vec::as_slice)));
        for MachineDifference { worker, sections } in before.differences(&after) {
            let machine = MachineRef { profile: profile.clone(), worker };
            for (section, changes) in sections {
                add_difference(&mut differences, &machine, section, changes);
            }
        }
    }
    differences
}

fn add_difference(
    differences: &mut Vec<SectionDifference>,
    machine: &MachineRef,
    section: String,
    changes: Vec<ValueChange>,
) {
    match differences.iter_mut().find(|other| other.section == section && other.changes == changes) {
        Some(equal) => equal.machines.push(machine.clone()),
        None => differences.push(SectionDifference { machines: vec![machine.clone()], section, changes }),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineDifference {
    /// `None` if both builds have one machine.
    pub worker: Option<String>,
    pub sections: Vec<(String, Vec<ValueChange>)>,
}

/// The machines of one profile, with their values by section and name.
#[derive(Debug, Default)]
pub struct ComparableMachines(Vec<ComparableMachine>);

/// A machine, with the values that it has in any run of a build.
#[derive(Debug)]
struct ComparableMachine {
    worker: Option<String>,
    sections: BTreeMap<String, Values>,
}

impl ComparableMachines {
    pub fn from_run(machines: &[MachineEnvironment]) -> Self {
        Self::from_runs([machines])
    }

    /// The machines of all runs of a build. Machines of the same name are merged. A machine without a name is merged with
    /// the first one of the previous runs that its run does not name, and vice versa.
    fn from_runs<'a>(runs: impl IntoIterator<Item = &'a [MachineEnvironment]>) -> Self {
        let mut merged: Vec<ComparableMachine> = Vec::new();
        for run in runs {
            let has_name_in_run =
                |worker: &Option<String>| worker.is_some() && run.iter().any(|machine| machine.worker == *worker);
            let mut unmatched: Vec<usize> =
                (0..merged.len()).filter(|index| !has_name_in_run(&merged[*index].worker)).collect();
            for machine in run {
                let has_same_name =
                    |other: &ComparableMachine| machine.worker.is_some() && other.worker == machine.worker;
                let index = merged.iter().position(has_same_name).or_else(|| {
                    let is_candidate = |index: &usize| machine.worker.is_none() || merged[*index].worker.is_none();
                    let position = unmatched.iter().position(is_candidate)?;
                    Some(unmatched.remove(position))
                });
                let index = index.unwrap_or_else(|| {
                    merged.push(ComparableMachine { worker: None, sections: BTreeMap::new() });
                    merged.len() - 1
                });
                let ComparableMachine { worker, sections } = &mut merged[index];
                *worker = worker.take().or_else(|| machine.worker.clone());
                for (name, section) in machine.sections.iter().filter(|(name, _)| is_compared(name)) {
                    values::collect(section, sections.entry(name.clone()).or_default());
                }
            }
        }
        Self(merged)
    }

    /// The differences by machine. Machines of the same name are paired, the others in recorded order.
    pub fn differences(&self, other: &Self) -> Vec<MachineDifference> {
        let mut unpaired_before: Vec<&ComparableMachine> = Vec::new();
        let mut unpaired_after: Vec<&ComparableMachine> = other.0.iter().collect();
        let mut pairs = Vec::new();
        for machine in &self.0 {
            let matching_index =
                unpaired_after.iter().position(|other| machine.worker.is_some() && other.worker == machine.worker);
            match matching_index {
                Some(index) => pairs.push((Some(machine), Some(unpaired_after.remove(index)))),
                None => unpaired_before.push(machine),
            }
        }
        let unpaired = unpaired_before.len().max(unpaired_after.len());
        pairs.extend(
            (0..unpaired).map(|index| (unpaired_before.get(index).copied(), unpaired_after.get(index).copied())),
        );
        let has_multiple_machines = self.0.len().max(other.0.len()) > 1;
        let difference =
            |(index, (before, after)): (usize, (Option<&ComparableMachine>, Option<&ComparableMachine>))| {
                let worker = |machine: Option<&ComparableMachine>| machine.and_then(|machine| machine.worker.clone());
                let name = worker(before).or_else(|| worker(after)).unwrap_or_else(|| format!("machine {}", index + 1));
                let sections = match (before, after) {
                    (Some(before), Some(after)) => section_changes(&before.sections, &after.sections),
                    _ => {
                        let name_if_present = |machine: Option<&ComparableMachine>| machine.map(|_| name.clone());
                        let change = ValueChange::new(&name, name_if_present(before), name_if_present(after));
                        vec![(MACHINE.to_owned(), vec![change])]
                    }
                };
                MachineDifference { worker: has_multiple_machines.then_some(name), sections }
            };
        let differences = pairs.into_iter().enumerate().map(difference);
        differences.filter(|difference| !difference.sections.is_empty()).collect()
    }
}

fn section_changes(
    before: &BTreeMap<String, Values>,
    after: &BTreeMap<String, Values>,
) -> Vec<(String, Vec<ValueChange>)> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let no_values = Values::new();
    let changes_of = |name: &String| {
        let [before, after] = [before, after].map(|sections| sections.get(name).unwrap_or(&no_values));
        (name.clone(), changes(before, after))
    };
    names.into_iter().map(changes_of).filter(|(_, changes)| !changes.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(worker: Option<&str>, sections: Value) -> MachineEnvironment {
        let sections = serde_json::from_value(sections).unwrap();
        MachineEnvironment { worker: worker.map(str::to_owned), sections }
    }

    fn environments(machines: Vec<MachineEnvironment>) -> Environments {
        Environments::from([("Tuned".to_owned(), machines)])
    }

    fn describe_differences(before: &[&Environments], after: &[&Environments]) -> Vec<String> {
        let change = |change: &ValueChange| {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
            format!("{} {} → {}", change.name, value(&change.before), value(&change.after))
        };
        let machine =
            |machine: &MachineRef| format!("{}@{}", machine.profile, machine.worker.as_deref().unwrap_or_default());
        let describe = |difference: SectionDifference| {
            let machines: Vec<String> = difference.machines.iter().map(machine).collect();
            let changes: Vec<String> = difference.changes.iter().map(change).collect();
            format!("{} {}: {}", machines.join(" "), difference.section, changes.join(", "))
        };
        differences(before, after).into_iter().map(describe).collect()
    }

    #[test]
    fn transient_and_raw_values_are_not_compared() {
        let with = |count: u32| {
            let nested = json!({"governor": "performance", "governor_raw": count});
            environments(vec![machine(None, json!({"transient": {"load": count}, "kernel_raw": count, "cpu": nested}))])
        };
        assert_eq!(describe_differences(&[&with(1)], &[&with(2)]), [""; 0]);
    }

    #[test]
    fn another_boot_and_a_fresh_guest_are_no_difference() {
        let with = |boot: &str, release: &str| {
            environments(vec![machine(Some("vm1"), json!({"kernel": {"boot-id": boot, "release": release}}))])
        };
        assert_eq!(describe_differences(&[&with("a", "6.1")], &[&with("b", "6.1")]), [""; 0]);
        assert_eq!(
            describe_differences(&[&with("a", "6.1")], &[&with("b", "6.12")]),
            ["Tuned@ kernel: release 6.1 → 6.12"]
        );
    }

    #[test]
    fn machines_are_paired_by_name_and_equal_differences_are_merged() {
        let with = |kernel: &str, names: [&str; 2]| {
            environments(names.map(|name| machine(Some(name), json!({"kernel": {"release": kernel}}))).to_vec())
        };
        let (old, new) = (with("5.0.9", ["vm1", "vm2"]), with("5.6.13", ["vm2", "vm1"]));
        assert_eq!(describe_differences(&[&old], &[&new]), ["Tuned@vm1 Tuned@vm2 kernel: release 5.0.9 → 5.6.13"]);
        let alone = environments(old["Tuned"][..1].to_vec());
        assert_eq!(describe_differences(&[&old], &[&alone]), ["Tuned@vm2 machine: vm2 vm2 → -"]);
    }

    #[test]
    fn a_machine_without_a_name_is_merged_with_one_that_its_run_does_not_name() {
        let with = |machines: &[(Option<&str>, &str)]| {
            let machine = |(worker, cpu): &(Option<&str>, &str)| machine(*worker, json!({"cpu": {"model": cpu}}));
            environments(machines.iter().map(machine).collect())
        };
        let named = with(&[(Some("vm1"), "a"), (Some("vm2"), "b")]);
        let partly_named = with(&[(Some("vm2"), "b"), (None, "a")]);
        assert_eq!(describe_differences(&[&named, &partly_named], &[&named]), [""; 0]);
        assert_eq!(describe_differences(&[&partly_named, &named], &[&named]), [""; 0]);
        let new_name = with(&[(Some("vm2"), "b"), (Some("vm3"), "c")]);
        let expected = ["Tuned@vm3 machine: vm3 vm3 → -"];
        assert_eq!(describe_differences(&[&named, &new_name], &[&named]), expected);
    }

    #[test]
    fn runs_of_a_build_that_differ_among_themselves_show_all_values() {
        let with = |kernel: &str| environments(vec![machine(None, json!({"kernel": {"release": kernel}}))]);
        let runs = [with("6.1"), with("6.2"), with("6.1")];
        let new = with("6.2");
        assert_eq!(
            describe_differences(&[&runs[0], &runs[1], &runs[2]], &[&new]),
            ["Tuned@ kernel: release 6.1 | 6.2 → 6.2"]
        );
    }
}
