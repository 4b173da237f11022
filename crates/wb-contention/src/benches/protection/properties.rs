//! Properties of `protection`, and its scenarios.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_diagnostics::Diagnostics;
use wb_model::Bytes;
use wb_results::contention::{HogSpeed, MemHog, MemHogTune, Percentile};

use crate::benches::iocost_qos::properties::{DEFAULT_ISOL_THR, take_isol_pct, take_isol_thr};
use crate::spec::reader::{Group, GroupReader, stages};
use crate::spec::value::{Count, Fraction, Property, Value};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProtectionProperties {
    /// As given; see [`Self::all_scenarios`].
    pub scenarios: Vec<Scenario>,
}

/// A scenario of `protection`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scenario", rename_all = "kebab-case")]
pub enum Scenario {
    /// hashd at a load, then a memory hog beside it.
    MemHog(MemHog),
    /// The largest footprint of hashd that is protected from a memory hog.
    MemHogTune(MemHogTune),
}

impl Value for HogSpeed {
    const EXPECTED: &'static str = "10%, 25%, 50%, 1x or 2x";

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|speed| speed.name() == text)
    }
}

pub fn default_mem_hog() -> MemHog {
    MemHog { loops: 2, load: 1.0, speed: HogSpeed::Double }
}

/// The scenario with defaults, for footprints of a range.
pub fn default_mem_hog_tune(size_min: Bytes, size_max: Bytes) -> MemHogTune {
    let MemHog { load, speed, .. } = default_mem_hog();
    MemHogTune { load, speed, size_min, size_max, intvs: 10, isol_pct: Percentile::P05, isol_thr: DEFAULT_ISOL_THR }
}

impl ProtectionProperties {
    /// The given scenarios, or `mem-hog` at full load and at 80 %.
    pub fn all_scenarios(&self) -> Vec<Scenario> {
        if !self.scenarios.is_empty() {
            return self.scenarios.clone();
        }
        [1.0, 0.8].map(|load| Scenario::MemHog(MemHog { load, ..default_mem_hog() })).to_vec()
    }
}

const MEM_HOG: &str = "mem-hog";
const MEM_HOG_TUNE: &str = "mem-hog-tune";

#[derive(Clone, Copy)]
enum ScenarioKind {
    MemHog,
    MemHogTune,
}

impl Value for ScenarioKind {
    const EXPECTED: &'static str = "mem-hog or mem-hog-tune";

    fn parse(text: &str) -> Option<Self> {
        match text {
            MEM_HOG => Some(Self::MemHog),
            MEM_HOG_TUNE => Some(Self::MemHogTune),
            _ => None,
        }
    }
}

pub(crate) fn read(first: GroupReader<'_>, rest: &[Group<'_>]) -> Result<ProtectionProperties, Diagnostics> {
    let source = first.source;
    first.finish()?;
    Ok(ProtectionProperties { scenarios: stages(source, rest, read_scenario)? })
}

/// A group without `scenario` is `mem-hog`, so that an empty one stands for defaults.
fn read_scenario(mut group: GroupReader<'_>) -> Result<Scenario, Diagnostics> {
    let scenario = match group.take("scenario").unwrap_or(ScenarioKind::MemHog) {
        ScenarioKind::MemHog => Scenario::MemHog(read_mem_hog(&mut group)),
        ScenarioKind::MemHogTune => Scenario::MemHogTune(read_mem_hog_tune(&mut group)),
    };
    group.finish()?;
    Ok(scenario)
}

fn read_mem_hog(group: &mut GroupReader<'_>) -> MemHog {
    let default = default_mem_hog();
    MemHog {
        loops: group.take::<Count>("loops").map_or(default.loops, |count| count.0),
        load: take_load(group, default.load),
        speed: group.take("speed").unwrap_or(default.speed),
    }
}

fn read_mem_hog_tune(group: &mut GroupReader<'_>) -> MemHogTune {
    let default = default_mem_hog_tune(Bytes(0), Bytes(0));
    let is_given = group.has("size-min") && group.has("size-max");
    let (min, max): (Option<Bytes>, Option<Bytes>) = (group.take("size-min"), group.take("size-max"));
    if !is_given {
        group.refuse("missing range of footprints", "give both size-min and size-max");
    }
    let (size_min, size_max) = (min.unwrap_or_default(), max.unwrap_or_default());
    if min.is_some() && max.is_some() && (size_min > size_max || size_max == Bytes(0)) {
        group.refuse("invalid range of footprints: expected size-min up to size-max", "both are sizes such as 8g");
    }
    MemHogTune {
        load: take_load(group, default.load),
        speed: group.take("speed").unwrap_or(default.speed),
        size_min,
        size_max,
        intvs: group.take::<Count>("intvs").map_or(default.intvs, |count| count.0),
        isol_pct: take_isol_pct(group),
        isol_thr: take_isol_thr(group),
    }
}

fn take_load(group: &mut GroupReader<'_>, default: f64) -> f64 {
    let load = group.take("load").map_or(default, |Fraction(load)| load);
    if load == 0.0 || load > 1.0 {
        group.refuse("invalid load: expected a fraction above 0 and up to 1", "it is relative to the maximum rate");
    }
    load
}

impl ProtectionProperties {
    pub(crate) fn groups(&self) -> Vec<Vec<Property>> {
        let scenarios = self.scenarios.iter().map(|scenario| match scenario {
            Scenario::MemHog(hog) => list_mem_hog(hog),
            Scenario::MemHogTune(tune) => list_mem_hog_tune(tune),
        });
        std::iter::once(Vec::new()).chain(scenarios).collect()
    }
}

fn list_mem_hog(hog: &MemHog) -> Vec<Property> {
    let default = default_mem_hog();
    let properties = [
        Some(Property::new("scenario", MEM_HOG)),
        Property::unless("loops", hog.loops, default.loops),
        Property::unless("load", hog.load, default.load),
        Property::unless("speed", hog.speed, default.speed),
    ];
    properties.into_iter().flatten().collect()
}

fn list_mem_hog_tune(tune: &MemHogTune) -> Vec<Property> {
    let default = default_mem_hog_tune(tune.size_min, tune.size_max);
    let properties = [
        Some(Property::new("scenario", MEM_HOG_TUNE)),
        Property::unless("load", tune.load, default.load),
        Property::unless("speed", tune.speed, default.speed),
        Some(Property::new("size-min", tune.size_min)),
        Some(Property::new("size-max", tune.size_max)),
        Property::unless("intvs", tune.intvs, default.intvs),
        Property::unless("isol-pct", tune.isol_pct, default.isol_pct),
        Property::unless("isol-thr", tune.isol_thr, default.isol_thr),
    ];
    properties.into_iter().flatten().collect()
}
