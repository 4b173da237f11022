//! What happened to each source of a merge.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_results::contention::Instance;

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
    /// Those of them that would have been rejected, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<SourceReport>,
}

impl fmt::Display for MergeReport {
    /// Several lines: `+` part of the result, `-` rejected, with the reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.instance)?;
        self.group.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "  sources:")?;
        for source in &self.sources {
            let sign = if source.rejection.is_none() { '+' } else { '-' };
            writeln!(f, "    {sign} {source}")?;
        }
        for dropped in &self.dropped {
            writeln!(f, "  not merged:")?;
            dropped.group.iter().try_for_each(|line| writeln!(f, "    {line}"))?;
            for name in &dropped.sources {
                match dropped.rejected.iter().find(|source| source.name == *name) {
                    Some(source) => writeln!(f, "    - {source}")?,
                    None => writeln!(f, "    - {name}")?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for SourceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.rejection.iter().try_for_each(|reason| write!(f, " ({reason})"))
    }
}
