//! Environments: the recorded state of a run's machines.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the environment without a profile, in place of a profile's. `World` is run-perf's word for it.
pub const BASE_ENVIRONMENT: &str = "World";

/// The machines of a run by profile, or [`BASE_ENVIRONMENT`].
pub type Environments = BTreeMap<String, Vec<MachineEnvironment>>;

/// The recorded state of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineEnvironment {
    /// The worker's name; `None` if the run did not record names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The recorded values, by section: `kernel`, `packages`, `profile`, … Keys that end in `_raw` have the original of
    /// a filtered value and are not compared.
    pub sections: BTreeMap<String, Value>,
}
