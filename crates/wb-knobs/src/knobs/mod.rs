//! The knobs, each in a small file with its like, and the list of them all.

pub mod block;
pub mod clocksource;
pub mod frequency;
pub mod idle;
pub mod irqbalance;
pub mod memory;
pub mod network;
pub mod perf;
pub mod process;
pub mod profile;
pub mod smt;
pub mod swap;
pub mod thp;
pub mod writeback;

use crate::Knob;

/// All knobs, in the order they are listed.
pub fn all() -> &'static [&'static dyn Knob] {
    &[
        &frequency::Governor,
        &frequency::EnergyPreference,
        &frequency::Turbo,
        &frequency::Limits,
        &idle::IdleStates,
        &smt::Smt,
        &profile::Tuned,
        &profile::Platform,
        &clocksource::Clocksource,
        &irqbalance::Irqbalance,
        &perf::NmiWatchdog,
        &perf::Paranoid,
        &perf::SampleRate,
        &process::Aslr,
        &thp::Enabled,
        &thp::Defrag,
        &memory::Reserved,
        &memory::Merging,
        &memory::NumaBalancing,
        &swap::Swap,
        &swap::Swappiness,
        &writeback::Dirty,
        &block::IoScheduler,
        &block::WriteThrottling,
        &block::Requests,
        &block::ReadAhead,
        &network::Offloads,
        &network::Coalescing,
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_knob_has_a_name_of_its_own_and_says_why() {
        let names: BTreeSet<_> = all().iter().map(|knob| knob.name()).collect();
        assert_eq!(names.len(), all().len());
        for knob in all() {
            for text in [knob.why(), knob.evidence(), knob.absent()] {
                assert!(text.len() > 20 && !text.ends_with('.'), "{}: {text}", knob.name());
            }
        }
    }
}
