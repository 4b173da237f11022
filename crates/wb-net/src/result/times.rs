//! Times as people read them: a mean, quantiles, and the histogram for whoever wants more.

use base64::{Engine, engine::general_purpose::STANDARD};
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::tally::Times;

/// How long something took, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Latency {
    /// How often.
    pub count: u64,
    /// On average, exactly.
    pub mean_ns: f64,
    /// The quantiles.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// All, as an HdrHistogram in V2 encoding and base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// Quantiles of times, in nanoseconds: to three significant digits, two where many strands share the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Percentiles {
    /// The shortest.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// 90 % are shorter.
    pub p90_ns: u64,
    /// 99 % are shorter.
    pub p99_ns: u64,
    /// 99.9 % are shorter.
    pub p99_9_ns: u64,
    /// 99.99 % are shorter.
    pub p99_99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Times {
    /// The value at a quantile. A bucket's upper end can lie above what was ever recorded.
    pub(super) fn at(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.histogram.max())
    }
}

impl Latency {
    /// Of times, if there are any; with the histogram if `all`.
    pub(super) fn of(times: &Times, all: bool) -> Option<Self> {
        let histogram = &times.histogram;
        let count = histogram.len();
        if count == 0 {
            return None;
        }
        let at = |quantile| times.at(quantile);
        let percentiles = Percentiles {
            min_ns: histogram.min(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            p99_99_ns: at(0.9999),
            max_ns: histogram.max(),
        };
        let encoded = || {
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(histogram, &mut bytes).ok().map(|_| STANDARD.encode(bytes))
        };
        let mean_ns = times.sum as f64 / count as f64;
        Some(Self { count, mean_ns, percentiles, histogram: all.then(encoded).flatten() })
    }
}
