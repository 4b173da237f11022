//! The machine that a bench measured, and whether its results hold for another.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;

use crate::parameters::{HashdParameters, IocostParameters};
use crate::{Bench, Passive, PassiveArea, figures};

/// What the header of a result states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SystemInfo {
    /// Release of the kernel.
    pub kernel: String,
    /// Number of CPUs.
    pub nr_cpus: u32,
    /// Size of the memory.
    pub memory: Bytes,
    /// Size of the swap areas.
    pub swap: Bytes,
    /// `vm.swappiness`.
    pub swappiness: u32,
    /// Whether zswap is enabled.
    pub zswap: bool,
    /// The memory that benches may use; `None` until it is known, or without a memory profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<MemoryProfile>,
    /// Settings that were left as they are.
    #[serde(default)]
    pub passive: Passive,
    /// The storage device.
    pub device: Device,
    /// The parameters of io.cost at the beginning, if it was enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iocost: Option<IocostParameters>,
    /// By how much durations were shortened for a trial, whose figures mean nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_scale: Option<TimeScale>,
    /// Requirements that were not met (`--force`), by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed_requirements: Vec<String>,
    /// Of a merged result: in what the machines of other sources differ from this one, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
}

/// A storage device and how the kernel drives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Device {
    /// Its name: `nvme0n1`.
    pub name: String,
    /// Its number: `259:5`.
    pub number: String,
    /// Its model.
    pub model: String,
    /// Version of its firmware; empty if unknown.
    pub firmware: String,
    /// Its capacity.
    pub size: Bytes,
    /// The I/O scheduler.
    pub scheduler: String,
    /// Whether writeback throttling is enabled.
    pub wbt: bool,
    /// Whether another controller of I/O than io.cost is active.
    pub other_controller: bool,
}

/// The memory of a bench: the machine that is emulated, if any, and what of it the workload gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemoryProfile {
    /// Memory of the emulated machine, in GiB: a power of two. `None`: none is emulated.
    pub profile: Option<u32>,
    /// Memory that is available without the balloon.
    pub avail: Bytes,
    /// What the workload gets.
    pub share: Bytes,
    /// A little less, for sizing: longer runs need more.
    pub target: Bytes,
}

/// What has to be equal for a result to be used again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Conditions {
    /// Model, firmware and size of the device.
    pub device: (String, String, Bytes),
    /// The memory profile, in GiB; `None`: off.
    pub mem_profile: Option<u32>,
    /// Release of the kernel.
    pub kernel: String,
    /// Versions of the program and of the bench.
    pub versions: Versions,
    /// The io.cost parameters that a bench starts from; `None` if it needs none.
    pub base_model: Option<IocostParameters>,
    /// The parameters of hashd that it starts from; `None` if it needs none.
    pub hashd: Option<HashdParameters>,
    /// By how much durations and sizes are shortened for a trial; `None`: they have their full length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_scale: Option<TimeScale>,
}

/// A factor by which durations are shortened for a trial, whose figures mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TimeScale(f64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a number from 0.01 to 1")]
pub struct ParseTimeScaleError;

impl FromStr for TimeScale {
    type Err = ParseTimeScaleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let scale = text.parse().ok().filter(|scale| (0.01..=1.0).contains(scale));
        scale.map(Self).ok_or(ParseTimeScaleError)
    }
}

impl TimeScale {
    pub fn factor(self) -> f64 {
        self.0
    }
}

/// Versions of the program, as far as they matter for results, and of a bench.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Versions {
    /// Major and minor version of the program.
    pub program: String,
    /// See [`Bench::version`].
    pub bench: u32,
}

impl Versions {
    pub fn current(bench: Bench) -> Self {
        let program = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")].join(".");
        Self { program, bench: bench.version() }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (bench version {})", self.program, self.bench)
    }
}

/// Why a result cannot be used again: a condition that has changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Mismatch {
    #[error("measured on another device: {before}, now {now}")]
    Device { before: String, now: String },
    #[error("measured with another memory profile: {}, now {}", profile_name(*.before), profile_name(*.now))]
    MemProfile {
        /// In GiB.
        before: Option<u32>,
        /// In GiB.
        now: Option<u32>,
    },
    #[error("measured with another kernel: {before}, now {now}")]
    Kernel { before: String, now: String },
    #[error("measured by another version: {before}, now {now}")]
    Versions { before: Versions, now: Versions },
    #[error("measured from other io.cost parameters: {}, now {}", describe_iocost(.before.as_ref()), describe_iocost(.now.as_ref()))]
    BaseModel { before: Option<IocostParameters>, now: Option<IocostParameters> },
    #[error("measured with other parameters of hashd")]
    Hashd,
    #[error("measured with durations times {}, now {}", scale_factor(*.before), scale_factor(*.now))]
    TimeScale { before: Option<TimeScale>, now: Option<TimeScale> },
}

fn scale_factor(scale: Option<TimeScale>) -> f64 {
    scale.map_or(1.0, TimeScale::factor)
}

fn profile_name(profile: Option<u32>) -> String {
    profile.map_or("off".to_owned(), |profile| format!("{profile} GiB"))
}

fn describe_iocost(parameters: Option<&IocostParameters>) -> String {
    parameters.map_or("none".to_owned(), |IocostParameters { model, qos }| format!("{model} {qos}"))
}

impl Conditions {
    /// The differences between these conditions and those of an earlier result.
    pub fn mismatches(&self, before: &Self) -> Vec<Mismatch> {
        let describe = |(model, firmware, size): &(String, String, Bytes)| {
            format!("{model} of {}, firmware {firmware:?}", figures::size(size.0 as f64))
        };
        let device = || Mismatch::Device { before: describe(&before.device), now: describe(&self.device) };
        let profile = || Mismatch::MemProfile { before: before.mem_profile, now: self.mem_profile };
        let kernel = || Mismatch::Kernel { before: before.kernel.clone(), now: self.kernel.clone() };
        let versions = || Mismatch::Versions { before: before.versions.clone(), now: self.versions.clone() };
        let model = || Mismatch::BaseModel { before: before.base_model, now: self.base_model };
        let time_scale = || Mismatch::TimeScale { before: before.time_scale, now: self.time_scale };
        let all = [
            (self.device != before.device).then(device),
            (self.mem_profile != before.mem_profile).then(profile),
            (self.kernel != before.kernel).then(kernel),
            (self.versions != before.versions).then(versions),
            (self.base_model != before.base_model).then(model),
            (self.hashd != before.hashd).then_some(Mismatch::Hashd),
            (self.time_scale != before.time_scale).then(time_scale),
        ];
        all.into_iter().flatten().collect()
    }
}

impl SystemInfo {
    /// The machine during a bench that sets everything except passive conditions.
    #[must_use]
    pub(crate) fn under(mut self, passive: &Passive) -> Self {
        if !passive.contains(PassiveArea::Io) {
            self.device.scheduler = "none".to_owned();
            self.device.wbt = false;
        }
        self.zswap &= passive.contains(PassiveArea::Mem);
        self
    }

    /// What differs on another machine, as the header names it.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let fields = |system: &Self| {
            let size = |bytes: Bytes| figures::size(bytes.0 as f64);
            [
                ("kernel", format!("{:?}", system.kernel)),
                ("nr_cpus", system.nr_cpus.to_string()),
                ("memory", size(system.memory)),
                ("swap", size(system.swap)),
                ("swappiness", system.swappiness.to_string()),
                ("zswap", system.zswap.to_string()),
                ("passive", system.passive.to_string()),
                ("size", size(system.device.size)),
                ("iosched", system.device.scheduler.clone()),
                ("wbt", if system.device.wbt { "on" } else { "off" }.to_owned()),
                ("missed", system.missed_requirements.join("/")),
            ]
        };
        let pairs = fields(self).into_iter().zip(fields(other));
        pairs.filter(|(own, other)| own != other).map(|(_, (name, value))| format!("{name}={value}")).collect()
    }

    /// The conditions under which a bench measures, with the parameters that it needs.
    pub fn conditions(
        &self,
        bench: Bench,
        mem_profile: Option<u32>,
        base_model: Option<IocostParameters>,
        hashd: Option<HashdParameters>,
    ) -> Conditions {
        let Device { model, firmware, size, .. } = &self.device;
        Conditions {
            device: (model.clone(), firmware.clone(), *size),
            mem_profile,
            kernel: self.kernel.clone(),
            versions: Versions::current(bench),
            base_model,
            hashd,
            time_scale: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> SystemInfo {
        let device = Device {
            name: "sda".to_owned(),
            number: "8:0".to_owned(),
            model: "A".to_owned(),
            firmware: String::new(),
            size: Bytes(1 << 40),
            scheduler: "bfq".to_owned(),
            wbt: true,
            other_controller: false,
        };
        SystemInfo {
            kernel: "6.1".to_owned(),
            nr_cpus: 2,
            memory: Bytes(8 << 30),
            swap: Bytes(0),
            swappiness: 60,
            zswap: true,
            profile: None,
            passive: Passive::default(),
            device,
            iocost: None,
            time_scale: None,
            missed_requirements: Vec::new(),
            merged: Vec::new(),
        }
    }

    #[test]
    fn conditions_are_those_during_the_measurement_and_of_passive_areas_those_before() {
        let under = |passive: &str| {
            let system = system().under(&passive.parse().unwrap());
            (system.device.scheduler, system.device.wbt, system.zswap)
        };
        assert_eq!(under("none"), ("none".to_owned(), false, false));
        assert_eq!(under("io"), ("bfq".to_owned(), true, false));
        assert_eq!(under("mem"), ("none".to_owned(), false, true));
    }

    #[test]
    fn every_changed_condition_is_named() {
        let before = Conditions {
            device: ("A".to_owned(), "1".to_owned(), Bytes(1 << 40)),
            mem_profile: Some(16),
            kernel: "6.1".to_owned(),
            versions: Versions { program: "0.1".to_owned(), bench: 1 },
            base_model: None,
            hashd: None,
            time_scale: None,
        };
        assert_eq!(before.mismatches(&before), []);
        let now = Conditions {
            device: ("B".to_owned(), String::new(), Bytes(1 << 40)),
            mem_profile: None,
            kernel: "6.2".to_owned(),
            versions: Versions { bench: 2, ..before.versions.clone() },
            ..before.clone()
        };
        let lines: Vec<String> = now.mismatches(&before).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        measured on another device: A of 1.0T, firmware "1", now B of 1.0T, firmware ""
        measured with another memory profile: 16 GiB, now off
        measured with another kernel: 6.1, now 6.2
        measured by another version: 0.1 (bench version 1), now 0.1 (bench version 2)
        "#);
    }
}
