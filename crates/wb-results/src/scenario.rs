//! Scenarios of matrices: what an iteration measures.

use std::sync::Arc;

use serde::Deserialize;

/// What an iteration measures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scenario {
    /// From dialer to listener.
    Upload,
    /// From listener to dialer.
    Download,
    /// The round trip of a small request.
    Latency,
    /// A transfer that a peers file defines.
    Custom { name: Arc<str>, measure: Measure },
}

/// What the figures of a scenario are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Bytes of both directions per second.
    #[default]
    Throughput,
    /// The time of an iteration.
    Latency,
}

impl Scenario {
    pub const STANDARD: [Self; 3] = [Self::Upload, Self::Download, Self::Latency];

    pub fn name(&self) -> &str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Latency => "latency",
            Self::Custom { name, .. } => name,
        }
    }

    /// Whether its figures are rates, not times.
    pub fn is_rate(&self) -> bool {
        match self {
            Self::Upload | Self::Download => true,
            Self::Latency => false,
            Self::Custom { measure, .. } => *measure == Measure::Throughput,
        }
    }
}
