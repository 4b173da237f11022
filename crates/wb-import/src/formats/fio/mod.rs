//! Parser of fio's report: a cell for each job.
//!
//! Only the last report is used; earlier ones are status reports of running jobs (`--status-interval`).

mod figures;
mod latency;
mod options;
mod report;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::foreign::{ForeignCell, ForeignResults};
use crate::naming::valid_name;
use crate::{Format, ReadError, json};
use report::{FioReport, JobReport};

const TEST: &str = "fio-json";
const SUMMARY: &str = "storage, as fio measured it";

/// Parses a report.
pub(crate) fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let mut reports: Vec<FioReport> = json::parse_documents(Format::Fio, text)?;
    let Some(report) = reports.pop().filter(|report| report.jobs().next().is_some()) else {
        return Err(ReadError::Empty("fio ran no job".to_owned()));
    };
    let mut foreign = ForeignResults::default();
    foreign.add_provenance("fio version", Some(&report.version));
    foreign.add_provenance("measured at", report.time.as_ref());
    let mut hosts: Vec<&str> = report.jobs().filter_map(|job| job.hostname.as_deref()).collect();
    hosts.dedup();
    foreign.add_provenance("host", Some(hosts.join(", ")));
    for (at, clones) in group_clones(&report) {
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        foreign.secrets.extend(options::describe(&mut cell, &report.global, clones[0]));
        let kinds = cell.params.get("rw").map(ToString::to_string);
        cell.samples.extend([figures::sample(format!("jobs/{at}"), &clones, kinds.as_deref())]);
        foreign.add(cell);
    }
    Ok(foreign)
}

/// Groups each job with its clones (`numjobs`, or the same job on other machines); returns the index of the first, and
/// all of them.
fn group_clones(report: &FioReport) -> Vec<(usize, Vec<&JobReport>)> {
    let mut all: Vec<(usize, Vec<&JobReport>)> = Vec::new();
    let mut groups: BTreeMap<(&str, i64, String), usize> = BTreeMap::new();
    for (at, job) in report.jobs().enumerate() {
        let options = job.options.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        match groups.entry((&job.jobname, job.groupid, options)) {
            Entry::Occupied(first) => all[*first.get()].1.push(job),
            Entry::Vacant(new) => {
                new.insert(all.len());
                all.push((at, vec![job]));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use wb_model::{Class, Direction};

    use super::*;
    use crate::foreign::row;

    const OLD: &str = r#"{"fio version": "fio-2.2", "jobs": [{"jobname": "j", "groupid": 0, "error": 0,
        "read": {"io_bytes": 40, "bw": 10, "iops": 2.5, "runtime": 4000, "total_ios": 10,
                 "clat": {"min": 1, "max": 9, "mean": 5.0, "percentile": {"99.000000": 9}}},
        "write": {"total_ios": 0, "iops": 0.0}, "usr_cpu": 1.5, "sys_cpu": 2.5}]}"#;

    fn values(text: &str) -> Vec<(String, f64)> {
        let foreign = read(text).unwrap();
        let readings = &row(&foreign.cells[0], 0).readings;
        readings.iter().map(|reading| (reading.metric.key().to_string(), reading.value)).collect()
    }

    #[test]
    fn old_reports_use_kib_and_microseconds() {
        let values = values(OLD);
        for expected in [("throughput/bandwidth", 10240.0), ("latency/clat-mean", 5000.0), ("latency/clat-p99", 9000.0)]
        {
            assert!(values.contains(&(expected.0.to_owned(), expected.1)), "{expected:?}: {values:?}");
        }
    }

    #[test]
    fn clones_are_merged_into_one_sample() {
        let job = OLD.split_once("\"jobs\": [").unwrap().1.strip_suffix("]}").unwrap();
        let text = OLD.replace(job, &format!("{job}, {job}"));
        let foreign = read(&text).unwrap();
        assert_eq!((foreign.cells.len(), foreign.cells[0].samples.count), (1, 1));
        assert!(values(&text).contains(&("throughput/iops".to_owned(), 5.0)));
        assert!(row(&foreign.cells[0], 0).findings[0].contains("json+"), "{:?}", row(&foreign.cells[0], 0));
    }

    #[test]
    fn latency_is_better_lower_and_one_throughput_is_primary() {
        let foreign = read(OLD).unwrap();
        let metrics: Vec<_> = row(&foreign.cells[0], 0).readings.into_iter().map(|reading| reading.metric).collect();
        let primary: Vec<_> =
            metrics.iter().filter(|metric| metric.primary).map(|metric| metric.name.as_str()).collect();
        assert_eq!(primary, ["iops"]);
        let latencies = metrics.iter().filter(|metric| metric.class == Class::Latency);
        assert!(latencies.clone().count() == 2 && latencies.clone().all(|metric| metric.direction == Direction::Lower));
    }

    #[test]
    fn a_failed_job_has_no_figures() {
        let foreign = read(&OLD.replace("\"error\": 0", "\"error\": 5")).unwrap();
        let sample = &row(&foreign.cells[0], 0);
        assert!(sample.failure.as_ref().unwrap().starts_with("fio: job `j` ended with: Input/output error"));
        assert!(sample.readings.is_empty());
    }

    #[test]
    fn the_last_of_several_reports_is_used() {
        let text = format!("{}\n{OLD}", OLD.replace("2.5,", "1.0,"));
        assert!(values(&text).contains(&("throughput/iops".to_owned(), 2.5)));
    }
}
