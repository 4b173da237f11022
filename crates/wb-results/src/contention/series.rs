//! Series over the vrate: what `iocost-tune` analyses.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LATENCY_PERCENTILES, LatencyKind, PERCENTILES, Percentile, TIME_PERCENTILES};

/// A figure of each stage of `iocost-qos`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Series {
    /// Memory offloading factor.
    Mof,
    /// The same of the footprint that is protected.
    Amof,
    /// Difference between both.
    AmofDelta,
    /// The percentile of the isolation that decides.
    Isol,
    /// Another percentile of the isolation.
    IsolPct(Percentile),
    /// Mean of the isolation.
    IsolMean,
    /// Mean latency impact.
    LatImp,
    /// Work conservation.
    WorkCsv,
    /// Missing reports.
    Missing,
    /// A percentile of an I/O latency within seconds, over the seconds.
    Latency(LatencyKind, Percentile, OverTime),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverTime {
    /// Arithmetic mean of the seconds' values.
    Mean,
    Percentile(Percentile),
}

impl Series {
    pub fn always() -> impl Iterator<Item = Self> {
        let plain = [Self::Mof, Self::Amof, Self::AmofDelta, Self::Isol, Self::LatImp, Self::WorkCsv];
        let latencies = LatencyKind::ALL.into_iter().flat_map(|kind| {
            Self::SOLUTION_LATENCIES.into_iter().map(move |(percentile, time)| Self::Latency(kind, percentile, time))
        });
        plain.into_iter().chain(latencies)
    }

    /// The latencies that a solution states.
    pub const SOLUTION_LATENCIES: [(Percentile, OverTime); 6] = [
        (Percentile::P50, OverTime::Mean),
        (Percentile::P50, OverTime::Percentile(Percentile::P99)),
        (Percentile::P50, OverTime::Percentile(Percentile::MAX)),
        (Percentile::P99, OverTime::Mean),
        (Percentile::P99, OverTime::Percentile(Percentile::P99)),
        (Percentile::MAX, OverTime::Percentile(Percentile::MAX)),
    ];
}

impl fmt::Display for OverTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.pad("mean"),
            Self::Percentile(percentile) => percentile.fmt(f),
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mof => f.pad("mof"),
            Self::Amof => f.pad("amof"),
            Self::AmofDelta => f.pad("amof-delta"),
            Self::Isol => f.pad("isol"),
            Self::IsolPct(percentile) => f.pad(&format!("isol-{percentile}")),
            Self::IsolMean => f.pad("isol-mean"),
            Self::LatImp => f.pad("lat-imp"),
            Self::WorkCsv => f.pad("work-csv"),
            Self::Missing => f.pad("missing"),
            Self::Latency(kind, percentile, time) => f.pad(&format!("{}{percentile}-{time}", kind.prefix())),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown series `{0}`: expected mof, amof, amof-delta, isol, isol-PCT, isol-mean, lat-imp, work-csv, missing, \
     rlat-PCT-TIME or wlat-PCT-TIME"
)]
pub struct UnknownSeries(String);

impl FromStr for Series {
    type Err = UnknownSeries;

    fn from_str(text: &str) -> Result<Self, UnknownSeries> {
        parse(text).ok_or_else(|| UnknownSeries(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Series> {
    let plain = [
        Series::Mof,
        Series::Amof,
        Series::AmofDelta,
        Series::Isol,
        Series::IsolMean,
        Series::LatImp,
        Series::WorkCsv,
        Series::Missing,
    ];
    if let Some(series) = plain.into_iter().find(|series| series.to_string() == text) {
        return Some(series);
    }
    let listed = |text: &str, list: &[Percentile]| text.parse().ok().filter(|percentile| list.contains(percentile));
    if let Some(percentile) = text.strip_prefix("isol-") {
        return listed(percentile, &PERCENTILES).map(Series::IsolPct);
    }
    let kind = LatencyKind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()))?;
    let rest = &text[kind.prefix().len()..];
    let (percentile, time) = rest.split_once('-').unwrap_or((rest, "mean"));
    let time = match time {
        "mean" => OverTime::Mean,
        other => OverTime::Percentile(listed(other, &TIME_PERCENTILES)?),
    };
    Some(Series::Latency(kind, listed(percentile, &LATENCY_PERCENTILES)?, time))
}

impl TryFrom<String> for Series {
    type Error = UnknownSeries;

    fn try_from(text: String) -> Result<Self, UnknownSeries> {
        text.parse()
    }
}

impl From<Series> for String {
    fn from(series: Series) -> Self {
        series.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_read_as_it_is_written() {
        let others = ["isol-05", "isol-mean", "missing", "rlat-99.9-mean", "wlat-100-99.9"];
        let all = Series::always().map(|series| series.to_string()).chain(others.map(str::to_owned));
        for name in all {
            assert_eq!(name.parse::<Series>().map(|series| series.to_string()), Ok(name));
        }
    }

    #[test]
    fn the_mean_is_the_default_column() {
        assert_eq!("rlat-99".parse::<Series>().unwrap().to_string(), "rlat-99-mean");
        for invalid in ["rlat", "rlat-", "rlat-98", "xlat-99", "isol-33", "rlat-99-98", "mof-max"] {
            assert!(invalid.parse::<Series>().is_err(), "{invalid}");
        }
    }
}
