//! The conditions, each in a small file with its like, and the list of them all.

pub mod disk;
pub mod jobs;
pub mod load;
pub mod machine;
pub mod power;
pub mod pressure;
pub mod protection;

use crate::Condition;

/// All conditions, in the order they are listed.
pub fn all() -> &'static [&'static dyn Condition] {
    &[
        &load::OtherProcesses,
        &load::LoadAverage,
        &load::Steal,
        &pressure::Pressure,
        &pressure::Memory,
        &pressure::Quota,
        &machine::Virtual,
        &machine::Emulated,
        &machine::VirtualClock,
        &power::Throttling,
        &power::Battery,
        &disk::DiskSpace,
        &jobs::Running,
        &jobs::Scheduled,
        &protection::Isolation,
        &protection::Mitigations,
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
