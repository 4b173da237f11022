//! fio's report with `--output-format=json+`, as far as it is used. Unknown fields are ignored: they differ between 3.x
//! versions.

use std::collections::BTreeMap;

use serde::Deserialize;
use wb_model::Nanos;

use super::job::Operation;

/// A report of fio.
#[derive(Debug, Clone, Deserialize)]
pub struct FioReport {
    /// fio's version.
    #[serde(rename = "fio version")]
    pub version: String,
    /// Options of all jobs.
    #[serde(rename = "global options", default)]
    pub global_options: BTreeMap<String, String>,
    /// The jobs, in the order of the job file.
    pub jobs: Vec<JobReport>,
}

impl FioReport {
    /// Operations in flight that a job ran with; `None` if the report does not have its options.
    pub fn iodepth(&self, job: &JobReport) -> Option<u32> {
        job.options.get("iodepth").or_else(|| self.global_options.get("iodepth"))?.parse().ok()
    }
}

/// Report of one job.
#[derive(Debug, Clone, Deserialize)]
pub struct JobReport {
    /// Its name.
    pub jobname: String,
    /// Its own options.
    #[serde(rename = "job options", default)]
    pub options: BTreeMap<String, String>,
    /// Group number; jobs of a group start at the same time.
    #[serde(default)]
    pub groupid: u32,
    /// Time that it ran, in milliseconds.
    #[serde(default)]
    pub job_runtime: u64,
    /// How much later than its group it began, in milliseconds (`startdelay`).
    #[serde(skip)]
    pub start_delay: u64,
    /// errno of the error that ended it, or 0.
    pub error: i64,
    /// Operations that failed while it went on (`continue_on_error`).
    #[serde(default)]
    pub total_err: u64,
    /// errno of the first of them.
    #[serde(default)]
    pub first_error: i64,
    /// Its reads.
    pub read: OperationReport,
    /// Its writes.
    pub write: OperationReport,
    /// Its calls of fsync and fdatasync.
    #[serde(default)]
    pub sync: Option<SyncReport>,
    /// CPU time in user mode, in percent of its run time.
    pub usr_cpu: f64,
    /// CPU time in the kernel, in percent of its run time.
    pub sys_cpu: f64,
}

/// Report of one kind of operation.
#[derive(Debug, Clone, Deserialize)]
pub struct OperationReport {
    /// Bytes transferred.
    pub io_bytes: u64,
    /// Completed operations.
    pub total_ios: u64,
    /// Run time in milliseconds.
    pub runtime: u64,
    /// Operations that transferred less than requested.
    #[serde(default)]
    pub short_ios: u64,
    /// Dropped operations.
    #[serde(default)]
    pub drop_ios: u64,
    /// Latency from submission to completion.
    pub clat_ns: LatencyReport,
    /// Latency from before submission to completion.
    pub lat_ns: LatencyReport,
}

/// Report of the calls that wait for the storage. fio 3.33 has no other figure of them.
#[derive(Debug, Clone, Deserialize)]
pub struct SyncReport {
    /// Their latencies.
    pub lat_ns: LatencyReport,
}

/// Latencies in nanoseconds.
#[derive(Debug, Clone, Deserialize)]
pub struct LatencyReport {
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Number of operations.
    #[serde(rename = "N")]
    pub count: u64,
    /// Counts by the midpoint of their bin.
    #[serde(default)]
    pub bins: BTreeMap<u64, u64>,
}

impl JobReport {
    /// The longest time that its operations took, in milliseconds.
    pub fn longest_runtime(&self) -> u64 {
        self.job_runtime.max(self.read.runtime).max(self.write.runtime)
    }

    /// Report of a kind of operation.
    pub fn operation(&self, operation: Operation) -> &OperationReport {
        match operation {
            Operation::Read => &self.read,
            Operation::Write => &self.write,
        }
    }
}

impl OperationReport {
    /// Operations per second; 0 if none ran.
    pub fn ios_per_second(&self) -> f64 {
        self.per_second(self.total_ios)
    }

    /// Bytes per second; 0 if no operation ran.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.io_bytes)
    }

    fn per_second(&self, amount: u64) -> f64 {
        if self.runtime == 0 { 0.0 } else { amount as f64 / self.runtime as f64 * 1000.0 }
    }
}

/// Parses fio's output. Engines and fio itself may print messages before and after the report.
pub fn parse(output: &str) -> Result<FioReport, String> {
    let start = if output.starts_with('{') { Some(0) } else { output.find("\n{").map(|at| at + 1) };
    let Some(start) = start else {
        let last_line: String = output.trim().lines().last().unwrap_or("nothing").chars().take(200).collect();
        return Err(format!("no report in fio's output: {last_line}"));
    };
    let mut reports = serde_json::Deserializer::from_str(&output[start..]).into_iter::<FioReport>();
    match reports.next() {
        Some(Ok(mut report)) => {
            let FioReport { jobs, global_options, .. } = &mut report;
            for job in jobs {
                let delay = job.options.get("startdelay").or_else(|| global_options.get("startdelay"));
                job.start_delay =
                    delay.and_then(|delay| delay.parse::<Nanos>().ok()).map_or(0, |delay| delay.0 / 1_000_000);
            }
            Ok(report)
        }
        Some(Err(error)) => Err(format!("invalid report of fio: {error}")),
        None => Err("empty report of fio".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::output;
    use super::*;

    #[test]
    fn a_report_is_found_among_other_output() {
        let text = format!("fio: connected to NBD server\n{}fio: done\n", output(&[(0, 1000, 0)]));
        let report = parse(&text).unwrap();
        assert_eq!((report.version.as_str(), report.jobs.len()), ("fio-3.33", 1));
        assert_eq!(report.jobs[0].read.clat_ns.bins.values().sum::<u64>(), 1000);
    }

    #[test]
    fn invalid_output_is_an_error() {
        let whole = output(&[(0, 1000, 0)]);
        assert!(parse(&whole[..whole.len() / 2]).unwrap_err().starts_with("invalid report of fio: EOF"));
        assert_eq!(
            parse("fio: engine nosuch not loadable\n").unwrap_err(),
            "no report in fio's output: fio: engine nosuch not loadable"
        );
        assert!(parse("").is_err());
        assert!(parse(&whole.replace("1.5", "nan")).is_err());
        assert!(parse(&whole.replace("\"clat_ns\"", "\"clat\"")).unwrap_err().contains("missing field `clat_ns`"));
    }

    proptest! {
        #[test]
        fn no_output_panics(text: String, cut in 0usize..2000) {
            let _ = parse(&text);
            let whole = output(&[(0, 7, 9)]);
            let _ = parse(&whole[..cut.min(whole.len())]);
        }
    }
}
