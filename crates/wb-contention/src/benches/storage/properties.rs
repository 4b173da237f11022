//! Properties of `storage`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_diagnostics::Diagnostics;
use wb_results::contention::Bench;

use crate::benches::hashd_params::{HashdParamsProperties, RequestProperties};
use crate::spec::reader::{Group, GroupReader};
use crate::spec::refuse_stages;
use crate::spec::value::{Count, Property, UnitFraction};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct StorageProperties {
    /// Whether later benches of the sequence use the resulting parameters of hashd.
    pub apply: bool,
    /// Whether they are kept for later sequences; implies `apply`.
    pub commit: bool,
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

pub(crate) fn read(mut first: GroupReader<'_>, rest: &[Group<'_>]) -> Result<StorageProperties, Diagnostics> {
    refuse_stages(Bench::Storage, rest, first.source)?;
    let StorageProperties { apply, commit, work: default } = StorageProperties::default();
    let (apply, commit) = (first.take("apply").unwrap_or(apply), first.take("commit").unwrap_or(commit));
    let loops = first.take::<Count>("loops").map_or(default.loops, |count| count.0);
    let work = StorageWork { loops, ..StorageWork::take(&mut first) };
    first.finish()?;
    Ok(StorageProperties { apply, commit, work })
}

impl StorageWork {
    /// All but `loops`, which `iocost-qos` has as well.
    pub(crate) const PROPERTIES: [&'static str; 7] = [
        "rps-max",
        "hash-size",
        "chunk-pages",
        "log-bps",
        "mem-avail-err-max",
        "mem-avail-inner-retries",
        "mem-avail-outer-retries",
    ];

    /// Takes [`Self::PROPERTIES`].
    pub(crate) fn take(group: &mut GroupReader<'_>) -> Self {
        let default = Self::default();
        Self {
            rps_max: group.take::<Count>("rps-max").map_or(default.rps_max, |count| count.0),
            requests: RequestProperties::take(group),
            mem_avail_err_max: group
                .take("mem-avail-err-max")
                .map_or(default.mem_avail_err_max, |UnitFraction(max)| max),
            mem_avail_inner_retries: group.take("mem-avail-inner-retries").unwrap_or(default.mem_avail_inner_retries),
            mem_avail_outer_retries: group.take("mem-avail-outer-retries").unwrap_or(default.mem_avail_outer_retries),
            ..default
        }
    }

    /// [`Self::PROPERTIES`], unless they have their defaults.
    pub(crate) fn list(&self) -> impl Iterator<Item = Property> {
        let default = Self::default();
        let (inner, outer) = (self.mem_avail_inner_retries, self.mem_avail_outer_retries);
        let last = [
            Property::unless("mem-avail-err-max", self.mem_avail_err_max, default.mem_avail_err_max),
            Property::unless("mem-avail-inner-retries", inner, default.mem_avail_inner_retries),
            Property::unless("mem-avail-outer-retries", outer, default.mem_avail_outer_retries),
        ];
        let rate = Property::unless("rps-max", self.rps_max, default.rps_max);
        rate.into_iter().chain(self.requests.list()).chain(last.into_iter().flatten())
    }
}

impl StorageProperties {
    pub(crate) fn list(&self) -> Vec<Property> {
        let StorageProperties { apply, commit, work: default } = Self::default();
        let own = [
            Property::unless("apply", self.apply, apply),
            Property::unless("commit", self.commit, commit),
            Property::unless("loops", self.work.loops, default.loops),
        ];
        own.into_iter().flatten().chain(self.work.list()).collect()
    }
}
