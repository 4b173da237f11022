use std::thread;

use wb_kernels::Isa;
use wb_sys::proc::cpuinfo::CpuInfo;
use wb_sys::{SysRoot, facts};

/// Describes the machine on one line: CPU model, number of CPUs, widest instruction set, memory, kernel.
pub(crate) fn describe_machine() -> String {
    let root = SysRoot::real();
    format!(
        "{}, {} CPUs, {}, {} kB memory, Linux {}",
        CpuInfo::read(&root).model,
        thread::available_parallelism().map_or(1, usize::from),
        Isa::widest(),
        facts::memory::total(&root).0 / 1024,
        // Shown as empty where it cannot be read, as is the model.
        root.text("/proc/sys/kernel/osrelease").unwrap_or_default()
    )
}
