//! Stages: what a runner executes at once, and by what a finished one is recognised.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Sha256;
use wb_results::contention::{Instance, IocostParameters, MemHog, MemHogTune, Passive, QosOverride};

use crate::conditions::Conditions;
use crate::spec::{BenchSpec, RequestProperties, StorageWork};

/// What a stage measures, apart from the conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageDefinition {
    /// The work.
    pub work: Work,
    /// The state of io.cost meanwhile.
    pub iocost: IocostState,
    /// Settings that are left as they are.
    #[serde(default)]
    pub passive: Passive,
}

/// The work of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Work {
    /// Measure the device with fio, and derive the parameters of io.cost.
    IocostParams,
    /// Find the parameters of hashd at full load.
    HashdParams(SizingWork),
    /// Find the footprint that the device supports.
    Storage(StorageWork),
    /// Run hashd at a load, then a memory hog beside it.
    MemHog(MemHog),
    /// Find the largest footprint that is protected from a memory hog.
    MemHogTune(MemHogTune),
}

/// How hashd is sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SizingWork {
    /// Whether requests sleep instead of hashing.
    pub fake_cpu_load: bool,
    /// Maximum rate, in requests per second; `None`: to be measured.
    pub rps_max: Option<u32>,
    /// Properties of the requests.
    pub requests: RequestProperties,
}

/// The state of io.cost during a stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IocostState {
    /// As it is.
    AsIs,
    /// Disabled.
    Off,
    /// Enabled, with the parameters that the bench starts from and these changes.
    On(QosOverride),
}

impl IocostState {
    /// The parameters to set; `None` if io.cost is disabled or stays as it is.
    pub fn parameters(&self, base: Option<IocostParameters>) -> Option<IocostParameters> {
        match (self, base) {
            (Self::On(change), Some(base)) => Some(IocostParameters { qos: change.apply(base.qos), ..base }),
            _ => None,
        }
    }
}

/// A stage to execute.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    pub instance: Instance,
    pub definition: StageDefinition,
    /// With the parameters that the stage starts from, which are apart from the definition only to state what has
    /// changed.
    pub conditions: Conditions,
}

/// What identifies a stage: a hash of its instance, definition and conditions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
// Nothing is looked up by position or name, so a sequence can be changed: settings that were measured are used again
// wherever they are now.
pub struct StageKey(String);

impl fmt::Display for StageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Hexadecimal digits of a key.
const KEY_DIGITS: usize = 16;

impl Stage {
    pub fn key(&self) -> StageKey {
        // Every type in it has a JSON form with text keys.
        let text = serde_json::json!([self.instance, self.definition, self.conditions]).to_string();
        StageKey(Sha256::digest(text.as_bytes()).as_str()[..KEY_DIGITS].to_owned())
    }

    /// The parameters of io.cost to set; `None` if it is disabled or stays as it is.
    pub fn iocost(&self) -> Option<IocostParameters> {
        self.definition.iocost.parameters(self.conditions.base_model)
    }
}

pub(crate) fn passive_of(spec: &BenchSpec) -> Passive {
    spec.passive.clone().unwrap_or_default()
}
