//! Properties of `iocost-tune`, and its solutions.

use std::collections::BTreeSet;

use wb_diagnostics::Diagnostics;
use wb_results::contention::{LATENCY_PERCENTILES, LatencyKind, Percentile, Series, Solution, Target};

use crate::spec::reader::{Group, GroupReader, stages};
use crate::spec::value::{Fraction, Property, Value, plain_number};

#[derive(Debug, Clone, PartialEq)]
pub struct IocostTuneProperties {
    /// Lowest factor by which a solution scales the model.
    pub scale_min: f64,
    pub scale_max: f64,
    /// Analysed besides those that are always analysed.
    pub series: BTreeSet<Series>,
    /// As given; see [`Self::all_solutions`].
    pub solutions: Vec<Solution>,
}

impl Default for IocostTuneProperties {
    fn default() -> Self {
        Self { scale_min: 0.01, scale_max: 1.0, series: BTreeSet::new(), solutions: Vec::new() }
    }
}

impl IocostTuneProperties {
    /// The given solutions, or the eight of resctl-bench.
    pub fn all_solutions(&self) -> Vec<Solution> {
        if !self.solutions.is_empty() {
            return self.solutions.clone();
        }
        let named = |name: &str, target| Solution { name: name.to_owned(), target };
        let mut solutions = vec![
            named("naive", Target::NAIVE),
            named("bandwidth", Target::AmofMaxVrate),
            named("isolated-bandwidth", Target::IsolatedBandwidth),
            named("isolation", Target::Isolation),
        ];
        solutions.extend(QUARTERS.map(|(quarter, low, high)| {
            let target = Target::Latency { kind: LatencyKind::Read, percentile: Percentile::P99, low, high };
            named(&format!("rlat-99-{quarter}"), target)
        }));
        solutions
    }
}

/// Quarters of a slope, from its high end.
const QUARTERS: [(&str, f64, f64); 4] = [("q1", 0.75, 1.0), ("q2", 0.5, 0.75), ("q3", 0.25, 0.5), ("q4", 0.0, 0.25)];

struct VrateRange(f64, f64);

impl Value for VrateRange {
    const EXPECTED: &'static str = "a range of percent such as 75-100";

    fn parse(text: &str) -> Option<Self> {
        let (min, max) = text.split_once('-')?;
        let (min, max) = (plain_number(min)?, plain_number(max)?);
        (min > 0.0 && min <= max).then_some(Self(min, max))
    }
}

struct SlopePart(f64, f64);

impl Value for SlopePart {
    const EXPECTED: &'static str = "q1, q2, q3, q4 or a range such as 50%-75%";

    fn parse(text: &str) -> Option<Self> {
        if let Some((_, low, high)) = QUARTERS.into_iter().find(|(name, ..)| *name == text) {
            return Some(Self(low, high));
        }
        let (low, high) = text.split_once('-')?;
        let (Fraction(low), Fraction(high)) = (Fraction::parse(low)?, Fraction::parse(high)?);
        (low < high && high <= 1.0).then_some(Self(low, high))
    }
}

/// A percentile, or 0 for none.
struct OptionalPercentile(Option<Percentile>);

impl Value for OptionalPercentile {
    const EXPECTED: &'static str = "a percentile of the latency table such as 99, or 0 for none";

    fn parse(text: &str) -> Option<Self> {
        let percentile: Percentile = text.parse().ok()?;
        match percentile {
            Percentile::MIN => Some(Self(None)),
            other => LATENCY_PERCENTILES.contains(&other).then_some(Self(Some(other))),
        }
    }
}

enum FootprintTarget {
    Max,
    MaxVrate,
}

impl Value for FootprintTarget {
    const EXPECTED: &'static str = "max or (amof) max-vrate";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "max" => Some(Self::Max),
            "max-vrate" => Some(Self::MaxVrate),
            _ => None,
        }
    }
}

/// Words of the first group, for people.
const SERIES_NAMES: &str =
    "; or the name of a series, with a percentile of its table: isol-05, rlat-90, wlat-99.9-mean";

pub(crate) fn read(mut first: GroupReader<'_>, rest: &[Group<'_>]) -> Result<IocostTuneProperties, Diagnostics> {
    let default = IocostTuneProperties::default();
    let source = first.source;
    let mut properties = IocostTuneProperties {
        scale_min: first.take("scale-min").map_or(default.scale_min, |Fraction(scale)| scale),
        scale_max: first.take("scale-max").map_or(default.scale_max, |Fraction(scale)| scale),
        series: first.take_words(SERIES_NAMES, |word| word.parse().ok()).into_iter().collect(),
        solutions: Vec::new(),
    };
    if properties.scale_min <= 0.0 || properties.scale_min >= properties.scale_max {
        first.refuse("invalid range of the scale: expected 0 < scale-min < scale-max", "both are fractions");
    }
    first.finish()?;
    properties.solutions = stages(source, rest, read_solution)?;
    Ok(properties)
}

fn read_solution(mut group: GroupReader<'_>) -> Result<Solution, Diagnostics> {
    let is_named = group.has("name");
    let name: Option<crate::spec::Name> = group.take("name");
    if !is_named {
        group.refuse("missing name of the solution", "add `name=NAME`");
    }
    let has_percentiles = group.has("rpct") || group.has("wpct");
    let mut percentile = |key| group.take(key).map_or(Some(Percentile::P99), |OptionalPercentile(one)| one);
    let (rpct, wpct) = (percentile("rpct"), percentile("wpct"));
    let vrate = group.take("vrate");
    if has_percentiles && vrate.is_none() {
        group.refuse("rpct and wpct require vrate", "add a range: `vrate=75-100`");
    }
    let mut targets: Vec<Target> = Vec::new();
    targets.extend(vrate.map(|VrateRange(min, max)| Target::Vrate { min, max, rpct, wpct }));
    match group.take("mof") {
        Some(FootprintTarget::Max) => targets.push(Target::MofMax),
        Some(FootprintTarget::MaxVrate) => group.refuse("invalid target `mof=max-vrate`", "expected mof=max"),
        None => {}
    }
    targets.extend(group.take("amof").map(|target| match target {
        FootprintTarget::Max => Target::AmofMax,
        FootprintTarget::MaxVrate => Target::AmofMaxVrate,
    }));
    targets.extend(group.take::<bool>("isolation").filter(|is_set| *is_set).map(|_| Target::Isolation));
    let isolated: Option<bool> = group.take("isolated-bandwidth");
    targets.extend(isolated.filter(|is_set| *is_set).map(|_| Target::IsolatedBandwidth));
    for kind in LatencyKind::ALL {
        while let Some((percentile, SlopePart(low, high))) = group.take_prefixed(kind.prefix()) {
            match <Percentile as Value>::parse(percentile).filter(|one| LATENCY_PERCENTILES.contains(one)) {
                Some(percentile) => targets.push(Target::Latency { kind, percentile, low, high }),
                None => group.refuse(
                    format!("invalid percentile `{percentile}` of a latency"),
                    "expected one of the rows of the latency table, such as 50, 99 or 99.9",
                ),
            }
        }
    }
    if targets.len() > 1 {
        group.refuse("several targets of one solution", "put each solution into a group of its own");
    }
    group.finish()?;
    let name = name.map(|name| name.0).unwrap_or_default();
    Ok(Solution { name, target: targets.pop().unwrap_or(Target::NAIVE) })
}

impl IocostTuneProperties {
    pub(crate) fn groups(&self) -> Vec<Vec<Property>> {
        let default = Self::default();
        let scale = [
            Property::unless("scale-min", self.scale_min, default.scale_min),
            Property::unless("scale-max", self.scale_max, default.scale_max),
        ];
        let series = self.series.iter().map(|series| Property::key(series.to_string()));
        let first = scale.into_iter().flatten().chain(series).collect();
        let solution = |solution: &Solution| {
            // The target of a solution without one is not written.
            let target = (solution.target != Target::NAIVE).then(|| Property::key(solution.target.to_string()));
            std::iter::once(Property::new("name", &solution.name)).chain(target).collect()
        };
        std::iter::once(first).chain(self.solutions.iter().map(solution)).collect()
    }
}
