//! The world that a run happens in, to be compared before and after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The world, as far as it can change what is measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Environment {}
