//! Sizes of this machine, and how they are shown.

use std::fs;

use wb_model::Unit;
use wb_sys::SysRoot;
use wb_sys::cgroup::memory::{MemoryLimit, memory_limits};
use wb_sys::proc::meminfo;

/// Bytes with a binary prefix and three significant digits.
pub(crate) fn format_size(bytes: u64) -> String {
    Unit::new("B").quantity(bytes as f64).to_string()
}

/// Memory that this process can use, in bytes: of the machine, or of its control group if that has less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemMemory {
    /// Without swap.
    pub(crate) total: u64,
    /// Can be used without swapping.
    pub(crate) available: u64,
    /// Can be swapped out.
    pub(crate) swap: u64,
}

impl SystemMemory {
    /// `None` if the machine does not report its memory.
    pub(crate) fn read() -> Option<Self> {
        let machine = Self::parse(&fs::read_to_string("/proc/meminfo").ok()?)?;
        Some(memory_limits(&SysRoot::real()).iter().fold(machine, Self::within))
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name| meminfo::size(text, name).map(|size| size.0);
        let swap = field("SwapFree").unwrap_or(0);
        Some(Self { total: field("MemTotal")?, available: field("MemAvailable")?, swap })
    }

    fn within(self, limit: &MemoryLimit) -> Self {
        Self {
            total: self.total.min(limit.limit),
            available: self.available.min(limit.available()),
            swap: limit.swap.map_or(self.swap, |swap| self.swap.min(swap)),
        }
    }

    /// What can be used, swap included.
    pub(crate) fn usable(&self) -> u64 {
        self.available.saturating_add(self.swap)
    }
}

/// Resident memory of this process, in bytes; zero if the system does not report it.
pub(crate) fn resident_bytes() -> u64 {
    // A report without this figure is better than none.
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn memory_is_the_machines_or_what_the_group_leaves() {
        let machine = SystemMemory::parse("MemTotal: 100 kB\nMemAvailable:  50 kB\nSwapFree: 7 kB\n").unwrap();
        assert_eq!((machine.total, machine.available, machine.usable()), (102_400, 51_200, 58_368));
        let group = machine.within(&MemoryLimit { limit: 20_000, used: 8_000, swap: Some(100) });
        assert_eq!((group.total, group.available, group.usable()), (20_000, 12_000, 12_100));
        let wide = machine.within(&MemoryLimit { limit: 1 << 40, used: 0, swap: None });
        assert_eq!((wide.total, wide.usable()), (machine.total, machine.usable()));
    }

    #[test]
    fn this_process_is_resident() {
        assert!(resident_bytes() > 0);
    }
}
