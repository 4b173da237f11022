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

/// All knobs, in the order of output.
pub fn all() -> &'static [&'static dyn Knob] {
    &[
        &frequency::GOVERNOR,
        &frequency::ENERGY_PREFERENCE,
        &frequency::Turbo,
        &frequency::FrequencyLimits,
        &idle::IdleStates,
        &smt::Smt,
        &profile::TunedProfile,
        &profile::PLATFORM_PROFILE,
        &clocksource::Clocksource,
        &irqbalance::Irqbalance,
        &interrupts::IrqAffinity,
        &shield::Shield,
        &perf::NMI_WATCHDOG,
        &perf::PERF_EVENT_PARANOID,
        &perf::SAMPLE_RATE,
        &process::ASLR,
        &thp::THP_ENABLED,
        &thp::THP_DEFRAG,
        &hugetlb::HugePagePool,
        &hugetlb::NodeHugePagePool,
        &memory::SamePageMerging,
        &memory::NUMA_BALANCING,
        &swap::Swap,
        &swap::SWAPPINESS,
        &writeback::DirtyLimit,
        &writeback::WRITEBACK_INTERVAL,
        &writeback::WRITEBACK_EXPIRY,
        &pagecache::DropCaches,
        &block::IO_SCHEDULER,
        &block::WRITE_THROTTLING,
        &block::NR_REQUESTS,
        &block::READ_AHEAD,
        &ethtool::OFFLOADS,
        &ethtool::LARGE_RECEIVE,
        &ethtool::CHECKSUMS,
        &ethtool::Coalescing,
        &network::FLUSH_TIMEOUT,
        &network::DEFER_INTERRUPTS,
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::knob::KnobDescription;

    #[test]
    fn every_knob_has_a_unique_name_and_a_reason() {
        let names: BTreeSet<_> = all().iter().map(|knob| knob.name()).collect();
        assert_eq!(names.len(), all().len());
        for knob in all() {
            let KnobDescription { why, evidence, unsupported_reason, .. } = knob.description();
            for text in [why, evidence, unsupported_reason] {
                assert!(text.len() > 20 && !text.ends_with('.'), "{}: {text}", knob.name());
            }
        }
    }
}
