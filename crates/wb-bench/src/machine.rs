//! One-line description of the machine.

use std::{fs, thread};
use wb_kernels::Isa;

/// Describes the machine: CPU model, number of CPUs, widest instruction set, memory, kernel.
pub(crate) fn describe_machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
        value.map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    format!(
        "{}, {} CPUs, {}, {} memory, Linux {}",
        after(&read("/proc/cpuinfo"), "model name"),
        thread::available_parallelism().map_or(1, usize::from),
        Isa::widest(),
        after(&read("/proc/meminfo"), "MemTotal"),
        read("/proc/sys/kernel/osrelease").trim()
    )
}
