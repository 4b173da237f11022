//! What fio prints with `--output-format=json+`, as far as it is needed. Unknown fields are passed over: they
//! differ from one 3.x to the next.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::job::Operation;

/// All of it.
#[derive(Debug, Clone, Deserialize)]
pub struct FioReport {
    /// fio's version.
    #[serde(rename = "fio version")]
    pub version: String,
    /// The jobs, in the order of the job file.
    pub jobs: Vec<JobReport>,
}

/// One job.
#[derive(Debug, Clone, Deserialize)]
pub struct JobReport {
    /// Its name.
    pub jobname: String,
    /// Jobs of a group ran at the same time.
    #[serde(default)]
    pub groupid: u32,
    /// The system's number of the error that ended it, or 0.
    pub error: i64,
    /// Its reads.
    pub read: OperationReport,
    /// Its writes.
    pub write: OperationReport,
    /// CPU time in user mode, in percent of its time.
    pub usr_cpu: f64,
    /// CPU time in the kernel, in percent of its time.
    pub sys_cpu: f64,
}

/// The operations of one kind.
#[derive(Debug, Clone, Deserialize)]
pub struct OperationReport {
    /// Bytes done.
    pub io_bytes: u64,
    /// Operations done.
    pub total_ios: u64,
    /// For how long, in milliseconds.
    pub runtime: u64,
    /// Operations that did less than asked.
    #[serde(default)]
    pub short_ios: u64,
    /// Operations that did nothing.
    #[serde(default)]
    pub drop_ios: u64,
    /// From submission to completion.
    pub clat_ns: LatencyReport,
    /// From before submission to completion.
    pub lat_ns: LatencyReport,
}

/// How long they took, in nanoseconds.
#[derive(Debug, Clone, Deserialize)]
pub struct LatencyReport {
    /// The longest.
    pub max: f64,
    /// On average.
    pub mean: f64,
    /// How many were counted.
    #[serde(rename = "N")]
    pub count: u64,
    /// Counts by the middle of their bin.
    #[serde(default)]
    pub bins: BTreeMap<u64, u64>,
}

impl JobReport {
    /// The operations of a kind.
    pub fn operation(&self, operation: Operation) -> &OperationReport {
        match operation {
            Operation::Read => &self.read,
            Operation::Write => &self.write,
        }
    }
}

/// Reads fio's output. Engines and fio itself may say things before it and after.
pub fn parse(output: &str) -> Result<FioReport, String> {
    let start = if output.starts_with('{') { Some(0) } else { output.find("\n{").map(|at| at + 1) };
    let Some(start) = start else {
        let said: String = output.trim().lines().last().unwrap_or("nothing").chars().take(200).collect();
        return Err(format!("fio printed no report: {said}"));
    };
    let mut reports = serde_json::Deserializer::from_str(&output[start..]).into_iter::<FioReport>();
    match reports.next() {
        Some(Ok(report)) => Ok(report),
        Some(Err(error)) => Err(format!("fio's report cannot be read: {error}")),
        None => Err("fio's report is empty".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::output;
    use super::*;

    #[test]
    fn a_report_is_found_among_what_else_is_said() {
        let text = format!("fio: connected to NBD server\n{}fio: done\n", output(&[(0, 1000, 0)]));
        let report = parse(&text).unwrap();
        assert_eq!((report.version.as_str(), report.jobs.len()), ("fio-3.33", 1));
        assert_eq!(report.jobs[0].read.clat_ns.bins.values().sum::<u64>(), 1000);
    }

    #[test]
    fn what_is_no_report_says_so() {
        let whole = output(&[(0, 1000, 0)]);
        assert!(parse(&whole[..whole.len() / 2]).unwrap_err().starts_with("fio's report cannot be read: EOF"));
        assert_eq!(
            parse("fio: engine nosuch not loadable\n").unwrap_err(),
            "fio printed no report: fio: engine nosuch not loadable"
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
