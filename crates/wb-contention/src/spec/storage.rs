//! Properties of `storage`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_diagnostics::Diagnostics;

use super::hashd::{HashdParamsProperties, RequestProperties};
use super::reader::{Group, GroupReader};
use super::refuse_stages;
use super::value::{Count, Fraction, Property};
use crate::Bench;

/// Properties of `storage`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StorageProperties {
    /// Whether later benches of the sequence use the resulting parameters of hashd.
    pub apply: bool,
    /// Whether they are kept for later sequences; implies `apply`.
    pub commit: bool,
    /// What is measured.
    pub work: StorageWork,
}

/// How a supported footprint is found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageWork {
    /// Number of measurements.
    pub loops: u32,
    /// Maximum rate of the faked CPU, in requests per second.
    pub rps_max: u32,
    /// Properties of the requests.
    pub requests: RequestProperties,
    /// Relative difference between the memory that hashd uses and its target, beyond which a measurement is invalid.
    pub mem_avail_err_max: f64,
    /// Repetitions with the same available memory.
    pub mem_avail_inner_retries: u32,
    /// Repetitions after the available memory has been determined again.
    pub mem_avail_outer_retries: u32,
}

impl Default for StorageWork {
    fn default() -> Self {
        Self {
            loops: 3,
            rps_max: HashdParamsProperties::FAKE_RPS_MAX,
            requests: RequestProperties::default(),
            mem_avail_err_max: 0.1,
            mem_avail_inner_retries: 2,
            mem_avail_outer_retries: 2,
        }
    }
}

pub(super) fn read(mut first: GroupReader<'_>, rest: &[Group<'_>]) -> Result<StorageProperties, Diagnostics> {
    refuse_stages(Bench::Storage, rest, first.source)?;
    let StorageProperties { apply, commit, work: default } = StorageProperties::default();
    let (apply, commit) = (first.take("apply").unwrap_or(apply), first.take("commit").unwrap_or(commit));
    let work = StorageWork {
        loops: first.take::<Count>("loops").map_or(default.loops, |count| count.0),
        rps_max: first.take::<Count>("rps-max").map_or(default.rps_max, |count| count.0),
        requests: RequestProperties::take(&mut first),
        mem_avail_err_max: first.take("mem-avail-err-max").map_or(default.mem_avail_err_max, |Fraction(max)| max),
        mem_avail_inner_retries: first.take("mem-avail-inner-retries").unwrap_or(default.mem_avail_inner_retries),
        mem_avail_outer_retries: first.take("mem-avail-outer-retries").unwrap_or(default.mem_avail_outer_retries),
    };
    first.finish()?;
    Ok(StorageProperties { apply, commit, work })
}

impl StorageProperties {
    pub(super) fn list(&self) -> Vec<Property> {
        let StorageProperties { apply, commit, work: default } = Self::default();
        let work = &self.work;
        let (inner, outer) = (work.mem_avail_inner_retries, work.mem_avail_outer_retries);
        let first = [
            Property::unless("apply", self.apply, apply),
            Property::unless("commit", self.commit, commit),
            Property::unless("loops", work.loops, default.loops),
            Property::unless("rps-max", work.rps_max, default.rps_max),
        ];
        let last = [
            Property::unless("mem-avail-err-max", work.mem_avail_err_max, default.mem_avail_err_max),
            Property::unless("mem-avail-inner-retries", inner, default.mem_avail_inner_retries),
            Property::unless("mem-avail-outer-retries", outer, default.mem_avail_outer_retries),
        ];
        first.into_iter().flatten().chain(work.requests.list()).chain(last.into_iter().flatten()).collect()
    }
}
