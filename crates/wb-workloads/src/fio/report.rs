//! fio's report with `--output-format=json+`, in which nothing that is used may be missing.

use std::collections::BTreeMap;

use wb_model::Nanos;
use wb_model::lenient_number::LenientNumber;

use super::job::Operation;
use super::json;

#[derive(Debug, Clone)]
pub struct FioReport {
    pub version: String,
    pub global_options: BTreeMap<String, String>,
    /// In the order of the job file.
    pub jobs: Vec<JobReport>,
}

impl FioReport {
    /// Operations in flight that a job ran with; `None` if the report does not have its options.
    pub fn iodepth(&self, job: &JobReport) -> Option<u32> {
        job.options.get("iodepth").or_else(|| self.global_options.get("iodepth"))?.parse().ok()
    }
}

#[derive(Debug, Clone)]
pub struct JobReport {
    pub jobname: String,
    pub options: BTreeMap<String, String>,
    /// Jobs of a group start at the same time.
    pub groupid: u32,
    /// In milliseconds.
    pub job_runtime: u64,
    /// How much later than its group the job began, in milliseconds (`startdelay`).
    pub start_delay: u64,
    /// errno of the error that ended the job, or 0.
    pub error: i64,
    /// Operations that failed while the job went on (`continue_on_error`).
    pub total_err: u64,
    /// errno of the first of them.
    pub first_error: i64,
    pub read: OperationReport,
    pub write: OperationReport,
    pub sync: Option<SyncReport>,
    /// User CPU time in percent of the run time.
    pub usr_cpu: f64,
    /// Kernel CPU time in percent of the run time.
    pub sys_cpu: f64,
}

#[derive(Debug, Clone)]
pub struct OperationReport {
    pub io_bytes: u64,
    pub total_ios: u64,
    /// In milliseconds.
    pub runtime: u64,
    /// Operations that transferred less than requested.
    pub short_ios: u64,
    pub drop_ios: u64,
    /// Time of the submission; of no operations where an engine submits and completes in one call.
    pub slat_ns: LatencyReport,
    /// From submission to completion.
    pub clat_ns: LatencyReport,
    /// From before submission to completion.
    pub lat_ns: LatencyReport,
}

/// Report of the calls that wait for the storage. fio 3.33 has no other figure of them.
#[derive(Debug, Clone)]
pub struct SyncReport {
    pub lat_ns: LatencyReport,
}

/// In nanoseconds.
#[derive(Debug, Clone)]
pub struct LatencyReport {
    pub max: f64,
    pub mean: f64,
    pub count: u64,
    /// By the midpoint of their bin.
    pub bins: BTreeMap<u64, u64>,
}

impl JobReport {
    /// The longest time that its operations took, in milliseconds.
    pub fn longest_runtime(&self) -> u64 {
        self.job_runtime.max(self.read.runtime).max(self.write.runtime)
    }

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
    let start = if output.starts_with('{') { Some(0) } else { output.find("\n{").map(|position| position + 1) };
    let Some(start) = start else {
        let last_line: String = output.trim().lines().last().unwrap_or("nothing").chars().take(200).collect();
        return Err(format!("no report in fio's output: {last_line}"));
    };
    let mut reports = serde_json::Deserializer::from_str(&output[start..]).into_iter::<json::FioReport>();
    match reports.next() {
        Some(Ok(report)) => FioReport::complete(&report).map_err(|missing| format!("invalid report of fio: {missing}")),
        Some(Err(error)) => Err(format!("invalid report of fio: {error}")),
        None => Err("empty report of fio".to_owned()),
    }
}

impl FioReport {
    /// A report that has everything; an error names what it lacks.
    fn complete(report: &json::FioReport) -> Result<Self, String> {
        let global_options = texts(&report.global);
        let jobs = report.jobs().map(|job| JobReport::complete(job, &global_options)).collect::<Result<_, _>>()?;
        Ok(Self { version: report.version.clone(), global_options, jobs })
    }
}

impl JobReport {
    fn complete(job: &json::JobReport, global_options: &BTreeMap<String, String>) -> Result<Self, String> {
        let options = texts(&job.options);
        let delay = options.get("startdelay").or_else(|| global_options.get("startdelay"));
        let start_delay = delay.and_then(|delay| delay.parse::<Nanos>().ok()).map_or(0, |delay| delay.0 / 1_000_000);
        let complete = |direction: &str| OperationReport::complete(job.operation(direction));
        let syncs = job.sync.latency("lat").map(|(latency, _)| LatencyReport::complete(latency)).transpose()?;
        Ok(Self {
            jobname: job.jobname.clone(),
            options,
            groupid: u32::try_from(job.groupid).map_err(|_| invalid("groupid"))?,
            job_runtime: optional_count("job_runtime", job.job_runtime)?,
            start_delay,
            error: job.error.ok_or_else(|| missing("error"))?.into(),
            total_err: job.total_err,
            first_error: job.first_error.into(),
            read: complete("read")?,
            write: complete("write")?,
            sync: syncs.map(|lat_ns| SyncReport { lat_ns }),
            usr_cpu: number("usr_cpu", job.usr_cpu)?,
            sys_cpu: number("sys_cpu", job.sys_cpu)?,
        })
    }
}

impl OperationReport {
    fn complete(operation: &json::OperationReport) -> Result<Self, String> {
        let latency = |name: &str, latency: &Option<json::LatencyReport>| {
            LatencyReport::complete(latency.as_ref().ok_or_else(|| missing(name))?)
        };
        Ok(Self {
            io_bytes: count("io_bytes", operation.io_bytes)?,
            total_ios: count("total_ios", operation.total_ios)?,
            runtime: count("runtime", operation.runtime)?,
            short_ios: optional_count("short_ios", operation.short_ios)?,
            drop_ios: optional_count("drop_ios", operation.drop_ios)?,
            slat_ns: latency("slat_ns", &operation.slat_ns)?,
            clat_ns: latency("clat_ns", &operation.clat_ns)?,
            lat_ns: latency("lat_ns", &operation.lat_ns)?,
        })
    }
}

impl LatencyReport {
    fn complete(latency: &json::LatencyReport) -> Result<Self, String> {
        let bins = latency
            .bins
            .iter()
            .map(|(nanos, operations)| Ok((nanos.parse().map_err(|_| invalid("bins"))?, count("bins", *operations)?)));
        Ok(Self {
            max: number("max", latency.max)?,
            mean: number("mean", latency.mean)?,
            count: count("N", latency.count)?,
            bins: bins.collect::<Result<_, String>>()?,
        })
    }
}

fn missing(name: &str) -> String {
    format!("missing field `{name}`")
}

fn invalid(name: &str) -> String {
    format!("invalid `{name}`: expected a whole number from 0")
}

fn number(name: &str, LenientNumber(number): LenientNumber) -> Result<f64, String> {
    number.ok_or_else(|| missing(name))
}

fn count(name: &str, of: LenientNumber) -> Result<u64, String> {
    let number = number(name, of)?;
    // Every whole number below is exact.
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    ((0.0..=LIMIT).contains(&number) && number.fract() == 0.0).then_some(number as u64).ok_or_else(|| invalid(name))
}

/// A count that fio did not always have.
fn optional_count(name: &str, of: LenientNumber) -> Result<u64, String> {
    of.0.map_or(Ok(0), |_| count(name, of))
}

/// Options as texts, which fio writes all of them as.
fn texts(options: &BTreeMap<String, serde_json::Value>) -> BTreeMap<String, String> {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    options.iter().map(|(name, value)| (name.clone(), text(value))).collect()
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
        for field in
            ["error", "io_bytes", "total_ios", "runtime", "slat_ns", "lat_ns", "mean", "max", "N", "usr_cpu", "sys_cpu"]
        {
            let error = parse(&whole.replace(&format!("\"{field}\""), "\"x\"")).unwrap_err();
            assert!(error.ends_with(&format!("missing field `{field}`")), "{field}: {error}");
            let error = parse(&whole.replace(&format!("\"{field}\": "), &format!("\"{field}\": -0.5e")));
            assert!(error.is_err(), "{field}");
        }
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
