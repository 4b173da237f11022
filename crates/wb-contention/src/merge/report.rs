//! What happened to each source of a merge.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stage::Instance;

/// What a result was merged from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeReport {
    /// The merged result.
    pub instance: Instance,
    /// What the sources have in common, a line each.
    pub group: Vec<String>,
    /// The sources.
    pub sources: Vec<SourceReport>,
    /// Other groups, which are not merged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedGroup>,
    /// When the first bench started, for people.
    pub start: String,
    /// When the last bench ended.
    pub end: String,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceReport {
    /// Its run.
    pub name: String,
    /// Why it was rejected; `None` if it is part of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
}

/// Sources that differ from those that were merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedGroup {
    /// What they have in common, a line each.
    pub group: Vec<String>,
    /// Their runs.
    pub sources: Vec<String>,
}

impl fmt::Display for MergeReport {
    /// Several lines: `+` part of the result, `-` rejected, with the reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.instance)?;
        self.group.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "  sources:")?;
        for source in &self.sources {
            match &source.rejection {
                None => writeln!(f, "    + {}", source.name)?,
                Some(reason) => writeln!(f, "    - {} ({reason})", source.name)?,
            }
        }
        for dropped in &self.dropped {
            writeln!(f, "  not merged:")?;
            dropped.group.iter().try_for_each(|line| writeln!(f, "    {line}"))?;
            dropped.sources.iter().try_for_each(|name| writeln!(f, "    - {name}"))?;
        }
        Ok(())
    }
}
