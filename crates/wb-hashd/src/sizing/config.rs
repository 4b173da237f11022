//! The configuration of sizing: what is determined, and what is given instead of being measured.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use crate::size::SystemMemory;
use crate::work_folder::WorkFolder;
use crate::{HashdConfig, HashdError, HashdParams, ParamError};

/// The footprint at a `mem-frac` of 1, relative to the memory.
const MEMORY_FACTOR: u64 = 4;
/// Requests per second and GiB of memory with a faked CPU load: 2000 for the 12 GiB that a machine of 16 GiB leaves.
const FAKE_RPS_PER_GIB: f64 = 2000.0 / 12.0;
const GIB: f64 = (1u64 << 30) as f64;
/// Repeats of disturbed rounds, unless another number is given.
const MAX_REPEATS: u32 = 6;

/// What sizing is started with
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SizingConfig {
    /// Parameters; those that sizing finds (`file-size-mean`, `chunk-pages`, `rps-max`, `mem-frac`) are where it begins.
    /// With `fake-cpu-load`, only the memory is sized
    pub params: HashdParams,
    /// Mean size of what a request reads from files, instead of measuring how much a CPU hashes in 15 ms
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash_size: Option<Bytes>,
    /// Pages that are read or touched together, instead of deriving them from that size
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_pages: Option<u32>,
    /// Requests per second at full load, instead of measuring them; with `fake-cpu-load`, 2000 for 12 GiB of memory, in
    /// proportion to the memory, if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rps_max: Option<f64>,
    /// Memory footprint at a `mem-frac` of 1; four times the memory of the machine or of the control group, or as much as
    /// half of the free disk space permits, if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Folder of test files and logs; /var/tmp if not given
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// Part of the footprint's data that is zero, so that it compresses
    pub compressibility: f64,
    /// Seed of all random choices
    pub seed: u64,
    /// Factor of the precision of the footprint: 2 makes its steps twice as large
    pub grain: f64,
    /// Factor of the length of a window: less than 1 is faster and less certain
    pub window_scale: f64,
    /// Maximum number of repeats of disturbed rounds, at most two of each
    pub max_repeats: u32,
}

impl Default for SizingConfig {
    fn default() -> Self {
        Self {
            params: HashdParams::default(),
            hash_size: None,
            chunk_pages: None,
            rps_max: None,
            memory: None,
            dir: None,
            compressibility: 0.0,
            seed: 0,
            grain: 1.0,
            window_scale: 1.0,
            max_repeats: MAX_REPEATS,
        }
    }
}

impl SizingConfig {
    /// The footprint at a `mem-frac` of 1 for a machine with this memory.
    pub fn footprint_for(memory: Bytes) -> Bytes {
        Bytes(memory.0.saturating_mul(MEMORY_FACTOR))
    }

    /// Determines what depends on the machine, so that a resumed sizing is the same one. Fails if a parameter is
    /// outside its limits, or the machine does not report its memory or free space.
    pub fn resolve(mut self) -> Result<Self, HashdError> {
        self.validate()?;
        let unknown = || ParamError::new("memory", "none", "a size: this machine does not report its memory");
        let total = SystemMemory::read().map(|memory| memory.total);
        if self.memory.is_none() {
            let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from("/var/tmp"));
            let free = WorkFolder::open(&dir, false)?.free_bytes()?;
            let by_disk = (free as f64 / 2.0 / self.params.file_frac.max(f64::MIN_POSITIVE)) as u64;
            let memory = Self::footprint_for(Bytes(total.ok_or_else(unknown)?));
            self.memory = Some(memory.min(Bytes(by_disk)));
        }
        if self.params.fake_cpu_load && self.rps_max.is_none() {
            let rps = total.ok_or_else(unknown)? as f64 / GIB * FAKE_RPS_PER_GIB;
            self.rps_max = Some(rps.max(1.0).round());
        }
        Ok(self)
    }

    fn validate(&self) -> Result<(), ParamError> {
        self.params.validate()?;
        if self.params.open_loop.is_some() {
            return Err(ParamError::new("open-loop", "a rate", "none: sizing controls the rate"));
        }
        let given = HashdParams {
            file_size_mean: self.hash_size.unwrap_or(self.params.file_size_mean),
            chunk_pages: self.chunk_pages.unwrap_or(self.params.chunk_pages),
            rps_max: self.rps_max.or(self.params.rps_max),
            ..self.params.clone()
        };
        given.validate()?;
        for (name, value, limits, expected) in [
            ("compressibility", self.compressibility, 0.0..=1.0, "a number from 0 to 1"),
            ("grain", self.grain, 0.1..=10.0, "a number from 0.1 to 10"),
            ("window-scale", self.window_scale, 0.1..=10.0, "a number from 0.1 to 10"),
        ] {
            if !limits.contains(&value) {
                return Err(ParamError::new(name, value, expected));
            }
        }
        Ok(())
    }

    pub fn workload(&self, params: HashdParams) -> HashdConfig {
        HashdConfig {
            params,
            dir: self.dir.clone(),
            memory: self.memory,
            seed: self.seed,
            duration: None,
            keep_files: false,
            compressibility: self.compressibility,
            fill: true,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn resolved_configuration_depends_on_the_machine_no_more() {
        let fake = HashdParams { fake_cpu_load: true, ..HashdParams::default() };
        let config = SizingConfig { params: fake, ..SizingConfig::default() }.resolve().unwrap();
        let total = SystemMemory::read().unwrap().total;
        assert!(config.memory.unwrap().0 <= 4 * total);
        assert_eq!(config.rps_max, Some((total as f64 / GIB * 2000.0 / 12.0).max(1.0).round()));
        assert_eq!(config.clone().resolve().unwrap(), config);
    }

    #[test]
    fn invalid_configurations_are_refused() {
        let message = |config: SizingConfig| config.resolve().unwrap_err().to_string();
        let config = SizingConfig { grain: 0.0, ..SizingConfig::default() };
        assert_eq!(message(config), "invalid grain `0`: expected a number from 0.1 to 10");
        let config = SizingConfig { hash_size: Some(Bytes(1)), ..SizingConfig::default() };
        assert_eq!(message(config), "invalid file-size-mean `1`: expected a size from 4k to 1g");
    }
}
