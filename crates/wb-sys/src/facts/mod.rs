//! What a plan depends on, read once per worker.

pub mod cpu_list;

use wb_model::Facts;

use crate::SysRoot;

/// What this machine is. What cannot be read stays empty.
pub fn facts(root: &SysRoot) -> Facts {
    Facts { kernel: root.text("/proc/sys/kernel/osrelease").unwrap_or_default(), ..Facts::default() }
}
