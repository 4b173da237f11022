//! The knobs, each in a small file with its like, and the list of them all.

pub mod block;
pub mod clocksource;
pub mod ethtool;
pub mod frequency;
pub mod hugetlb;
pub mod idle;
pub mod interrupts;
pub mod irqbalance;
pub mod memory;
pub mod network;
pub mod pagecache;
pub mod perf;
pub mod process;
pub mod profile;
pub mod shield;
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
        &interrupts::Affinity,
        &shield::Shield,
        &perf::NmiWatchdog,
        &perf::Paranoid,
        &perf::SampleRate,
        &process::Aslr,
        &thp::Enabled,
        &thp::Defrag,
        &hugetlb::Reserved,
        &hugetlb::OnNode,
        &memory::Merging,
        &memory::NumaBalancing,
        &swap::Swap,
        &swap::Swappiness,
        &writeback::Dirty,
        &writeback::Interval,
        &writeback::Expiry,
        &pagecache::DropCaches,
        &block::IoScheduler,
        &block::WriteThrottling,
        &block::Requests,
        &block::ReadAhead,
        &ethtool::OFFLOADS,
        &ethtool::LARGE_RECEIVE,
        &ethtool::CHECKSUMS,
        &ethtool::Coalescing,
        &network::FlushTimeout,
        &network::DeferInterrupts,
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
