//! Properties of `hashd-params`, and those of the requests of hashd.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_diagnostics::Diagnostics;
use wb_model::Bytes;
use wb_results::contention::Bench;

use crate::spec::reader::{Group, GroupReader};
use crate::spec::refuse_stages;
use crate::spec::value::{Count, Property, Size};

/// Properties of the requests of hashd; what is `None` has hashd's own default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct RequestProperties {
    /// Mean number of bytes that a request hashes.
    pub hash_size: Option<Bytes>,
    /// Pages that are accessed together.
    pub chunk_pages: Option<u32>,
    /// Bytes per second that the log grows at the maximum rate.
    pub log_bps: Option<Bytes>,
}

impl RequestProperties {
    pub(crate) fn take(group: &mut GroupReader<'_>) -> Self {
        Self {
            hash_size: group.take::<Size>("hash-size").map(|size| size.0),
            chunk_pages: group.take::<Count>("chunk-pages").map(|count| count.0),
            log_bps: group.take("log-bps"),
        }
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = Property> {
        let properties = [
            Property::given("hash-size", self.hash_size),
            Property::given("chunk-pages", self.chunk_pages),
            Property::given("log-bps", self.log_bps),
        ];
        properties.into_iter().flatten()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HashdParamsProperties {
    /// Whether later benches of the sequence use the result.
    pub apply: bool,
    /// Whether the result is kept for later sequences; implies `apply`.
    pub commit: bool,
    /// Requests sleep instead of hashing, so that the result does not depend on the CPU.
    pub fake_cpu_load: bool,
    /// Maximum rate of a faked CPU, in requests per second; `None`: [`Self::FAKE_RPS_MAX`] if it is faked.
    pub rps_max: Option<u32>,
    pub requests: RequestProperties,
}

impl HashdParamsProperties {
    /// Maximum rate of a faked CPU, in requests per second.
    pub const FAKE_RPS_MAX: u32 = 2000;

    /// The maximum rate, in requests per second; `None` if it is to be measured.
    pub fn effective_rps_max(&self) -> Option<u32> {
        self.rps_max.or(self.fake_cpu_load.then_some(Self::FAKE_RPS_MAX))
    }
}

impl Default for HashdParamsProperties {
    fn default() -> Self {
        Self { apply: true, commit: true, fake_cpu_load: false, rps_max: None, requests: RequestProperties::default() }
    }
}

pub(crate) fn read(mut first: GroupReader<'_>, rest: &[Group<'_>]) -> Result<HashdParamsProperties, Diagnostics> {
    refuse_stages(Bench::HashdParams, rest, first.source)?;
    let default = HashdParamsProperties::default();
    let properties = HashdParamsProperties {
        apply: first.take("apply").unwrap_or(default.apply),
        commit: first.take("commit").unwrap_or(default.commit),
        fake_cpu_load: first.take("fake-cpu-load").unwrap_or(default.fake_cpu_load),
        rps_max: first.take::<Count>("rps-max").map(|count| count.0),
        requests: RequestProperties::take(&mut first),
    };
    first.finish()?;
    Ok(properties)
}

impl HashdParamsProperties {
    pub(crate) fn list(&self) -> Vec<Property> {
        let default = Self::default();
        let properties = [
            Property::unless("apply", self.apply, default.apply),
            Property::unless("commit", self.commit, default.commit),
            Property::unless("fake-cpu-load", self.fake_cpu_load, default.fake_cpu_load),
            Property::given("rps-max", self.rps_max),
        ];
        properties.into_iter().flatten().chain(self.requests.list()).collect()
    }
}
