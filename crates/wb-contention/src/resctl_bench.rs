//! Results of resctl-bench (`result.json`, compressed or not). Results of `iocost-tune` can be merged.
//!
//! Only values over the vrate are read; lines and solutions are computed from them anew, as those in the file were
//! fitted differently. Latencies there are in seconds.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use wb_model::{Bytes, IocostModel, IocostQos};
use wb_results::contention::{
    Answer, Bench, BenchResult, Device, Instance, InstanceLabel, IocostParameters, MemoryProfile, Passive, Percentile,
    Point, Series, SystemInfo, TuneAnswer, Versions,
};

use crate::merge::MergeSource;
use crate::solve;
use crate::spec::{BenchSpec, IocostTuneProperties};

/// Largest size of a decompressed file.
const MAX_TEXT: u64 = 1 << 30;
/// The first bytes of a compressed file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot be decompressed: {0}")]
    Compression(#[from] std::io::Error),
    #[error("not a result of resctl-bench: {0}")]
    Form(#[from] serde_json::Error),
    #[error("not a job file of resctl-bench: {0}")]
    Jobs(serde_json::Error),
    #[error("{bench} of resctl-bench {version} has no values over the vrate: expected version 2.2 or later")]
    Version { bench: String, version: String },
    /// The result has another form than results of the supported version.
    #[error("{bench} of resctl-bench {version} cannot be read: {reason}; expected the form of version 2.2")]
    ResultForm { bench: String, version: String, reason: serde_json::Error },
    #[error("has no finished iocost-tune, only {}: of other benches, `weighbridge import` reads the figures", found.join(", "))]
    NoTune { found: Vec<String> },
    #[error("{bench}: unknown {what} `{value}`")]
    Unknown { bench: String, what: &'static str, value: String },
}

#[derive(Deserialize)]
struct RawJob {
    spec: RawSpec,
    /// Start and end, in seconds since 1970.
    #[serde(default)]
    period: (i64, i64),
    sysinfo: RawSystem,
    #[serde(default)]
    record: serde_json::Value,
    #[serde(default)]
    result: serde_json::Value,
}

#[derive(Deserialize)]
struct RawSpec {
    kind: String,
    id: Option<String>,
    passive: Option<String>,
}

#[derive(Deserialize)]
struct RawSystem {
    bench_version: String,
    #[serde(default)]
    sysreqs_missed: BTreeMap<String, serde_json::Value>,
    sysreqs_report: Option<RawMachine>,
    mem: Option<RawMemory>,
    #[serde(default)]
    swappiness: u32,
    #[serde(default)]
    zswap_enabled: bool,
}

#[derive(Deserialize, Default)]
struct RawMachine {
    kernel_version: String,
    nr_cpus: u32,
    total_memory: u64,
    total_swap: u64,
    scr_dev: String,
    scr_devnr: (u32, u32),
    scr_dev_model: String,
    #[serde(default)]
    scr_dev_fwrev: String,
    scr_dev_size: u64,
    scr_dev_iosched: String,
}

#[derive(Deserialize)]
struct RawMemory {
    profile: Option<u32>,
    avail: u64,
    share: u64,
    target: u64,
}

#[derive(Deserialize)]
struct RawTuneRecord {
    /// The properties of the `iocost-qos`: of all of it, then of each setting.
    qos_props: Vec<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct RawTune {
    base_model: IocostModel,
    base_qos: IocostQos,
    mem_profile: Option<u32>,
    isol_pct: String,
    isol_thr: f64,
    data: BTreeMap<String, RawSeries>,
}

#[derive(Deserialize)]
struct RawSeries {
    data: Vec<Point>,
    #[serde(default)]
    outliers: Vec<Point>,
}

/// Reads a file; `name` is how messages name it. Results of other benches than `iocost-tune` are left out. Fails if
/// there are none but those, or if a value is unknown here.
pub fn read(name: &str, bytes: &[u8]) -> Result<Vec<MergeSource>, ReadError> {
    let mut decompressed = Vec::new();
    let text = if bytes.starts_with(&GZIP) {
        let limit = MAX_TEXT + 1;
        if MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut decompressed)? as u64 == limit {
            return Err(std::io::Error::other("more than 1 GiB").into());
        }
        &decompressed[..]
    } else {
        bytes
    };
    let jobs: Vec<RawJob> = serde_json::from_slice(text)?;
    let is_tuned = |job: &RawJob| job.spec.kind == Bench::IocostTune.name() && job.result.is_object();
    if !jobs.is_empty() && !jobs.iter().any(is_tuned) {
        return Err(ReadError::NoTune { found: jobs.into_iter().map(|job| job.spec.kind).collect() });
    }
    let tuned = jobs.into_iter().filter(is_tuned);
    tuned.zip(1..).map(|(job, position)| job.source(name, position)).collect()
}

impl RawJob {
    fn source(self, name: &str, position: u32) -> Result<MergeSource, ReadError> {
        let Self { spec, period: (start, end), sysinfo, record, result } = self;
        let unknown = |what, value: &str| {
            let bench = spec.kind.clone();
            ReadError::Unknown { bench, what, value: value.to_owned() }
        };
        if result.get("data").is_none() {
            return Err(ReadError::Version { bench: spec.kind.clone(), version: sysinfo.bench_version });
        }
        let (bench, version) = (&spec.kind, &sysinfo.bench_version);
        let other_form = |reason| ReadError::ResultForm { bench: bench.clone(), version: version.clone(), reason };
        let tune: RawTune = serde_json::from_value(result).map_err(other_form)?;
        let record: RawTuneRecord = serde_json::from_value(record).map_err(other_form)?;
        let qos_spec = qos_spec(&record.qos_props);
        let qos_spec = BenchSpec::parse(&qos_spec).map_err(|_| unknown("iocost-qos", &qos_spec))?;
        let mut series = BTreeMap::new();
        for (name, RawSeries { data, outliers }) in tune.data {
            // The names of factors have capitals there.
            let parsed: Series = name.to_ascii_lowercase().parse().map_err(|_| unknown("series", &name))?;
            let points = data.into_iter().chain(outliers).map(|point| in_own_unit(parsed, point)).collect();
            series.insert(parsed, solve::unfitted(points));
        }
        let isol_pct: Percentile = tune.isol_pct.parse().map_err(|_| unknown("isol-pct", &tune.isol_pct))?;
        let passive = match spec.passive.as_deref().filter(|passive| !passive.is_empty()) {
            Some(text) => text.parse::<Passive>().map_err(|_| unknown("passive", text))?,
            None => Passive::default(),
        };
        let base = IocostParameters { model: tune.base_model, qos: tune.base_qos };
        let answer = TuneAnswer {
            base,
            mem_profile: tune.mem_profile,
            isol_pct,
            isol_thr: tune.isol_thr,
            qos_spec: qos_spec.to_text(),
            series,
            solutions: Vec::new(),
            remarks: Vec::new(),
        };
        let label = spec.id.clone().map_or(InstanceLabel::Position(position), InstanceLabel::Id);
        let result = BenchResult {
            instance: Instance { bench: Bench::IocostTune, label },
            spec: BenchSpec { id: spec.id.clone(), ..BenchSpec::new(Bench::IocostTune) }.to_text(),
            versions: versions(&sysinfo.bench_version),
            system: sysinfo.system(passive, base),
            answer: Answer::IocostTune(solve::solve(answer, &IocostTuneProperties::default())),
        };
        Ok(MergeSource { name: name.to_owned(), result, times: times(start, end) })
    }
}

/// Whether a text is a job file: JSON, after lines of comments.
pub fn is_job_file(text: &str) -> bool {
    without_comments(text).trim_start().starts_with('{')
}

pub fn read_jobs(text: &str) -> Result<Vec<String>, ReadError> {
    #[derive(Deserialize)]
    struct RawJobs {
        job_specs: Vec<RawJobSpec>,
    }
    #[derive(Deserialize)]
    struct RawJobSpec {
        kind: String,
        id: Option<String>,
        passive: Option<String>,
        #[serde(default)]
        props: Vec<BTreeMap<String, String>>,
    }
    let jobs: RawJobs = serde_json::from_str(&without_comments(text)).map_err(ReadError::Jobs)?;
    let specification = |RawJobSpec { kind, id, passive, mut props }: RawJobSpec| {
        if props.is_empty() {
            props.push(BTreeMap::new());
        }
        props[0].extend(id.map(|id| ("id".to_owned(), id)));
        // The areas are separated by commas in the file, as they are within the program.
        props[0].extend(passive.map(|areas| ("passive".to_owned(), areas.replace(',', "/"))));
        specification(&kind, &props)
    };
    Ok(jobs.job_specs.into_iter().map(specification).collect())
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn qos_spec(groups: &[BTreeMap<String, String>]) -> String {
    specification(Bench::IocostQos.name(), groups).trim_end_matches(':').to_owned()
}

fn specification(bench: &str, groups: &[BTreeMap<String, String>]) -> String {
    let property =
        |(key, value): (&String, &String)| if value.is_empty() { key.clone() } else { format!("{key}={value}") };
    let group = |group: &BTreeMap<String, String>| group.iter().map(property).collect::<Vec<_>>().join(",");
    let mut text = bench.to_owned();
    groups.iter().for_each(|one| text += &format!(":{}", group(one)));
    text
}

/// Latencies are in seconds there, and in nanoseconds here.
fn in_own_unit(series: Series, point: Point) -> Point {
    match series {
        Series::Latency(..) => Point { y: point.y * 1e9, ..point },
        _ => point,
    }
}

/// Major and minor version, as those of one minor version can be merged there; its benches have no version of their
/// own.
fn versions(text: &str) -> Versions {
    let number = text.split(' ').next().unwrap_or_default();
    let minor = number.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    Versions { program: format!("resctl-bench {minor}"), bench: 0 }
}

/// Start and end for people; none without a time.
fn times(start: i64, end: i64) -> Option<(String, String)> {
    let text = |seconds: i64| jiff::Timestamp::from_second(seconds).ok().filter(|_| seconds > 0);
    Some((text(start)?.to_string(), text(end)?.to_string()))
}

impl RawSystem {
    fn system(self, passive: Passive, base: IocostParameters) -> SystemInfo {
        let machine = self.sysreqs_report.unwrap_or_default();
        let profile = self.mem.map(|memory| MemoryProfile {
            profile: memory.profile,
            avail: Bytes(memory.avail),
            share: Bytes(memory.share),
            target: Bytes(memory.target),
        });
        SystemInfo {
            kernel: machine.kernel_version,
            nr_cpus: machine.nr_cpus,
            memory: Bytes(machine.total_memory),
            swap: Bytes(machine.total_swap),
            swappiness: self.swappiness,
            zswap: self.zswap_enabled,
            profile,
            passive,
            device: Device {
                name: machine.scr_dev,
                number: format!("{}:{}", machine.scr_devnr.0, machine.scr_devnr.1),
                model: machine.scr_dev_model,
                firmware: machine.scr_dev_fwrev,
                size: Bytes(machine.scr_dev_size),
                scheduler: machine.scr_dev_iosched,
                wbt: false,
                other_controller: false,
            },
            iocost: Some(base),
            time_scale: None,
            missed_requirements: self.sysreqs_missed.into_keys().collect(),
            merged: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    fn result(device: &str, isolation: f64) -> serde_json::Value {
        let model = json!({"rbps": 1_091_439_492u64, "rseqiops": 52286, "rrandiops": 63784, "wbps": 192_329_466, "wseqiops": 12309, "wrandiops": 16119});
        let qos = json!({"rpct": 95.0, "rlat": 91619, "wpct": 95.0, "wlat": 331_874, "min": 60.0, "max": 100.0});
        let series = |values: [f64; 3]| {
            let point = |(x, y): (f64, f64)| json!({"x": x, "y": y});
            let [a, b, c] = values;
            json!({"data": [point((50.0, a)), point((75.0, b))], "outliers": [point((100.0, c))], "error": 0.0, "lines": {"points": [], "range": [50.0, 100.0]}})
        };
        json!([
            {"spec": {"kind": "iocost-params", "id": null, "passive": null, "props": [{}]}, "period": [1, 2],
             "sysinfo": {"bench_version": "2.2.3 x86_64"}, "record": {}, "result": true},
            {"spec": {"kind": "iocost-tune", "id": null, "passive": null, "props": [{}]},
             "period": [1_658_548_859, 1_658_548_860],
             "sysinfo": {"bench_version": "2.2.3 x86_64-unknown-linux-gnu", "sysreqs_missed": {}, "swappiness": 60,
                "zswap_enabled": false, "mem": {"profile": 16, "avail": 3, "share": 2, "target": 1},
                "sysreqs_report": {"kernel_version": "5.18.0", "nr_cpus": 52, "total_memory": 1, "total_swap": 2,
                    "scr_dev": "nvme0n1", "scr_devnr": [259, 0], "scr_dev_model": device, "scr_dev_fwrev": "8",
                    "scr_dev_size": 256_060_514_304u64, "scr_dev_iosched": "none"}},
             "record": {"dfl_qos": true, "qos_props": [{"dither": "", "vrate-intvs": "25", "vrate-max": "125"}]},
             "result": {"base_model": model, "base_qos": qos, "mem_profile": 16, "isol_pct": "05", "isol_thr": 0.9,
                "data": {"MOF": series([1.1, 1.2, 1.3]), "aMOF": series([1.1, 1.2, 1.2]),
                    "aMOF-delta": series([0.0, 0.0, 0.1]), "isol": series([isolation; 3]),
                    "lat-imp": series([0.0; 3]), "work-csv": series([0.9; 3]), "rlat-50-mean": series([0.001; 3])},
                "remarks": [], "solutions": {}}}
        ])
    }

    #[test]
    fn a_result_is_read_compressed_or_not() {
        let text = result("HFS256", 0.95).to_string();
        let mut compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        compressed.write_all(text.as_bytes()).unwrap();
        let [source] = &read("r.json", text.as_bytes()).unwrap()[..] else { panic!("one result") };
        assert_eq!(read("r.json", &compressed.finish().unwrap()).unwrap(), std::slice::from_ref(source));
        assert_eq!(source.times.as_ref().unwrap().0, "2022-07-23T04:00:59Z");
        let Answer::IocostTune(answer) = &source.result.answer else { panic!() };
        assert_eq!(answer.qos_spec.to_string(), "iocost-qos:vrate-max=125,vrate-intvs=25,dither");
        let values = |name: &str| {
            let fitted = &answer.series[&name.to_ascii_lowercase().parse::<Series>().unwrap()];
            let all = fitted.points.iter().chain(&fitted.rejected).map(|point| (point.x, point.y));
            all.collect::<Vec<_>>()
        };
        assert_eq!(values("MOF"), [(50.0, 1.1), (75.0, 1.2), (100.0, 1.3)]);
        assert!(values("rlat-50-mean").iter().all(|(_, y)| *y == 1e6), "in nanoseconds");
        assert!(!answer.solutions.is_empty());
        assert_eq!(source.result.versions.to_string(), "resctl-bench 2.2 (bench version 0)");
        assert_eq!(source.result.system.device.number, "259:0");
    }

    #[test]
    fn job_files_are_read_as_specifications() {
        let text = r#"// A job file of resctl-bench.
            { "job_specs": [
                { "kind": "iocost-params", "id": null, "passive": null, "props": [{}] },
                { "kind": "iocost-qos", "id": "a", "passive": "mem,io",
                  "props": [{ "vrate-intvs": "5", "allow-fail": "true" }, {}, { "min": "75", "max": "75" }] },
                { "kind": "storage", "id": null, "passive": null, "props": [{ "apply": "" }] }
            ] }"#;
        assert!(is_job_file(text) && !is_job_file("# comment\niocost-qos"));
        let specs = read_jobs(text).unwrap();
        let parsed: Vec<BenchSpec> = specs.iter().map(|spec| BenchSpec::parse(spec).unwrap()).collect();
        let expected = [
            "iocost-params",
            "iocost-qos:id=a,passive=mem/io,vrate-intvs=5,allow-fail::min=75,max=75",
            "storage:apply",
        ];
        assert_eq!(parsed, expected.map(|spec| BenchSpec::parse(spec).unwrap()));
        assert!(read_jobs("{}").unwrap_err().to_string().contains("job_specs"));
    }

    #[test]
    fn unknown_values_are_named() {
        let mut odd = result("x", 0.9);
        odd[1]["result"]["data"]["odd"] = odd[1]["result"]["data"]["MOF"].clone();
        let message = |text: &str| read("r", text.as_bytes()).unwrap_err().to_string();
        let mut old = result("x", 0.9);
        old[1]["sysinfo"]["bench_version"] = "2.1.3".into();
        old[1]["result"].as_object_mut().unwrap().remove("data");
        assert!(
            message(&old.to_string()).starts_with("iocost-tune of resctl-bench 2.1.3 has no values over the vrate")
        );
        let mut earlier = result("x", 0.9);
        earlier[1]["sysinfo"]["bench_version"] = "2.1.2".into();
        earlier[1]["result"]["data"]["MOF"] = json!({"points": []});
        let expected =
            "iocost-tune of resctl-bench 2.1.2 cannot be read: missing field `data`; expected the form of version 2.2";
        assert_eq!(message(&earlier.to_string()), expected);
        assert_eq!(message(&odd.to_string()), "iocost-tune: unknown series `odd`");
        assert!(message("{}").starts_with("not a result of resctl-bench: "));
        assert!(message("\u{1f}").starts_with("not a result of resctl-bench: "));
        assert!(read("r", &GZIP).is_err());
        let mut other = result("x", 0.9);
        other.as_array_mut().unwrap().pop();
        let expected =
            "has no finished iocost-tune, only iocost-params: of other benches, `weighbridge import` reads the figures";
        assert_eq!(message(&other.to_string()), expected);
        assert_eq!(read("r", b"[]").unwrap(), []);
    }
}
