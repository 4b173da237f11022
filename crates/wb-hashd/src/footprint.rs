//! Sizes of the footprint, and whether they fit.

use wb_model::Bytes;

use crate::size::SystemMemory;
use crate::work_folder::WorkFolder;
use crate::{HashdError, HashdParams, PAGE, ParamError};

/// Footprint relative to the machine's memory, unless one is given and if there is room for it.
const DEFAULT_MEMORY: u64 = 4;
/// Bytes that must stay available beside the footprint, for the process itself.
const RESERVE: u64 = 64 << 20;

/// Sizes that are determined at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FootprintSizes {
    /// Bytes of files and anonymous memory at a `mem-frac` of 1.
    pub(crate) memory: u64,
}

impl FootprintSizes {
    pub(crate) fn choose(params: &HashdParams, memory: Option<Bytes>, folder: &WorkFolder) -> Result<Self, HashdError> {
        let memory = match memory {
            Some(Bytes(memory)) => memory,
            None => default_memory(params, SystemMemory::read(), folder.free_bytes()?),
        };
        if memory < 1 << 20 {
            return Err(ParamError::new("memory", Bytes(memory), "a size of at least 1m").into());
        }
        let sizes = Self { memory };
        sizes.check(params, 0)?;
        Ok(sizes)
    }

    /// Checks that anonymous memory fits, while `in_use` bytes of it are in use.
    pub(crate) fn check(&self, params: &HashdParams, in_use: u64) -> Result<(), HashdError> {
        let (required, memory) = (self.anon_bytes(params), SystemMemory::read());
        match memory.map(|memory| memory.usable().saturating_add(in_use).saturating_sub(RESERVE)) {
            Some(available) if required > available => Err(HashdError::Memory { required, available }),
            _ => Ok(()),
        }
    }

    /// Bytes of the test files, so that `mem-frac` can grow.
    pub(crate) fn file_capacity(&self, params: &HashdParams) -> u64 {
        (self.memory as f64 * params.file_frac) as u64
    }

    fn file_bytes(&self, params: &HashdParams) -> u64 {
        (self.memory as f64 * params.mem_frac * params.file_frac) as u64
    }

    /// Pages of the footprint of files, of which there are `available` at present.
    pub(crate) fn file_pages(&self, params: &HashdParams, available: u64) -> u64 {
        (self.file_bytes(params) / PAGE as u64).clamp(1, available)
    }

    pub(crate) fn anon_bytes(&self, params: &HashdParams) -> u64 {
        (self.memory as f64 * params.mem_frac * (1.0 - params.file_frac)) as u64
    }
}

/// The default footprint: four times the memory, or as much as fits. Anonymous memory may take four fifths of what is
/// available, or less if the process itself needs more; files may take half of the free space.
fn default_memory(params: &HashdParams, system: Option<SystemMemory>, free: u64) -> u64 {
    let Some(system) = system else { return 1 << 30 };
    let limit = |bytes: u64, part: f64| if part > 0.0 { (bytes as f64 / part) as u64 } else { u64::MAX };
    let usable = system.usable();
    let by_memory =
        limit((usable / 5 * 4).min(usable.saturating_sub(RESERVE)), params.mem_frac * (1.0 - params.file_frac));
    let by_disk = limit(free / 2, params.file_frac);
    system.total.saturating_mul(DEFAULT_MEMORY).min(by_memory).min(by_disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_footprint_fits_into_memory_and_disk() {
        let params = HashdParams::default();
        let system =
            |total: u64, available: u64| Some(SystemMemory { total: total << 20, available: available << 20, swap: 0 });
        let default = |system, free: u64| default_memory(&params, system, free << 20) >> 20;
        assert_eq!(default(system(1000, 100_000), 100_000), 4000);
        assert_eq!(default(system(100_000, 750), 1_000_000), 999);
        assert_eq!(default(system(100_000, 1_000_000), 500), 1000);
    }

    #[test]
    fn default_footprint_leaves_the_process_its_memory_on_every_machine_without_swap() {
        let params = HashdParams::default();
        for available in [65, 100, 200, 320, 1000, 25_600] {
            let system = SystemMemory { total: available << 20, available: available << 20, swap: 0 };
            let memory = default_memory(&params, Some(system), u64::MAX);
            let anon = FootprintSizes { memory }.anon_bytes(&params);
            assert!(anon + RESERVE <= system.usable(), "{available} MiB: {anon}");
        }
    }
}
