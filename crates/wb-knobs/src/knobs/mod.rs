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
        &frequency::FrequencyLimits,
        &idle::IdleStates,
        &smt::Smt,
        &profile::TunedProfile,
        &profile::PlatformProfile,
        &clocksource::Clocksource,
        &irqbalance::Irqbalance,
        &interrupts::IrqAffinity,
        &shield::Shield,
        &perf::NmiWatchdog,
        &perf::PerfEventParanoid,
        &perf::SampleRate,
        &process::Aslr,
        &thp::ThpEnabled,
        &thp::ThpDefrag,
        &hugetlb::HugePagePool,
        &hugetlb::NodeHugePagePool,
        &memory::SamePageMerging,
        &memory::NumaBalancing,
        &swap::Swap,
        &swap::Swappiness,
        &writeback::DirtyLimit,
        &writeback::WritebackInterval,
        &writeback::WritebackExpiry,
        &pagecache::DropCaches,
        &block::IoScheduler,
        &block::WriteThrottling,
        &block::NrRequests,
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
            for text in [knob.why(), knob.evidence(), knob.unsupported_reason()] {
                assert!(text.len() > 20 && !text.ends_with('.'), "{}: {text}", knob.name());
            }
        }
    }
}
