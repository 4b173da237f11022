//! Properties of `iocost-qos`.

use wb_diagnostics::{Diagnostics, SourceText};
use wb_model::io_cost::round_hundredths;
use wb_results::contention::{PERCENTILES, Percentile, QosOverride};

use crate::benches::storage::properties::StorageWork;
use crate::spec::reader::{Group, GroupReader, stages};
use crate::spec::value::{Count, Property, UnitFraction, Value, plain_number};

#[derive(Debug, Clone, PartialEq)]
pub struct IocostQosProperties {
    /// Lowest vrate of the steps, in percent; 0: the first step above 0.
    pub vrate_min: f64,
    /// In percent.
    pub vrate_max: f64,
    /// Number of steps between both; 0: none, or five if no settings are given either.
    pub vrate_intvs: u32,
    /// Random shift of the steps, so that several runs measure at different vrates.
    pub dither: Option<Dither>,
    /// Measurements of `storage` without io.cost.
    pub storage_base_loops: u32,
    /// `storage` with each setting.
    pub storage: StorageWork,
    /// Percentile of the isolation over the seconds that decides whether a footprint is protected.
    pub isol_pct: Percentile,
    /// Isolation that it has to reach.
    pub isol_thr: f64,
    /// Repetitions of `storage` after a failure.
    pub retries: u32,
    /// A setting whose `storage` fails is left out, rather than ending the bench.
    pub allow_fail: bool,
    /// Settings are measured even if they throttle the device too much.
    pub ignore_min_perf: bool,
    /// Changes to the QoS in force.
    pub settings: Vec<QosOverride>,
}

/// A shift of the steps of the vrate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dither {
    /// Up to half a step.
    HalfStep,
    /// Up to this many percent of vrate.
    Distance(f64),
}

impl Value for Dither {
    const EXPECTED: &'static str = "a number from 0, or no value";

    fn parse(text: &str) -> Option<Self> {
        plain_number(text).map(Self::Distance)
    }

    fn alone() -> Option<Self> {
        Some(Self::HalfStep)
    }
}

/// Steps if neither settings nor steps are given.
const DEFAULT_STEPS: u32 = 5;
/// Lowest vrate of a step, in percent.
const LOWEST_STEP: f64 = 1.0;

impl Default for IocostQosProperties {
    fn default() -> Self {
        Self {
            vrate_min: 0.0,
            vrate_max: 100.0,
            vrate_intvs: 0,
            dither: None,
            storage_base_loops: 3,
            storage: StorageWork { loops: 1, ..StorageWork::default() },
            isol_pct: Percentile::P05,
            isol_thr: DEFAULT_ISOL_THR,
            retries: 1,
            allow_fail: false,
            ignore_min_perf: false,
            settings: Vec::new(),
        }
    }
}

impl IocostQosProperties {
    /// The distance between two steps, and the lowest one, in percent; `None` without steps.
    fn step(&self) -> Option<(f64, f64)> {
        let steps = match self.vrate_intvs {
            0 if self.settings.is_empty() => DEFAULT_STEPS,
            0 => return None,
            steps => steps,
        };
        // From 0, the steps begin above it: 4 up to 10 are 10, 7.5, 5, 2.5. From another vrate, both ends are included, and a
        // single step is the highest.
        Some(match self.vrate_min {
            0.0 => {
                let step = self.vrate_max / f64::from(steps);
                (step, step)
            }
            min if steps > 1 => ((self.vrate_max - min) / f64::from(steps - 1), min),
            min => (self.vrate_max - min, self.vrate_max),
        })
    }

    /// The shift of the steps, in percent of vrate, for a random number from 0 to 1.
    pub fn shift(&self, random: f64) -> f64 {
        let Some((dither, (step, _))) = self.dither.zip(self.step()) else { return 0.0 };
        // Below the lowest step of a range from 0 is room for another one, so its steps are shifted downwards only, by up to
        // a whole one.
        match (dither, self.vrate_min) {
            (Dither::HalfStep, 0.0) => step * (random - 1.0),
            (Dither::HalfStep, _) => step * (random - 0.5),
            (Dither::Distance(distance), 0.0) => distance * (random - 1.0),
            (Dither::Distance(distance), _) => distance * (2.0 * random - 1.0),
        }
    }

    /// The given settings, then the steps of the vrate from the highest, shifted by `shift` percent.
    pub fn all_settings(&self, shift: f64) -> Vec<QosOverride> {
        let mut settings = self.settings.clone();
        if let Some((step, lowest)) = self.step() {
            let (lowest, highest) = ((lowest + shift).max(LOWEST_STEP), self.vrate_max + shift);
            let count = ((highest - lowest) / step + 1e-6).floor().max(0.0) as u32;
            settings.extend((0..=count).map(|index| QosOverride::fixed_vrate(highest - f64::from(index) * step)));
        }
        settings
    }
}

pub(crate) fn read(mut first: GroupReader<'_>, rest: &[Group<'_>]) -> Result<IocostQosProperties, Diagnostics> {
    let default = IocostQosProperties::default();
    first.accept_prefixed("storage-", &StorageWork::PROPERTIES);
    let mut properties = IocostQosProperties {
        vrate_min: first.take("vrate-min").unwrap_or(default.vrate_min),
        vrate_max: first.take("vrate-max").unwrap_or(default.vrate_max),
        vrate_intvs: first.take("vrate-intvs").unwrap_or(default.vrate_intvs),
        dither: first.take("dither"),
        storage_base_loops: first.take::<Count>("storage-base-loops").map_or(default.storage_base_loops, |n| n.0),
        storage: StorageWork {
            loops: first.take::<Count>("storage-loops").map_or(default.storage.loops, |n| n.0),
            ..StorageWork::take(&mut first)
        },
        isol_pct: take_isol_pct(&mut first),
        isol_thr: take_isol_thr(&mut first),
        retries: first.take("retries").unwrap_or(default.retries),
        allow_fail: first.take("allow-fail").unwrap_or(default.allow_fail),
        ignore_min_perf: first.take("ignore-min-perf").unwrap_or(default.ignore_min_perf),
        settings: Vec::new(),
    };
    if properties.vrate_min >= properties.vrate_max {
        first.refuse("invalid range of the vrate: expected vrate-min below vrate-max", "both are in percent");
    }
    if properties.vrate_intvs > MAX_STEPS {
        first.refuse(format!("invalid vrate-intvs: expected at most {MAX_STEPS}"), "each step takes several minutes");
    }
    let source = first.source;
    first.finish()?;
    properties.settings = stages(source, rest, read_setting)?;
    Ok(properties)
}

/// Vrates have two decimals.
const MAX_STEPS: u32 = 10_000;

/// A percentile of the isolation: one of those in its table.
pub(crate) fn take_isol_pct(group: &mut GroupReader<'_>) -> Percentile {
    let percentile = group.take("isol-pct").unwrap_or(Percentile::P05);
    if !PERCENTILES.contains(&percentile) {
        let names = PERCENTILES.map(|percentile| percentile.to_string()).join(", ");
        group.refuse(format!("invalid isol-pct `{percentile}`"), &format!("expected one of {names}"));
    }
    percentile
}

/// The isolation that the percentile has to reach: one above 1 is never reached.
pub(crate) fn take_isol_thr(group: &mut GroupReader<'_>) -> f64 {
    group.take("isol-thr").map_or(DEFAULT_ISOL_THR, |UnitFraction(threshold)| threshold)
}

/// Isolation that is required unless another one is given.
pub(crate) const DEFAULT_ISOL_THR: f64 = 0.9;

fn read_setting(mut group: GroupReader<'_>) -> Result<QosOverride, Diagnostics> {
    let mut percent = |key| group.take::<f64>(key).map(round_hundredths);
    let [rpct, wpct, min, max] = ["rpct", "wpct", "min", "max"].map(&mut percent);
    let setting = QosOverride { rpct, rlat: group.take("rlat"), wpct, wlat: group.take("wlat"), min, max };
    for (key, value) in [("rpct", rpct), ("wpct", wpct)] {
        if value.is_some_and(|value| value > 100.0) {
            group.refuse(format!("invalid {key}: expected at most 100"), "it is a percentile");
        }
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        group.refuse("invalid range of the vrate: expected min up to max", "both are in percent");
    }
    group.finish()?;
    Ok(setting)
}

/// Parses changes of a QoS: `min=75,max=75`.
pub fn parse_override(text: &str) -> Result<QosOverride, Diagnostics> {
    let source = SourceText::new("command line", text);
    let group = Group::parse(&source.text, 0);
    read_setting(GroupReader::new(&source, group))
}

impl IocostQosProperties {
    pub(crate) fn groups(&self) -> Vec<Vec<Property>> {
        let default = Self::default();
        let first = [
            Property::unless("vrate-min", self.vrate_min, default.vrate_min),
            Property::unless("vrate-max", self.vrate_max, default.vrate_max),
            Property::unless("vrate-intvs", self.vrate_intvs, default.vrate_intvs),
            self.dither.map(|dither| match dither {
                Dither::HalfStep => Property::key("dither"),
                Dither::Distance(distance) => Property::new("dither", distance),
            }),
            Property::unless("storage-base-loops", self.storage_base_loops, default.storage_base_loops),
            Property::unless("storage-loops", self.storage.loops, default.storage.loops),
        ];
        let last = [
            Property::unless("isol-pct", self.isol_pct, default.isol_pct),
            Property::unless("isol-thr", self.isol_thr, default.isol_thr),
            Property::unless("retries", self.retries, default.retries),
            Property::unless("allow-fail", self.allow_fail, default.allow_fail),
            Property::unless("ignore-min-perf", self.ignore_min_perf, default.ignore_min_perf),
        ];
        let first = first.into_iter().flatten().chain(self.storage.list()).chain(last.into_iter().flatten());
        let mut groups = vec![first.collect()];
        groups.extend(self.settings.iter().map(list_setting));
        groups
    }
}

fn list_setting(setting: &QosOverride) -> Vec<Property> {
    let properties = [
        Property::given("rpct", setting.rpct),
        Property::given("rlat", setting.rlat),
        Property::given("wpct", setting.wpct),
        Property::given("wlat", setting.wlat),
        Property::given("min", setting.min),
        Property::given("max", setting.max),
    ];
    properties.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vrates(properties: &IocostQosProperties, shift: f64) -> Vec<f64> {
        properties.all_settings(shift).iter().filter_map(QosOverride::as_fixed_vrate).collect()
    }

    #[test]
    fn without_properties_five_steps_are_measured() {
        assert_eq!(vrates(&IocostQosProperties::default(), 0.0), [100.0, 80.0, 60.0, 40.0, 20.0]);
    }

    #[test]
    fn steps_from_zero_begin_above_it_and_others_include_both_ends() {
        let steps = |vrate_min, vrate_intvs| IocostQosProperties {
            vrate_min,
            vrate_max: 10.0,
            vrate_intvs,
            ..IocostQosProperties::default()
        };
        assert_eq!(vrates(&steps(0.0, 4), 0.0), [10.0, 7.5, 5.0, 2.5]);
        assert_eq!(vrates(&steps(5.0, 6), 0.0), [10.0, 9.0, 8.0, 7.0, 6.0, 5.0]);
        assert_eq!(vrates(&steps(5.0, 1), 0.0), [10.0], "as many as are requested");
        assert_eq!(vrates(&steps(5.0, 2), 0.0), [10.0, 5.0]);
        assert_eq!(vrates(&steps(0.0, 1), 0.0), [10.0]);
    }

    #[test]
    fn settings_that_are_given_replace_the_default_steps_and_join_others() {
        let settings = vec![QosOverride::fixed_vrate(33.0)];
        let given = IocostQosProperties { settings, ..IocostQosProperties::default() };
        assert_eq!(vrates(&given, 0.0), [33.0]);
        assert_eq!(vrates(&IocostQosProperties { vrate_intvs: 2, ..given }, 0.0), [33.0, 100.0, 50.0]);
    }

    #[test]
    fn steps_are_shifted_by_up_to_half_a_step_and_stay_above_one_percent() {
        let dithered = IocostQosProperties { dither: Some(Dither::HalfStep), ..IocostQosProperties::default() };
        assert_eq!((dithered.shift(0.0), dithered.shift(1.0)), (-20.0, 0.0));
        assert_eq!(vrates(&dithered, dithered.shift(0.5)), [90.0, 70.0, 50.0, 30.0, 10.0]);
        assert_eq!(vrates(&dithered, -20.0), [80.0, 60.0, 40.0, 20.0]);
        let dither = Some(Dither::Distance(3.0));
        let limited = IocostQosProperties { dither, vrate_min: 20.0, vrate_intvs: 5, ..IocostQosProperties::default() };
        assert_eq!((limited.shift(0.0), limited.shift(0.5), limited.shift(1.0)), (-3.0, 0.0, 3.0));
        let from_zero = IocostQosProperties { dither, ..IocostQosProperties::default() };
        assert_eq!((from_zero.shift(0.0), from_zero.shift(1.0)), (-3.0, 0.0), "not further than the distance");
    }
}
