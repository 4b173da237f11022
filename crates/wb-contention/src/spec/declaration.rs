//! Declarations of benches and their properties, for lists.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::Serialize;
use wb_model::Bytes;
use wb_results::contention::Bench;

use super::{
    HashdParamsProperties, IocostParamsProperties, IocostQosProperties, IocostTuneProperties, StorageProperties,
    StorageWork, default_mem_hog, default_mem_hog_tune,
};

/// A bench with its properties
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BenchDeclaration {
    /// Its name
    pub name: Bench,
    /// What it answers
    pub summary: String,
    /// Its properties
    pub properties: Vec<PropertyDeclaration>,
}

/// A property of a bench
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PropertyDeclaration {
    /// Its name
    pub name: String,
    /// The group that it belongs to
    pub group: PropertyGroup,
    /// Its default; `None` if there is no fixed one
    pub default: Option<String>,
    /// What it sets
    pub help: String,
}

/// The group of a specification that a property belongs to
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PropertyGroup {
    /// The first one, for the whole bench
    First,
    /// Each later one, for a stage
    Later,
}

impl PropertyDeclaration {
    fn new(group: PropertyGroup, name: &str, default: Option<String>, help: &str) -> Self {
        Self { name: name.to_owned(), group, default, help: help.to_owned() }
    }
}

impl BenchDeclaration {
    pub fn new(bench: Bench) -> Self {
        let mut properties = vec![
            without_default("id", "Name that distinguishes several instances of a bench"),
            without_default(
                "passive",
                "Settings that are left as they are: cpu, mem, fs, io, oomd, joined by `/`; all or ALL of them; or none",
            ),
        ];
        properties.extend(match bench {
            Bench::Storage => storage(),
            Bench::IocostParams => {
                let IocostParamsProperties { apply, commit } = IocostParamsProperties::default();
                reuse(apply, commit).into()
            }
            Bench::HashdParams => hashd_params(),
            Bench::IocostQos => iocost_qos(),
            Bench::IocostTune => iocost_tune(),
            Bench::Protection => protection(),
        });
        Self { name: bench, summary: bench.summary().to_owned(), properties }
    }
}

fn first(name: &str, default: impl Display, help: &str) -> PropertyDeclaration {
    PropertyDeclaration::new(PropertyGroup::First, name, Some(default.to_string()), help)
}

fn without_default(name: &str, help: &str) -> PropertyDeclaration {
    PropertyDeclaration::new(PropertyGroup::First, name, None, help)
}

fn later(name: &str, default: Option<String>, help: &str) -> PropertyDeclaration {
    PropertyDeclaration::new(PropertyGroup::Later, name, default, help)
}

fn reuse(apply: bool, commit: bool) -> [PropertyDeclaration; 2] {
    [
        first("apply", apply, "Later benches of the sequence use the result"),
        first("commit", commit, "Later sequences use the result, too"),
    ]
}

fn requests() -> [PropertyDeclaration; 3] {
    [
        without_default("hash-size", "Mean number of bytes that a request of hashd reads and hashes"),
        without_default("chunk-pages", "Number of pages that hashd reads or touches together"),
        without_default("log-bps", "Bytes per second that the log grows at the maximum rate"),
    ]
}

/// When a measurement of the available memory counts.
fn available_memory() -> [PropertyDeclaration; 3] {
    let default = StorageWork::default();
    [
        first(
            "mem-avail-err-max",
            default.mem_avail_err_max,
            "Largest valid deviation of the memory in use from its target, as a fraction of it",
        ),
        first("mem-avail-inner-retries", default.mem_avail_inner_retries, "Repetitions with the same available memory"),
        first(
            "mem-avail-outer-retries",
            default.mem_avail_outer_retries,
            "Repetitions after the available memory has been determined again",
        ),
    ]
}

fn storage() -> Vec<PropertyDeclaration> {
    let StorageProperties { apply, commit, work: default } = StorageProperties::default();
    let mut properties = Vec::from(reuse(apply, commit));
    properties.extend([
        first("loops", default.loops, "Number of measurements"),
        first("rps-max", default.rps_max, "Maximum rate of the faked CPU, in requests per second"),
    ]);
    properties.extend(requests());
    properties.extend(available_memory());
    properties
}

fn hashd_params() -> Vec<PropertyDeclaration> {
    let default = HashdParamsProperties::default();
    let mut properties = Vec::from(reuse(default.apply, default.commit));
    properties.extend([
        first("fake-cpu-load", default.fake_cpu_load, "Sleep instead of hashing, so that the CPU does not matter"),
        without_default("rps-max", "Requests per second at full load, instead of measuring the rate"),
    ]);
    properties.extend(requests());
    properties
}

fn iocost_qos() -> Vec<PropertyDeclaration> {
    let default = IocostQosProperties::default();
    let mut properties = Vec::from(requests());
    properties.extend([
        first("vrate-min", default.vrate_min, "Lowest vrate of the steps, in percent"),
        first("vrate-max", default.vrate_max, "Highest vrate of the steps, in percent"),
        first("vrate-intvs", default.vrate_intvs, "Number of steps; without any setting five from 100 to 20"),
        without_default(
            "dither",
            "Shift the steps randomly, by up to half a step or the given percent of vrate; from 0 downwards",
        ),
        first("storage-base-loops", default.storage_base_loops, "Measurements of storage without io.cost"),
        first("storage-loops", default.storage.loops, "Measurements of storage with each setting"),
        first("rps-max", default.storage.rps_max, "Maximum rate of the faked CPU of storage, in requests per second"),
    ]);
    properties.extend(available_memory());
    properties.extend([
        first(
            "isol-pct",
            default.isol_pct,
            "Percentile of the isolation that decides whether a footprint is protected",
        ),
        first("isol-thr", default.isol_thr, "Isolation that isol-pct must reach, as a fraction"),
        first("retries", default.retries, "Repetitions of storage after a failure"),
        first("allow-fail", default.allow_fail, "Leave out a setting whose storage fails, instead of ending the bench"),
        first("ignore-min-perf", default.ignore_min_perf, "Measure settings that throttle the device too much, too"),
        later("rpct", None, "Percentile of read latencies that lowers the vrate"),
        later("rlat", None, "Limit of the read latency at percentile rpct, in µs"),
        later("wpct", None, "Percentile of write latencies that lowers the vrate"),
        later("wlat", None, "Limit of the write latency at percentile wpct, in µs"),
        later("min", None, "Lowest vrate, in percent"),
        later("max", None, "Highest vrate, in percent"),
    ]);
    properties
}

fn iocost_tune() -> Vec<PropertyDeclaration> {
    let IocostTuneProperties { scale_min, scale_max, .. } = IocostTuneProperties::default();
    vec![
        first("scale-min", scale_min, "Lowest factor by which a solution scales the model"),
        first("scale-max", scale_max, "Highest factor by which a solution scales the model"),
        without_default("SERIES", "Name of another series to analyse, without a value: rlat-90-99, isol-05"),
        later("name", None, "Name of the solution"),
        later("vrate", None, "Target: a range of percent, lowered by the percentiles rpct and wpct of latencies"),
        later("rpct", Some("99".to_owned()), "Percentile of read latencies that lowers the vrate; 0 for none"),
        later("wpct", Some("99".to_owned()), "Percentile of write latencies that lowers the vrate; 0 for none"),
        later("mof", None, "Target: `max`, the lowest vrate with the largest memory offloading factor"),
        later("amof", None, "Target: `max` or `max-vrate`, the lowest or highest vrate with a protected footprint"),
        later("isolation", None, "Target: the highest vrate with the smallest difference between both footprints"),
        later("isolated-bandwidth", None, "Target: the highest vrate with the largest protected footprint"),
        later("rlat-PCT", None, "Target: q1, q2, q3, q4 or a range of the slope of a percentile of read latencies"),
        later("wlat-PCT", None, "Target: the same of write latencies"),
    ]
}

fn protection() -> Vec<PropertyDeclaration> {
    let hog = default_mem_hog();
    let tune = default_mem_hog_tune(Bytes(0), Bytes(0));
    let with = |default: &dyn Display| Some(default.to_string());
    vec![
        later(
            "scenario",
            Some("mem-hog".to_owned()),
            "mem-hog: a memory hog beside hashd; mem-hog-tune: the largest footprint that is protected from it",
        ),
        later("loops", with(&hog.loops), "Number of repetitions of mem-hog"),
        later("load", with(&hog.load), "Rate of hashd, relative to its maximum"),
        later("speed", with(&hog.speed), "Growth of the hog, relative to the write bandwidth: 10%, 25%, 50%, 1x, 2x"),
        later("size-min", None, "Smallest footprint that mem-hog-tune tries"),
        later("size-max", None, "Largest footprint that mem-hog-tune tries"),
        later("intvs", with(&tune.intvs), "Number of steps of mem-hog-tune from size-min to size-max"),
        later("isol-pct", with(&tune.isol_pct), "Percentile of the isolation that decides in mem-hog-tune"),
        later("isol-thr", with(&tune.isol_thr), "Isolation that isol-pct must reach in mem-hog-tune, as a fraction"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BenchSpec;

    /// The properties that a specification with an unknown one suggests.
    fn suggested(text: &str) -> Vec<String> {
        let mistakes = BenchSpec::parse(text).unwrap_err();
        let help = mistakes.as_slice().last().and_then(|mistake| mistake.help()).unwrap().to_owned();
        let mut names: Vec<String> = help
            .strip_prefix("expected one of ")
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .split(", ")
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    }

    fn declared(bench: Bench, group: PropertyGroup) -> Vec<String> {
        let all = BenchDeclaration::new(bench).properties.into_iter().filter(|one| one.group == group);
        let mut names: Vec<String> =
            all.map(|one| one.name).filter(|name| !name.contains(|c: char| c.is_ascii_uppercase())).collect();
        names.sort();
        names
    }

    #[test]
    fn the_declared_properties_are_those_that_are_read() {
        for bench in Bench::ALL {
            assert_eq!(declared(bench, PropertyGroup::First), suggested(&format!("{bench}:nosuch=1")), "{bench}");
        }
        assert_eq!(declared(Bench::IocostQos, PropertyGroup::Later), suggested("iocost-qos::nosuch=1"));
        let mut scenarios = suggested("protection::nosuch=1");
        scenarios.extend(suggested("protection::scenario=mem-hog-tune,size-min=1g,size-max=2g,nosuch=1"));
        for name in declared(Bench::Protection, PropertyGroup::Later) {
            assert!(scenarios.contains(&name), "{name}");
        }
        let solutions = suggested("iocost-tune::name=a,nosuch=1");
        for name in declared(Bench::IocostTune, PropertyGroup::Later) {
            assert!(solutions.contains(&name), "{name}");
        }
    }
}
