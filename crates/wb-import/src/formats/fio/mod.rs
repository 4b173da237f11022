//! Parser of fio's report: a cell for each job.
//!
//! Only the last complete report is used; earlier ones are status reports of running jobs (`--status-interval`).

mod figures;
mod latency;
mod options;

use std::collections::{BTreeMap, BTreeSet};

use crate::foreign::{ForeignCell, ForeignResults};
use crate::format::{Format, FormatDefinition};
use crate::naming::valid_name;
use crate::{ReadError, json};
use figures::JobKind;
use options::OptionsOwner;
use wb_workloads::fio::json::{Client, FioReport, JobReport};

const TEST: &str = "fio-json";
const SUMMARY: &str = "storage, as fio measured it";

pub(crate) const FORMAT: Format = Format::new(&FormatDefinition {
    other_forms: &[
        (&["IOPS=", "(groupid="], "fio --output-format=json"),
        (&[";fio-", ";0;"], "fio --output-format=json"),
    ],
    ..FormatDefinition::json("fio", 3, |text| text.contains("\"fio version\""), |text, _| read(text))
});

fn read(text: &str) -> Result<ForeignResults, ReadError> {
    let json::Documents { complete: mut reports, truncated } = json::parse_documents::<FioReport>(FORMAT, text)?;
    let complete = reports.len();
    let last = reports.pop().map(|report| report.content);
    let Some(report) = last.filter(|report| report.jobs().next().is_some()) else {
        return Err(ReadError::Empty("fio ran no job".to_owned()));
    };
    let mut foreign = ForeignResults::default();
    let is_truncated = truncated.is_some();
    foreign.notes.extend(truncated.map(|error| format!("report {}: {error}", complete + 1)));
    foreign.add_provenance("fio version", Some(&report.version));
    foreign.add_provenance("measured at", report.time.as_ref());
    let mut hosts: Vec<&str> = report.jobs().filter_map(|job| job.hostname.as_deref()).collect();
    hosts.dedup();
    foreign.add_provenance("host", Some(hosts.join(", ")));
    for Job { at, section, clones } in group_clones(&report) {
        let mut cell = ForeignCell::new(valid_name(TEST), SUMMARY);
        let owner = OptionsOwner::new(&report.global, clones[0]);
        foreign.secrets.extend(options::describe(&mut cell, &report.global, clones[0], owner));
        let can_verify = owner == OptionsOwner::Job || options::is_set(&report.global, clones[0], "verify");
        if let Some(section) = section {
            cell.own_axis("section", section);
        }
        let clients: BTreeSet<Client<'_>> = clones.iter().filter_map(|job| job.client()).collect();
        if !clients.is_empty() {
            cell.own_axis("clients", clients.len());
        }
        let contradictions = options::drop_contradicted(&mut cell, &clones, can_verify);
        let rw = cell.params.get("rw").map(ToString::to_string);
        let kind = JobKind {
            operations: rw.as_deref().map_or(&[][..], options::operations_of_pattern),
            is_group: options::is_set(&report.global, clones[0], "group_reporting"),
            verifies: options::is_set(&report.global, clones[0], "verify"),
        };
        let mut sample = figures::sample(format!("jobs/{at}"), &clones, kind);
        sample.findings.extend(contradictions);
        if is_truncated {
            sample.findings.push("the report after this one is cut off: the job may have been running on".to_owned());
        }
        if owner == OptionsOwner::LastOfGroup {
            sample.findings.push(
                "a group of different jobs, whose own options are not in the file: only those of all jobs are kept"
                    .to_owned(),
            );
        }
        cell.samples.extend([sample]);
        foreign.add(cell);
    }
    Ok(foreign)
}

/// A job with its clones (`numjobs`, or the same job on other machines).
struct Job<'a> {
    /// Index of the first clone in the report.
    at: usize,
    /// Number of the section among those of the same name and options, from 1; none if there is only one.
    section: Option<usize>,
    clones: Vec<&'a JobReport>,
}

/// Sections of one name and options follow one another in the report: one ends with the clones that the options
/// request, or with its group.
fn group_clones(report: &FioReport) -> Vec<Job<'_>> {
    #[derive(Default)]
    struct Sections<'a> {
        /// Positions among the jobs.
        jobs: Vec<usize>,
        /// Group and clones of the last section, by client.
        groupid: i64,
        counts: BTreeMap<Option<Client<'a>>, usize>,
    }
    let mut all: Vec<Job<'_>> = Vec::new();
    let mut by_name: BTreeMap<(&str, String), Sections<'_>> = BTreeMap::new();
    for (at, job) in report.jobs().enumerate() {
        let name = job.options.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let sections = by_name.entry((&job.jobname, name)).or_default();
        let count = sections.counts.get(&job.client()).copied().unwrap_or_default();
        let is_full = options::numjobs(&report.global, job).is_some_and(|numjobs| count >= numjobs);
        match sections.jobs.last().filter(|_| sections.groupid == job.groupid && !is_full) {
            Some(last) => all[*last].clones.push(job),
            None => {
                sections.jobs.push(all.len());
                (sections.groupid, sections.counts) = (job.groupid, BTreeMap::new());
                all.push(Job { at, section: None, clones: vec![job] });
            }
        }
        *sections.counts.entry(job.client()).or_default() += 1;
    }
    for sections in by_name.values().filter(|sections| sections.jobs.len() > 1) {
        for (number, job) in sections.jobs.iter().enumerate() {
            all[*job].section = Some(number + 1);
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

    /// A report of jobs, each with its options and its figures of an operation.
    fn report(jobs: &[(&str, &str)]) -> String {
        let job = |(options, figures): &(&str, &str)| {
            format!(r#"{{"jobname": "j", "job options": {options}, "usr_cpu": 5, "sys_cpu": 10, {figures}}}"#)
        };
        format!(r#"{{"fio version": "fio-3.33", "jobs": [{}]}}"#, jobs.iter().map(job).collect::<Vec<_>>().join(","))
    }

    fn operation(ios: u64, size: u64, runtime: u64) -> String {
        let rate = ios as f64 / (runtime as f64 / 1000.0);
        let bytes = ios * size;
        format!(
            r#"{{"total_ios": {ios}, "io_bytes": {bytes}, "iops": {rate}, "bw_bytes": {}, "runtime": {runtime}}}"#,
            rate * size as f64
        )
    }

    fn value(text: &str, name: &str) -> f64 {
        let values = values(text);
        values.iter().find(|(key, _)| key == name).unwrap_or_else(|| panic!("{name}: {values:?}")).1
    }

    // `unified_rw_reporting=both` prints a sum beside its parts, which was added to them.
    #[test]
    fn no_operation_is_counted_twice() {
        let [read, write, mixed] =
            [(100, 1000), (300, 1000), (400, 1000)].map(|(ios, time)| operation(ios, 4096, time));
        for figures in [
            format!(r#""read": {read}, "write": {write}"#),
            format!(r#""read": {read}, "write": {write}, "mixed": {mixed}"#),
            format!(r#""mixed": {mixed}"#),
        ] {
            let text = report(&[(r#"{"rw": "randrw"}"#, &figures)]);
            assert_eq!(value(&text, "throughput/iops"), 400.0, "{figures}");
            assert_eq!(value(&text, "throughput/bandwidth"), 400.0 * 4096.0, "{figures}");
        }
    }

    // fio reports the phase of `verify` as reads of the same job.
    #[test]
    fn reads_of_a_verification_are_not_added_to_the_writes() {
        let figures = format!(r#""read": {}, "write": {}"#, operation(2048, 4096, 9), operation(2048, 4096, 22));
        for rw in ["write", "randwrite", "write:4k", "randwrite:8"] {
            let text = report(&[(&format!(r#"{{"rw": "{rw}", "verify": "crc32c"}}"#), &figures)]);
            assert!((value(&text, "throughput/iops") - 2048.0 / 0.022).abs() < 1e-6, "{rw}");
            assert_eq!(value(&text, "throughput/write-iops"), value(&text, "throughput/iops"), "{rw}");
            assert!(row(&read(&text).unwrap().cells[0], 0).findings[0].contains("verification"), "{rw}");
        }
        let text = report(&[(r#"{"rw": "randrw:8", "verify": "crc32c"}"#, &figures)]);
        assert_eq!(value(&text, "throughput/iops"), 4096.0 / 0.022);
    }

    // The import dropped what `latency_target` found, and that a steady state was not attained.
    #[test]
    fn what_a_job_was_to_find_is_kept() {
        let read_text = |fields: &str| {
            let figures = format!(r#""read": {}, {fields}"#, operation(1000, 4096, 1000));
            let text = report(&[(r#"{"rw": "randread"}"#, &figures)]);
            (text.clone(), row(&read(&text).unwrap().cells[0], 0).findings.join("\n"))
        };
        let depth = |target: u64| format!(r#""latency_depth": 7, "latency_target": {target}"#);
        assert_eq!(value(&read_text(&depth(1000)).0, "check/latency-depth"), 7.0);
        assert!(values(&read_text(&depth(0)).0).iter().all(|(name, _)| name != "check/latency-depth"));
        let steady = |attained: u64| format!(r#""steadystate": {{"ss": "iops:1%", "attained": {attained}}}"#);
        assert_eq!(read_text(&steady(0)).1, "the steady state was not attained: `steadystate=iops:1%`");
        assert_eq!(read_text(&steady(1)).1, "");
    }

    #[test]
    fn reads_of_a_verification_among_those_of_the_job_are_named() {
        let figures = format!(r#""read": {}, "write": {}"#, operation(2048, 4096, 9), operation(2048, 4096, 22));
        let findings =
            |options: &str| row(&read(&report(&[(options, &figures)])).unwrap().cells[0], 0).findings.join("");
        for rw in ["rw", "randrw", "readwrite", "randrw:8"] {
            let found = findings(&format!(r#"{{"rw": "{rw}", "verify": "crc32c"}}"#));
            assert!(
                found.contains("reads of the verification (`verify`) are in all figures of reads"),
                "{rw}: {found}"
            );
            assert_eq!(findings(&format!(r#"{{"rw": "{rw}"}}"#)), "");
        }
    }

    #[test]
    fn a_group_of_different_jobs_has_only_the_options_of_all() {
        let figures = format!(
            r#""read": {}, "write": {}, "job_runtime": 4009"#,
            operation(1000, 4096, 1000),
            operation(3000, 4096, 1000)
        );
        let options = r#"{"name": "b", "rw": "write", "iodepth": "16", "numjobs": "3", "http_s3_key": "abc"}"#;
        for (global, case) in [
            (r#"{"ioengine": "psync"}"#, "job=j"),
            (r#"{"ioengine": "psync", "bs": "4k"}"#, "bs=4k,job=j"),
            // One of the jobs overrides it.
            (r#"{"ioengine": "psync", "rw": "randwrite"}"#, "job=j"),
        ] {
            let text = report(&[(options, &figures)]).replacen('{', &format!(r#"{{"global options": {global}, "#), 1);
            let foreign = read(&text).unwrap();
            let cell = &foreign.cells[0];
            assert_eq!(cell.case().to_string(), case);
            assert_eq!(cell.params["ioengine"].to_string(), "psync");
            assert!(["name", "numjobs", "iodepth"].iter().all(|name| !cell.params.contains_key(*name)), "{cell:?}");
            assert_eq!(foreign.secrets, [("abc".to_owned(), "***".to_owned())]);
            let findings = row(cell, 0).findings;
            assert!(findings.iter().any(|finding| finding.contains("a group of different jobs")), "{findings:?}");
            assert_eq!(value(&text, "throughput/iops"), 4000.0);
        }
    }

    #[test]
    fn a_total_with_an_unknown_part_is_no_value() {
        let operations = |iops: &str, bandwidth: &str, ios: &str| {
            format!(
                r#"{{"total_ios": {ios}, "io_bytes": 4096000, "iops": {iops}, "bw_bytes": {bandwidth}, "runtime": 1000}}"#
            )
        };
        let known = operations("1000.0", "4096000", "1000");
        let metrics = |read: &str, write: &str| {
            let text = report(&[(r#"{"rw": "randrw"}"#, &format!(r#""read": {read}, "write": {write}"#))]);
            let names: Vec<String> = values(&text).into_iter().map(|(name, _)| name).collect();
            let has = |name: &str| names.iter().any(|own| own == name);
            let rejection = row(&super::read(&text).unwrap().cells[0], 0).rejection;
            (has("throughput/iops"), has("throughput/bandwidth"), rejection.is_some())
        };
        assert_eq!(metrics(&known, &known), (true, true, false));
        for unknown in ["null", "\"NaN\""] {
            for other in [operations(unknown, "4096000", "1000"), operations(unknown, "4096000", unknown)] {
                assert_eq!(metrics(&known, &other), (false, true, true), "{other}");
                assert_eq!(metrics(&other, &known), (false, true, true), "{other}");
            }
            assert_eq!(metrics(&known, &operations("1000.0", unknown, "1000")), (true, false, false));
            assert_eq!(metrics(&known, &operations("1000.0", "4096000", unknown)), (true, true, false));
        }
        let clones = report(&[
            ("{}", &format!(r#""read": {known}"#)),
            ("{}", &format!(r#""read": {}"#, operations("null", "1", "1"))),
        ]);
        assert!(values(&clones).iter().all(|(name, _)| name != "throughput/iops"));
        let idle = report(&[("{}", &format!(r#""read": {known}"#)), ("{}", r#""read": {}"#)]);
        assert_eq!(value(&idle, "throughput/iops"), 1000.0);
    }

    #[test]
    fn clones_have_the_same_figures_reported_apart_and_as_a_group() {
        let one = format!(r#""read": {}, "job_runtime": 1000"#, operation(100, 4096, 1000));
        let apart = report(&[("{}", one.as_str()); 4]);
        let all = format!(r#""read": {}, "job_runtime": 4000"#, operation(400, 4096, 1000));
        // An option of the command line is not in the report.
        for options in [r#"{"group_reporting": "", "numjobs": "4"}"#, r#"{"numjobs": "4"}"#, "{}"] {
            let group = report(&[(options, &all)]);
            for (metric, expected) in
                [("resource/cpu-user", 20.0), ("resource/cpu-system", 40.0), ("throughput/iops", 400.0)]
            {
                assert_eq!((value(&apart, metric), value(&group, metric)), (expected, expected), "{metric}");
            }
        }
        let verified = format!(
            r#""read": {}, "write": {}, "job_runtime": 2000"#,
            operation(100, 4096, 1000),
            operation(100, 4096, 1000)
        );
        let verified = report(&[(r#"{"rw": "write", "verify": "crc32c"}"#, &verified)]);
        assert_eq!(value(&verified, "resource/cpu-user"), 5.0, "one job with two phases");
    }

    // fio divides the operations of a group by the longest run time, and not each job by its own.
    #[test]
    fn clones_of_different_run_times_have_all_operations_by_the_longest() {
        let figures = |ios, time| format!(r#""read": {}"#, operation(ios, 4096, time));
        let text = report(&[("{}", &figures(400, 4000)), ("{}", &figures(100, 1000))]);
        assert_eq!(value(&text, "throughput/iops"), 125.0);
        assert_eq!(value(&text, "throughput/bandwidth"), 125.0 * 4096.0);
    }

    // With several global sections the options in the report are not those of every job.
    #[test]
    fn a_label_that_the_figures_contradict_is_left_out() {
        let case = |options: &str, size: u64, direction: &str| {
            let foreign =
                read(&report(&[(options, &format!(r#""{direction}": {}"#, operation(100, size, 9)))])).unwrap();
            (foreign.cells[0].case().to_string(), row(&foreign.cells[0], 0).findings.join("\n"))
        };
        let (name, findings) = case(r#"{"bs": "64k", "rw": "read"}"#, 4096, "read");
        assert_eq!(name, "iodepth=1,job=j,numjobs=1,rw=read");
        assert!(findings.contains("`bs=64k`, but an operation had 4096 bytes"), "{findings}");
        let (name, findings) = case(r#"{"bs": "4k", "rw": "read"}"#, 4096, "write");
        assert_eq!(name, "bs=4k,iodepth=1,job=j,numjobs=1");
        assert!(findings.contains("`rw=read`"), "{findings}");
        for (options, size) in
            [(r#"{"bs": "4k"}"#, 4096), (r#"{"bs": "4KiB"}"#, 4000), (r#"{"bsrange": "1k-8k"}"#, 5000)]
        {
            assert_eq!(case(options, size, "read").1, "", "{options}");
        }
    }

    #[test]
    fn a_failed_job_has_no_figures() {
        let foreign = read(&OLD.replace("\"error\": 0", "\"error\": 5")).unwrap();
        let sample = &row(&foreign.cells[0], 0);
        assert!(sample.failure.as_ref().unwrap().starts_with("fio: job `j` ended with: Input/output error"));
        assert!(sample.readings.is_empty());
    }

    // With `continue_on_error` the status of fio says nothing of operations that failed.
    #[test]
    fn errors_that_did_not_end_a_job_are_counted() {
        let foreign = read(&OLD.replace("\"error\": 0", "\"error\": 0, \"total_err\": 7, \"first_error\": 5")).unwrap();
        let sample = &row(&foreign.cells[0], 0);
        assert_eq!((sample.failure.is_none(), sample.readings.is_empty()), (true, false));
        let finding =
            "7 operations failed, which fio did not end for (`continue_on_error`): Input/output error (os error 5)";
        assert_eq!(sample.findings, [finding]);
    }

    #[test]
    fn the_last_complete_report_is_used_and_a_truncated_one_is_named() {
        let first = OLD.replace("2.5,", "1.0,");
        assert_eq!(value(&format!("{first}\n{OLD}"), "throughput/iops"), 2.5);
        assert_eq!(read(&format!("{first}\n{OLD}\nend")).unwrap().notes, [""; 0]);
        for end in [2, 100, OLD.len() - 1] {
            let text = format!("{first}\n{}", &OLD[..end]);
            assert_eq!(value(&text, "throughput/iops"), 1.0, "{text}");
            let foreign = read(&text).unwrap();
            let findings = row(&foreign.cells[0], 0).findings.join("\n");
            assert!(findings.contains("the report after this one is cut off"), "{findings}");
            let notes = foreign.notes.join("\n");
            assert!(notes.starts_with("report 2: invalid fio results: line "), "{notes}");
        }
    }

    #[test]
    fn latencies_of_syncs_are_metrics() {
        // fio 3.33 has 0 operations of syncs.
        let sync = |mean: u64, count: u64, ios: u64| {
            format!(
                r#""write": {}, "sync": {{"total_ios": {ios}, "lat_ns": {{"mean": {mean}, "N": {count},
                   "percentile": {{"99.000000": {mean}}}, "bins": {{"{mean}": {count}}}}}}}"#,
                operation(100, 4096, 1000)
            )
        };
        for ios in [0, 30] {
            let text = report(&[(r#"{"rw": "write"}"#, &sync(2000, 30, ios))]);
            assert_eq!(value(&text, "latency/sync-lat-mean"), 2000.0);
            assert_eq!(value(&text, "latency/sync-lat-p99"), 2000.0);
            assert_eq!(value(&text, "throughput/iops"), 100.0, "syncs are not operations");
        }
        let clones = report(&[("{}", &sync(2000, 30, 0)), ("{}", &sync(4000, 10, 0)), ("{}", &sync(0, 0, 0))]);
        assert_eq!(value(&clones, "latency/sync-lat-mean"), 2500.0);
        assert_eq!(value(&clones, "latency/sync-lat-p99"), 4000.0);
        let none = report(&[("{}", &sync(0, 0, 0))]);
        assert!(values(&none).iter().all(|(name, _)| !name.contains("sync")));
    }

    // Sections of one name were added up as if they were clones.
    #[test]
    fn sections_of_one_name_are_different_cells_and_clones_are_not() {
        let jobs = |text: &str| -> Vec<(String, f64)> {
            let cells = read(text).unwrap().cells;
            let section = |cell: &ForeignCell| cell.params.get("section").map_or_else(String::new, ToString::to_string);
            let iops = |cell: &ForeignCell| row(cell, 0).readings[0].value;
            cells.iter().map(|cell| (section(cell), iops(cell))).collect()
        };
        let figures = [100, 200, 300, 400].map(|ios| format!(r#""read": {}"#, operation(ios, 4096, 1000)));
        let text = |options: &str, groups: [u32; 4]| {
            let jobs = figures.iter().zip(groups).map(|(figures, group)| format!(r#"{figures}, "groupid": {group}"#));
            let jobs: Vec<String> = jobs.collect();
            report(&jobs.iter().map(|job| (options, job.as_str())).collect::<Vec<_>>())
        };
        let expected = |values: &[f64]| -> Vec<(String, f64)> {
            let number = |index: usize| if values.len() > 1 { (index + 1).to_string() } else { String::new() };
            values.iter().enumerate().map(|(index, value)| (number(index), *value)).collect()
        };
        for (options, groups, values) in [
            (r#"{"rw": "read"}"#, [0; 4], &[100.0, 200.0, 300.0, 400.0][..]),
            (r#"{"numjobs": "2"}"#, [0; 4], &[300.0, 700.0]),
            (r#"{"numjobs": "2"}"#, [0, 0, 1, 1], &[300.0, 700.0]),
            (r#"{"numjobs": "4"}"#, [0; 4], &[1000.0]),
            (r#"{"numjobs": "${CLONES}"}"#, [0; 4], &[1000.0]),
            ("{}", [0; 4], &[1000.0]),
        ] {
            assert_eq!(jobs(&text(options, groups)), expected(values), "{options} {groups:?}");
        }
    }

    // Runs of one client and of two had the same name.
    #[test]
    fn the_number_of_clients_is_part_of_the_cell() {
        let case = |ports: &[u32]| {
            let figures = operation(100, 4096, 1000);
            let job = |port| format!(r#""read": {figures}, "hostname": "h", "port": {port}"#);
            let jobs: Vec<String> = ports.iter().map(job).collect();
            let jobs: Vec<(&str, &str)> = jobs.iter().map(|job| (r#"{"rw": "read"}"#, job.as_str())).collect();
            let foreign = read(&report(&jobs).replace("\"jobs\"", "\"client_stats\"")).unwrap();
            let [cell] = &foreign.cells[..] else { panic!("{foreign:?}") };
            (cell.case().to_string(), row(cell, 0).readings[0].value)
        };
        let expected = |clients: u32| {
            let case = format!("bs=4k,clients={clients},iodepth=1,job=j,numjobs=1,rw=read");
            (case, f64::from(clients) * 100.0)
        };
        assert_eq!(case(&[8765]), expected(1));
        assert_eq!(case(&[8765, 8766]), expected(2));
    }
}
