//! Parser of resctl-bench's `result.json`: a cell for each finished bench with figures of its own, and for each
//! scenario of `protection`. A bench is one sample.
//!
//! Results of `iocost-tune` and `iocost-qos` are values over vrates instead of single figures: `merge` reads the
//! former, and nothing the latter.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wb_model::lenient_number::LenientNumber;
use wb_model::{Direction, Gate, Metric};

use crate::foreign::{ForeignCell, ForeignResults, ForeignSample};
use crate::format::{Format, FormatDefinition};
use crate::naming::test_name;
use crate::{ReadError, json};

#[derive(Deserialize)]
struct Job {
    spec: Spec,
    #[serde(default)]
    sysinfo: System,
    #[serde(default)]
    record: Value,
    #[serde(default)]
    result: Value,
}

#[derive(Deserialize)]
struct Spec {
    kind: String,
    id: Option<String>,
    passive: Option<String>,
    /// Of the bench, then of each of its stages.
    #[serde(default)]
    props: Vec<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct System {
    bench_version: String,
    sysreqs_missed: BTreeMap<String, Value>,
    sysreqs_report: Option<Machine>,
    mem: Option<Memory>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Machine {
    kernel_version: String,
    scr_dev_model: String,
    scr_dev_fwrev: String,
}

#[derive(Deserialize)]
struct Memory {
    /// Size of the emulated machine in GiB.
    profile: Option<u32>,
}

/// Percentiles of requests, by the share of the time that they were below: in seconds.
type Latencies = BTreeMap<String, BTreeMap<String, LenientNumber>>;

#[derive(Deserialize)]
struct Storage {
    #[serde(default)]
    mem_offload_factor: LenientNumber,
    #[serde(default)]
    mem_usage: LenientNumber,
    #[serde(default)]
    mem_size: LenientNumber,
    /// Latencies of reads, then of writes.
    #[serde(default)]
    iolat: Vec<Latencies>,
}

#[derive(Deserialize)]
struct HashdParams {
    #[serde(default)]
    rps_max: LenientNumber,
    #[serde(default)]
    hash_size: LenientNumber,
    #[serde(default)]
    mem_size: LenientNumber,
}

#[derive(Deserialize)]
struct IocostParams {
    model: BTreeMap<String, LenientNumber>,
}

#[derive(Deserialize)]
struct Protection {
    scenarios: Vec<Scenario>,
    combined_mem_hog: Option<MemHog>,
}

#[derive(Deserialize)]
enum Scenario {
    MemHog(MemHog),
    MemHogTune(MemHogTune),
}

#[derive(Deserialize)]
struct MemHogTune {
    final_run: Option<MemHog>,
}

#[derive(Deserialize)]
struct MemHog {
    #[serde(default)]
    isol: BTreeMap<String, LenientNumber>,
    #[serde(default)]
    lat_imp: BTreeMap<String, LenientNumber>,
    #[serde(default)]
    work_csv: LenientNumber,
    #[serde(default)]
    base_rps: LenientNumber,
    #[serde(default)]
    fail_msgs: Vec<String>,
    #[serde(default)]
    iolat: Vec<Latencies>,
}

/// Figures of the model of a device, all of which decide.
const MODEL: [(&str, &str); 6] = [
    ("rbps", "B/s"),
    ("rseqiops", "ops/s"),
    ("rrandiops", "ops/s"),
    ("wbps", "B/s"),
    ("wseqiops", "ops/s"),
    ("wrandiops", "ops/s"),
];

pub(crate) const FORMAT: Format = Format::new(&FormatDefinition {
    opening: '[',
    ..FormatDefinition::json(
        "resctl-bench",
        1,
        |text| text.contains("\"bench_version\"") && text.contains("\"sysinfo\""),
        |text, _| read(text),
    )
});

fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let jobs: Vec<Job> = json::parse_document(FORMAT, text)?;
    let mut foreign = ForeignResults::default();
    for (index, job) in jobs.iter().enumerate() {
        if foreign.machine.facts.kernel.is_empty() {
            job.sysinfo.describe(&mut foreign);
        }
        job.add(index, &mut foreign)?;
    }
    foreign.require_cells("bench has finished")
}

impl System {
    fn describe(&self, foreign: &mut ForeignResults) {
        foreign.add_provenance("resctl-bench version", Some(&self.bench_version));
        let Some(machine) = &self.sysreqs_report else { return };
        foreign.machine.facts.kernel.clone_from(&machine.kernel_version);
        foreign.add_provenance("kernel", Some(&machine.kernel_version));
        foreign.add_provenance("device", Some(format!("{} {}", machine.scr_dev_model, machine.scr_dev_fwrev)));
    }
}

impl Job {
    fn add(&self, position: usize, foreign: &mut ForeignResults) -> Result<(), ReadError> {
        let kind = self.spec.kind.as_str();
        let unread = match kind {
            "iocost-tune" => Some("`weighbridge merge` reads it"),
            "storage" | "hashd-params" | "iocost-params" | "protection" => None,
            _ => Some("only storage, hashd-params, iocost-params and protection are imported"),
        };
        if let Some(reason) = unread {
            foreign.notes.push(format!("result {position} (`{kind}`): {reason}"));
            return Ok(());
        }
        if self.result.is_null() {
            foreign.notes.push(format!("result {position} (`{kind}`): the bench is not finished"));
            return Ok(());
        }
        let malformed = |error: serde_json::Error| ReadError::Malformed {
            format: FORMAT,
            reason: format!("result {position} (`{kind}`): {}", json::without_type_names(&error.to_string())),
        };
        let mut sample = self.sample(format!("{position}/result"));
        match kind {
            "storage" => Storage::deserialize(&self.result).map_err(malformed)?.set(&mut sample),
            // Their results are what they recorded.
            "hashd-params" => HashdParams::deserialize(&self.record).map_err(malformed)?.set(&mut sample),
            "iocost-params" => IocostParams::deserialize(&self.record).map_err(malformed)?.set(&mut sample),
            _ => {
                return Protection::deserialize(&self.result)
                    .map_err(malformed)
                    .map(|all| self.add_scenarios(position, all, foreign));
            }
        }
        let mut cell = self.cell();
        cell.samples.extend([sample]);
        foreign.add_apart(cell);
        Ok(())
    }

    fn sample(&self, location: String) -> ForeignSample {
        let mut sample = ForeignSample::at(location);
        let missed: Vec<&str> = self.sysinfo.sysreqs_missed.keys().map(String::as_str).collect();
        if !missed.is_empty() {
            sample.findings.push(format!("requirements of resctl-bench were not met: {}", missed.join(", ")));
        }
        sample
    }

    fn cell(&self) -> ForeignCell {
        let Spec { kind, id, passive, props } = &self.spec;
        let summary = format!("the bench {kind} of resctl-bench");
        let mut cell = ForeignCell::new(test_name("resctl", kind), summary);
        for (name, value) in props.first().into_iter().flatten() {
            cell.axis(name, if value.is_empty() { "true" } else { value });
        }
        if let Some(profile) = self.sysinfo.mem.as_ref().and_then(|memory| memory.profile) {
            cell.own_axis("mem-profile", profile);
        }
        for (name, value) in [("id", id), ("passive", passive)] {
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                cell.own_axis(name, value);
            }
        }
        cell
    }

    fn add_scenarios(&self, index: usize, all: Protection, foreign: &mut ForeignResults) {
        let Protection { scenarios, combined_mem_hog } = all;
        let scenarios = scenarios.into_iter().enumerate().map(|(number, scenario)| {
            let (name, hog) = match scenario {
                Scenario::MemHog(hog) => ("mem-hog", Some(hog)),
                Scenario::MemHogTune(tune) => ("mem-hog-tune", tune.final_run),
            };
            (name, hog, self.spec.props.get(number + 1), format!("{index}/result/scenarios/{number}"))
        });
        let combined =
            combined_mem_hog.map(|hog| ("combined", Some(hog), None, format!("{index}/result/combined_mem_hog")));
        for (name, hog, props, location) in scenarios.chain(combined) {
            let mut cell = self.cell();
            for (name, value) in props.into_iter().flatten().filter(|(name, _)| *name != "scenario") {
                cell.distinct_axis(name, value);
            }
            cell.own_axis("scenario", name);
            let mut sample = self.sample(location);
            match hog {
                Some(hog) => hog.set(&mut sample),
                None => sample.failure = Some("resctl-bench: no size of the hog was isolated enough".to_owned()),
            }
            cell.samples.extend([sample]);
            foreign.add_apart(cell);
        }
    }
}

impl Storage {
    fn set(self, sample: &mut ForeignSample) {
        require(sample, "mem_offload_factor", self.mem_offload_factor);
        sample.push_reading(ratio("mem-offload-factor").primary(), self.mem_offload_factor.0);
        sample.push_reading(Metric::throughput("mem-size", "B"), self.mem_size.0);
        sample.push_reading(Metric::resource("mem-usage", "B"), self.mem_usage.0);
        push_latencies(sample, &self.iolat);
    }
}

impl HashdParams {
    fn set(self, sample: &mut ForeignSample) {
        require(sample, "rps_max", self.rps_max);
        sample.push_reading(Metric::throughput("rps-max", "req/s").primary(), self.rps_max.0);
        sample.push_reading(Metric::check("hash-size", "B"), self.hash_size.0);
        sample.push_reading(Metric::check("mem-size", "B"), self.mem_size.0);
    }
}

impl IocostParams {
    fn set(self, sample: &mut ForeignSample) {
        for (name, unit) in MODEL {
            let value = self.model.get(name).copied().unwrap_or_default();
            require(sample, name, value);
            sample.push_reading(Metric::throughput(name, unit).primary(), value.0);
        }
    }
}

impl MemHog {
    fn set(self, sample: &mut ForeignSample) {
        let mean = |values: &BTreeMap<String, LenientNumber>| values.get("mean").copied().unwrap_or_default();
        require(sample, "isol", mean(&self.isol));
        sample.push_reading(ratio("isolation").primary(), mean(&self.isol).0);
        sample.push_reading(ratio("work-conservation"), self.work_csv.0);
        sample.push_reading(Metric::check("latency-impact", "").direction(Direction::Lower), mean(&self.lat_imp).0);
        sample.push_reading(Metric::throughput("base-rps", "req/s"), self.base_rps.0);
        push_latencies(sample, &self.iolat);
        sample
            .findings
            .extend(self.fail_msgs.iter().map(|message| format!("a run of the memory hog failed: {message}")));
    }
}

fn ratio(name: &str) -> Metric {
    Metric::throughput(name, "")
}

fn require(sample: &mut ForeignSample, name: &str, value: LenientNumber) {
    if value.0.is_none() {
        sample.reject(Gate::Output, format!("missing or invalid `{name}`: expected a number"));
    }
}

/// Latencies over all requests (`cum`) of each kind.
fn push_latencies(sample: &mut ForeignSample, latencies: &[Latencies]) {
    for (kind, percentiles) in ["read", "write"].iter().zip(latencies) {
        let cumulative = |values: &BTreeMap<String, LenientNumber>| values.get("cum").and_then(|value| value.0);
        // Without requests all of them are 0.
        let valued = percentiles.iter().filter_map(|(percent, values)| {
            Some((percent.parse::<f64>().ok()?, cumulative(values).filter(|seconds| *seconds > 0.0)?))
        });
        for (percent, seconds) in valued {
            let metric = Metric::latency(&format!("{kind}-lat-p{percent}"), "ns");
            sample.push_reading(metric, Some(seconds * 1e9));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::row;

    /// A result with a bench of this kind.
    fn result(kind: &str, props: &str, record: &str, result: &str) -> String {
        format!(
            r#"{{"spec": {{"kind": "{kind}", "id": null, "passive": null, "props": {props}}}, "period": [1, 2],
               "sysinfo": {{"bench_version": "2.2.6 x86_64", "sysreqs_missed": {{"HostCriticalServices": ["x"]}},
               "sysreqs_report": {{"kernel_version": "6.1.0", "scr_dev_model": "HFS256"}}, "mem": {{"profile": 16}}}},
               "record": {record}, "result": {result}}}"#
        )
    }

    fn cells(results: &[String]) -> Vec<(String, Vec<(String, f64)>)> {
        let (_, foreign) = crate::read(&format!("[{}]", results.join(",")), crate::ReadOptions::default()).unwrap();
        let values = |cell: &ForeignCell| {
            let readings = row(cell, 0).readings.into_iter();
            readings.map(|reading| (reading.metric.key().to_string(), reading.value)).collect()
        };
        foreign.cells.iter().map(|cell| (format!("{}:{}", cell.test, cell.case()), values(cell))).collect()
    }

    const LATENCIES: &str = r#"[{"50": {"cum": 0.0001, "mean": 0.5}, "99.9": {"cum": 0.002}, "mean": {"cum": 7}},
        {"50": {"cum": 0}, "99.9": {"cum": 0}}]"#;

    fn values(expected: &[(&str, f64)]) -> Vec<(String, f64)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn benches_with_figures_of_their_own_are_cells() {
        let storage = format!(
            r#"{{"mem_offload_factor": 1.25, "mem_usage": 12, "mem_size": 15, "iolat": {LATENCIES}, "nr_reports": [9, 9]}}"#
        );
        let model = r#"{"devnr": "259:0", "model": {"rbps": 1, "rseqiops": 2, "rrandiops": 3, "wbps": 4, "wseqiops": 5,
            "wrandiops": 6}, "qos": {}}"#;
        let all = cells(&[
            result("storage", r#"[{"loops": "3", "apply": ""}]"#, "{}", &storage),
            result("iocost-params", "[{}]", model, "true"),
            result(
                "hashd-params",
                "[{}]",
                r#"{"hash_size": 7, "rps_max": 800, "mem_size": 9, "mem_frac": 0.8}"#,
                "true",
            ),
        ]);
        let [storage, params, hashd] = &all[..] else { panic!("{all:?}") };
        assert_eq!(storage.0, "resctl-storage:apply=true,loops=3,mem-profile=16");
        let expected = [
            ("throughput/mem-offload-factor", 1.25),
            ("throughput/mem-size", 15.0),
            ("resource/mem-usage", 12.0),
            ("latency/read-lat-p50", 1e5),
            ("latency/read-lat-p99.9", 2e6),
        ];
        assert_eq!(storage.1, values(&expected));
        assert_eq!((params.0.as_str(), params.1.len()), ("resctl-iocost-params:mem-profile=16", 6));
        assert_eq!(params.1[5], ("throughput/wrandiops".to_owned(), 6.0));
        assert_eq!(hashd.1[0], ("throughput/rps-max".to_owned(), 800.0));
    }

    #[test]
    fn every_scenario_of_a_protection_is_a_cell() {
        let hog = |isolation: f64| {
            format!(
                r#"{{"isol": {{"mean": {isolation}, "01": 0.5}}, "lat_imp": {{"mean": 0.1}}, "work_csv": 0.9, "base_rps": 50,
                   "fail_msgs": ["oom"], "iolat": {LATENCIES}}}"#
            )
        };
        let scenarios = format!(
            r#"{{"scenarios": [{{"MemHog": {}}}, {{"MemHogTune": {{"final_run": null}}}}], "combined_mem_hog": {}}}"#,
            hog(0.95),
            hog(0.75)
        );
        let props = r#"[{}, {"scenario": "mem-hog", "load": "0.8"}, {"scenario": "mem-hog-tune", "load": "1.0"}]"#;
        let all = cells(&[result("protection", props, "{}", &scenarios)]);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "resctl-protection:load=0.8,mem-profile=16,scenario=mem-hog",
            "resctl-protection:load=1.0,mem-profile=16,scenario=mem-hog-tune",
            "resctl-protection:mem-profile=16,scenario=combined",
        ];
        assert_eq!(names, expected);
        assert_eq!((all[0].1[0].clone(), all[2].1[0].1), (("throughput/isolation".to_owned(), 0.95), 0.75));
        assert!(all[1].1.is_empty());
    }

    #[test]
    fn benches_that_are_not_imported_are_named() {
        let read = |results: &[String]| crate::read(&format!("[{}]", results.join(",")), crate::ReadOptions::default());
        let tune = result("iocost-tune", "[{}]", "{}", "{}");
        let error = read(std::slice::from_ref(&tune)).unwrap_err().to_string();
        assert_eq!(error, "nothing to import: result 0 (`iocost-tune`): `weighbridge merge` reads it");
        let unfinished = result("storage", "[{}]", "{}", "null");
        let error = read(&[unfinished]).unwrap_err().to_string();
        assert_eq!(error, "nothing to import: result 0 (`storage`): the bench is not finished");
        let hashd = result("hashd-params", "[{}]", r#"{"rps_max": null}"#, "true");
        let (format, foreign) = read(&[tune, result("iocost-qos", "[{}]", "{}", "{}"), hashd]).unwrap();
        assert_eq!((format, foreign.cells.len(), foreign.notes.len()), (FORMAT, 1, 2));
        let rejection = row(&foreign.cells[0], 0).rejection.map(|rejection| rejection.figures);
        assert_eq!(rejection.unwrap(), "missing or invalid `rps_max`: expected a number");
        let malformed = read(&[result("storage", "[{}]", "{}", "7")]).unwrap_err().to_string();
        let expected = "result 0 (`storage`): invalid type: integer `7`, expected an object";
        assert_eq!(malformed, format!("invalid resctl-bench results: {expected}"));
    }
}
