//! The conditions under which a bench measures, and whether its results hold under others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::Bytes;
use wb_results::contention::{
    Bench, Device, HashdParameters, IocostParameters, Passive, PassiveArea, SystemInfo, TimeScale, Versions,
};

use crate::figures;

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

/// The machine during a bench that sets everything except passive conditions.
#[must_use]
pub(crate) fn system_under(mut system: SystemInfo, passive: &Passive) -> SystemInfo {
    if !passive.contains(PassiveArea::Io) {
        system.device.scheduler = "none".to_owned();
        system.device.wbt = false;
    }
    system.zswap &= passive.contains(PassiveArea::Mem);
    system
}

/// The conditions under which a bench measures a machine, with the parameters that it needs.
pub(crate) fn conditions_on(
    system: &SystemInfo,
    bench: Bench,
    mem_profile: Option<u32>,
    base_model: Option<IocostParameters>,
    hashd: Option<HashdParameters>,
) -> Conditions {
    let Device { model, firmware, size, .. } = &system.device;
    Conditions {
        device: (model.clone(), firmware.clone(), *size),
        mem_profile,
        kernel: system.kernel.clone(),
        versions: current_versions(bench),
        base_model,
        hashd,
        time_scale: None,
    }
}

/// The versions of this program and of a bench in it.
pub fn current_versions(bench: Bench) -> Versions {
    let program = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")].join(".");
    Versions { program, bench: bench.version() }
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
            let system = system_under(system(), &passive.parse().unwrap());
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
