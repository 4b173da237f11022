//! fio's JSON (`--output-format=json` and `json+`), as far as it is used: of the test `fio`, which wants all of it
//! ([`super::report`]), and of reports that others measured, of any version and with any gap. fio 2 has latencies in
//! microseconds, with other names.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wb_model::lenient_number::LenientNumber;

#[derive(Debug, Clone, Deserialize)]
pub struct FioReport {
    #[serde(rename = "fio version")]
    pub version: String,
    pub time: Option<String>,
    #[serde(default, rename = "global options")]
    pub global: BTreeMap<String, Value>,
    #[serde(default)]
    jobs: Vec<JobReport>,
    /// Jobs that servers ran, instead of `jobs`.
    #[serde(default)]
    client_stats: Vec<JobReport>,
}

impl FioReport {
    /// All jobs, without the entry with the sum over all machines.
    pub fn jobs(&self) -> impl Iterator<Item = &JobReport> {
        self.jobs.iter().chain(self.client_stats.iter().filter(|job| job.jobname != "All clients"))
    }
}

/// Report of one job, or of a group of jobs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct JobReport {
    pub jobname: String,
    /// Jobs of a group start at the same time.
    pub groupid: i64,
    /// errno of the error that ended the job, or 0.
    pub error: Option<i32>,
    /// Operations that failed while the job went on (`continue_on_error`).
    pub total_err: u64,
    /// errno of the first of them.
    pub first_error: i32,
    /// The machine, if a server ran the job.
    pub hostname: Option<String>,
    /// Of the server that ran the job (`--client`).
    port: Option<u32>,
    #[serde(rename = "job options")]
    pub options: BTreeMap<String, Value>,
    read: OperationReport,
    write: OperationReport,
    trim: OperationReport,
    /// All operations, with `unified_rw_reporting`.
    mixed: OperationReport,
    /// Only the latencies of `fsync`, `fdatasync` and `sync_file_range`.
    pub sync: OperationReport,
    /// User CPU time in percent of the run time.
    pub usr_cpu: LenientNumber,
    /// Kernel CPU time in percent of the run time.
    pub sys_cpu: LenientNumber,
    /// Milliseconds, summed over the clones if they are reported as one (`group_reporting`).
    pub job_runtime: LenientNumber,
    /// Operations in flight at which the job met `latency_target`.
    pub latency_depth: LenientNumber,
    /// Latency in microseconds that most operations had to stay within; 0 without the option.
    pub latency_target: LenientNumber,
    /// The steady state that was to end the job (`steadystate`).
    pub steadystate: Option<SteadyState>,
}

/// Whether a job ended because its figures no longer changed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SteadyState {
    /// The criterion: `iops:10%`.
    pub ss: String,
    /// 1 if the criterion was met.
    pub attained: LenientNumber,
}

pub const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// Host and port of a server that ran jobs: fio's manual calls it a client.
pub type Client<'a> = (&'a str, u32);

impl JobReport {
    pub fn client(&self) -> Option<Client<'_>> {
        Some((self.hostname.as_deref().unwrap_or_default(), self.port?))
    }

    pub fn operation(&self, direction: &str) -> &OperationReport {
        match direction {
            "read" => &self.read,
            "write" => &self.write,
            "trim" => &self.trim,
            _ => &self.mixed,
        }
    }

    /// Kinds with operations. With `unified_rw_reporting=both` the sum is reported beside its parts; it is left out then.
    pub fn directions(&self) -> impl Iterator<Item = &'static str> {
        let has = |direction: &&str| self.operation(direction).has_operations();
        let has_parts = DIRECTIONS.iter().any(|direction| *direction != "mixed" && has(direction));
        DIRECTIONS.into_iter().filter(has).filter(move |direction| *direction != "mixed" || !has_parts)
    }

    /// Factor from the reported CPU use to that of all clones that `group_reporting` reports as one: fio divides the
    /// CPU time by the sum of their run times, so the report has their mean. `is_sequential` is whether kinds of
    /// operations ran one after the other. An option of the command line is not in the report; the run times then tell:
    /// that of a single job is about the elapsed time.
    pub fn group_cpu_factor(&self, is_group: bool, is_sequential: bool) -> f64 {
        const MIN_CLONES: f64 = 1.5;
        let factor = self.job_runtime.0.map(|sum| sum / self.elapsed(is_sequential));
        let valid = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
        valid.filter(|factor| is_group || *factor >= MIN_CLONES).unwrap_or(1.0)
    }

    /// Elapsed time in milliseconds. `is_sequential` is whether its kinds of operations ran one after the other.
    pub fn elapsed(&self, is_sequential: bool) -> f64 {
        let runtimes = self.directions().filter_map(|direction| self.operation(direction).runtime.0);
        if is_sequential { runtimes.sum() } else { runtimes.fold(0.0, f64::max) }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct OperationReport {
    pub total_ios: LenientNumber,
    /// Transferred; before fio 3 in KiB.
    pub(super) io_bytes: LenientNumber,
    pub iops: LenientNumber,
    /// Bytes per second.
    bw_bytes: LenientNumber,
    /// KiB per second.
    bw: LenientNumber,
    /// In milliseconds.
    pub runtime: LenientNumber,
    /// Operations that transferred less than requested.
    pub short_ios: LenientNumber,
    pub drop_ios: LenientNumber,
    pub(super) slat_ns: Option<LatencyReport>,
    pub(super) clat_ns: Option<LatencyReport>,
    pub(super) lat_ns: Option<LatencyReport>,
    slat: Option<LatencyReport>,
    clat: Option<LatencyReport>,
    lat: Option<LatencyReport>,
}

/// Latencies: of the submission, of the completion after that, and of both.
pub const LATENCIES: [&str; 3] = ["slat", "clat", "lat"];

impl OperationReport {
    /// Whether there were any; if their number is unknown, whether there are figures of them.
    pub fn has_operations(&self) -> bool {
        let figures = [self.iops, self.io_bytes, self.bw_bytes, self.bw];
        match self.total_ios.0 {
            Some(ios) => ios > 0.0,
            None => figures.into_iter().filter_map(|figure| figure.0).any(|figure| figure > 0.0),
        }
    }

    pub fn has_latencies(&self) -> bool {
        self.latency("lat").and_then(|(latency, _)| latency.count.0).is_some_and(|count| count > 0.0)
    }

    /// Transferred bytes, if they are known: before fio 3, which has `bw_bytes`, `io_bytes` was in KiB.
    pub fn bytes(&self) -> Option<f64> {
        self.io_bytes.0.filter(|_| self.bw_bytes.0.is_some())
    }

    /// Bandwidth in bytes per second.
    pub fn bandwidth(&self) -> Option<f64> {
        self.bw_bytes.0.or(self.bw.0.map(|kib| kib * 1024.0))
    }

    /// A latency, and its unit in nanoseconds.
    pub fn latency(&self, name: &str) -> Option<(&LatencyReport, f64)> {
        let (nanos, micros) = match name {
            "slat" => (&self.slat_ns, &self.slat),
            "clat" => (&self.clat_ns, &self.clat),
            _ => (&self.lat_ns, &self.lat),
        };
        nanos.as_ref().map(|latency| (latency, 1.0)).or(micros.as_ref().map(|latency| (latency, 1000.0)))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LatencyReport {
    pub max: LenientNumber,
    pub mean: LenientNumber,
    #[serde(rename = "N")]
    pub count: LenientNumber,
    /// By percent.
    pub percentile: BTreeMap<String, LenientNumber>,
    /// Operations by latency, with `json+`.
    pub bins: BTreeMap<String, LenientNumber>,
}
