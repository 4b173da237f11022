//! Sizes of this machine, and how they are shown.

use std::fs;

use wb_model::Unit;
use wb_sys::proc::meminfo;

/// Bytes with a binary prefix and three significant digits.
pub(crate) fn format_size(bytes: u64) -> String {
    Unit::new("B").quantity(bytes as f64).to_string()
}

/// Memory of this machine, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemMemory {
    /// All of it.
    pub(crate) total: u64,
    /// What can be used, free swap included.
    pub(crate) available: u64,
}

impl SystemMemory {
    /// Reads `/proc/meminfo`; `None` if it does not have the fields.
    pub(crate) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/meminfo").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name| meminfo::size(text, name).map(|size| size.0);
        let available = field("MemAvailable")? + field("SwapFree").unwrap_or(0);
        Some(Self { total: field("MemTotal")?, available })
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
mod tests {
    use super::*;

    #[test]
    fn available_memory_includes_free_swap() {
        let memory = SystemMemory::parse("MemTotal: 100 kB\nMemAvailable:  50 kB\nSwapFree: 7 kB\n");
        let figures = memory.map(|memory| (memory.total, memory.available));
        assert_eq!(figures, Some((102_400, 58_368)));
    }

    #[test]
    fn this_process_is_resident() {
        assert!(resident_bytes() > 0);
    }
}
