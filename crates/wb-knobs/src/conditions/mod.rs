//! The conditions, each in a small file with its like, and the list of them all.

pub mod disk;
pub mod isolation;
pub mod load;
pub mod machine;
pub mod maintenance;
pub mod power;
pub mod pressure;

use crate::Condition;

/// All conditions, in the order they are listed.
pub fn all() -> &'static [&'static dyn Condition] {
    &[
        &load::OtherProcesses,
        &load::LoadAverage,
        &load::Steal,
        &pressure::Pressure,
        &pressure::AvailableMemory,
        &pressure::CpuQuota,
        &machine::VirtualMachine,
        &machine::Emulation,
        &machine::VirtualClock,
        &power::Throttling,
        &power::Battery,
        &disk::DiskSpace,
        &maintenance::MaintenanceJobs,
        &maintenance::ScheduledJobs,
        &isolation::Isolation,
        &isolation::Mitigations,
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_condition_has_a_name_of_its_own_and_says_why() {
        let names: BTreeSet<_> = all().iter().map(|condition| condition.name()).collect();
        assert_eq!(names.len(), all().len());
        for condition in all() {
            for text in [condition.why(), condition.evidence()] {
                assert!(text.len() > 20 && !text.ends_with('.'), "{}: {text}", condition.name());
            }
        }
    }
}
