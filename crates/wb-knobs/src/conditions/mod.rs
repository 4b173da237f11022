pub mod disk;
pub mod isolation;
pub mod load;
pub mod machine;
pub mod maintenance;
pub mod power;
pub mod pressure;

use crate::Condition;

/// All conditions, in the order of output.
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
    use crate::condition::ConditionDescription;

    #[test]
    fn every_condition_has_a_unique_name_and_a_reason() {
        let names: BTreeSet<_> = all().iter().map(|condition| condition.description().name).collect();
        assert_eq!(names.len(), all().len());
        for condition in all() {
            let ConditionDescription { name, why, evidence } = condition.description();
            for text in [why, evidence] {
                assert!(text.len() > 20 && !text.ends_with('.'), "{name}: {text}");
            }
        }
    }
}
