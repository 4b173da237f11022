//! Parameters that benches determine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{Bytes, IocostModel, IocostQos};

/// Parameters of io.cost: the answer of `iocost-params`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IocostParameters {
    /// The cost model.
    pub model: IocostModel,
    /// The quality of service.
    pub qos: IocostQos,
}

/// Parameters of hashd at full load: the answer of `hashd-params`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HashdParameters {
    /// Mean number of bytes that a request hashes.
    pub hash_size: Bytes,
    /// Maximum rate, in requests per second.
    pub rps_max: f64,
    /// Memory footprint at the maximum rate.
    pub mem_size: Bytes,
    /// Pages that are accessed together.
    pub chunk_pages: u32,
    /// Bytes per second that the log grows at the maximum rate.
    pub log_bps: Bytes,
    /// Whether requests sleep instead of hashing.
    pub fake_cpu_load: bool,
}
