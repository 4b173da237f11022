//! Definition of a job: its options, without those that do not affect figures.

use std::collections::BTreeMap;

use serde_json::Value;
use wb_model::secrets::mask_value;
use wb_workloads::fio::json::JobReport;
use wb_workloads::fio::parse_size;

use crate::foreign::ForeignCell;
use crate::json::to_plain_text;

const REPORTING_OPTIONS: [&str; 10] = [
    "name",
    "description",
    "group_reporting",
    "percentile_list",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "output",
    "status-interval",
    "eta",
];

const ALIASES: [(&str, &str); 3] = [("readwrite", "rw"), ("blocksize", "bs"), ("blocksize_range", "bsrange")];

/// Options in the cell's name, with fio's defaults.
const AXIS_DEFAULTS: [(&str, &str); 4] = [("rw", "read"), ("bs", "4k"), ("iodepth", "1"), ("numjobs", "1")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionsOwner {
    Job,
    /// Of several different jobs, the options of the last are reported under the name of the first.
    LastOfGroup,
}

/// Length to which fio truncates the name of a job in its report.
const MAX_JOBNAME: usize = 127;

/// Time that a clone may run beyond its operations, in milliseconds.
const MAX_CLONE_OVERHEAD: f64 = 50.0;

impl OptionsOwner {
    /// Whether a report is of a group of different jobs (`group_reporting`), as far as it shows: the options have
    /// another name than the report, or the report has the run times of more clones than the options request.
    pub(super) fn new(global: &BTreeMap<String, Value>, job: &JobReport) -> Self {
        let has_other_name = job.options.get("name").map(to_plain_text).is_some_and(|name| {
            let is_truncated = job.jobname.len() == MAX_JOBNAME && name.starts_with(&job.jobname);
            name != job.jobname && !is_truncated
        });
        let numjobs = numjobs_option(global, job).map(|count| count as f64);
        // Reads of a verification follow the writes.
        let elapsed = job.elapsed(is_set(global, job, "verify"));
        let has_more_clones = job.job_runtime.0.zip(numjobs).is_some_and(|(sum, numjobs)| {
            sum > numjobs * (elapsed + MAX_CLONE_OVERHEAD) && sum > (numjobs + 0.5) * elapsed && elapsed > 0.0
        });
        let has_options = !global.is_empty() || !job.options.is_empty();
        if has_options && (has_other_name || has_more_clones) { Self::LastOfGroup } else { Self::Job }
    }
}

/// Sets the parameters of a job's cell; returns its secrets with their masked texts. Very old reports have only the
/// job's name, and for a group of different jobs only the options of all jobs are known.
pub(super) fn describe(
    cell: &mut ForeignCell,
    global: &BTreeMap<String, Value>,
    job: &JobReport,
    owner: OptionsOwner,
) -> Vec<(String, String)> {
    cell.axis("job", &job.jobname);
    let mut secrets = Vec::new();
    let is_reporting =
        |name: &str| REPORTING_OPTIONS.contains(&name) || (name.starts_with("write_") && name.ends_with("_log"));
    let kb_base = option(global, job, "kb_base");
    let own = job.options.iter().map(|option| (option, owner == OptionsOwner::Job));
    let all = global.iter().map(|option| (option, true)).chain(own);
    for ((name, value), is_known) in all.filter(|((name, _), _)| !is_reporting(name)) {
        let name = ALIASES.iter().find(|(alias, _)| alias == name).map_or(name.as_str(), |(_, name)| name);
        let value = to_plain_text(value);
        let masked = mask_value(name, &value);
        if is_known {
            cell.param(name, normalize_size(name, &masked, kb_base.as_deref()));
            cell.set_unmasked(name, &value, &masked);
        }
        if masked != value {
            secrets.push((value, masked));
        }
    }
    if global.is_empty() && job.options.is_empty() {
        return secrets;
    }
    let has_other_sizes = ["bsrange", "bssplit"].iter().any(|name| cell.params.contains_key(*name));
    for (name, default) in AXIS_DEFAULTS {
        if cell.params.contains_key(name) {
            cell.add_axis(name)
        } else if owner != OptionsOwner::LastOfGroup && (name != "bs" || !has_other_sizes) {
            cell.axis(name, default)
        }
    }
    secrets
}

fn option(global: &BTreeMap<String, Value>, job: &JobReport, name: &str) -> Option<String> {
    job.options.get(name).or_else(|| global.get(name)).map(to_plain_text)
}

/// 1 without the option; none if the value is not a number.
fn numjobs_option(global: &BTreeMap<String, Value>, job: &JobReport) -> Option<usize> {
    option(global, job, "numjobs").map_or(Some(1), |count| count.parse().ok())
}

/// Number of clones; none if unknown, as in a report without options.
pub(super) fn numjobs(global: &BTreeMap<String, Value>, job: &JobReport) -> Option<usize> {
    let has_options = !global.is_empty() || !job.options.is_empty();
    numjobs_option(global, job).filter(|_| has_options)
}

/// A flag without a value is set.
pub(super) fn is_set(global: &BTreeMap<String, Value>, job: &JobReport, flag: &str) -> bool {
    option(global, job, flag).is_some_and(|value| value != "0" && value != "false")
}

/// Operations of a pattern, which may have a modifier (`write:4k`, `randread:8`); empty if it is unknown.
pub(super) fn operations_of_pattern(rw: &str) -> &'static [&'static str] {
    let pattern = rw.split_once(':').map_or(rw, |(pattern, _)| pattern).trim();
    match pattern.strip_prefix("rand").unwrap_or(pattern) {
        "read" => &["read"],
        "write" => &["write"],
        "trim" => &["trim"],
        "rw" | "readwrite" => &["read", "write"],
        "trimwrite" => &["write", "trim"],
        _ => &[],
    }
}

/// Removes options that the figures contradict, and returns a finding for each: of several global sections of a job
/// file, fio reports only the last, and a job may override them. `can_verify`: a job that writes may have reads of its
/// verification.
pub(super) fn drop_contradicted(cell: &mut ForeignCell, clones: &[&JobReport], can_verify: bool) -> Vec<String> {
    let mut findings = Vec::new();
    let mut drop = |cell: &mut ForeignCell, name: &str, figures: String| {
        let value = cell.params.remove(name).map(|value| value.to_string()).unwrap_or_default();
        cell.axes.retain(|axis| axis != name);
        findings.push(format!(
            "the report has `{name}={value}`, but {figures}: it is left out, and other options of all jobs may be wrong"
        ));
    };
    let text = |cell: &ForeignCell, name: &str| cell.params.get(name).map(ToString::to_string);
    if let Some(figures) = text(cell, "bs").and_then(|size| contradiction_of_size(&size, clones)) {
        drop(cell, "bs", figures);
    }
    let has = |direction: &str| clones.iter().any(|job| job.directions().any(|own| own == direction));
    let figures = match text(cell, "rw").as_deref().map(operations_of_pattern) {
        Some(["read"]) if has("write") => Some("there were writes"),
        Some(["write"]) if has("read") && !has("write") => Some("there were no writes"),
        Some(["write"]) if has("read") && !can_verify => Some("there were reads without a verification"),
        _ => None,
    };
    if let Some(figures) = figures {
        drop(cell, "rw", figures.to_owned());
    }
    findings
}

/// Deviation of the mean size at which it contradicts the block size, as in measured samples. Blocks at the end of a
/// file may be smaller.
const MAX_SIZE_DEVIATION: f64 = 0.1;

fn contradiction_of_size(size: &str, clones: &[&JobReport]) -> Option<String> {
    let size = size.parse::<wb_model::Bytes>().ok()?.0 as f64;
    let operations = clones.iter().flat_map(|job| job.directions().map(|direction| job.operation(direction)));
    let totals = operations.filter_map(|operation| Some((operation.bytes()?, operation.total_ios.0?)));
    let (bytes, ios) = totals.fold((0.0, 0.0), |(bytes, ios), own| (bytes + own.0, ios + own.1));
    let mean = bytes / ios;
    let has_one_partial_block = bytes > (ios - clones.len() as f64) * size && bytes <= ios * size;
    let contradicts = bytes > 0.0 && (mean / size - 1.0).abs() > MAX_SIZE_DEVIATION;
    (contradicts && !has_one_partial_block).then(|| format!("an operation had {mean:.0} bytes"))
}

/// Normalises the spelling of a size. Prefixes mean what they mean to fio: `4KiB` is 4000 bytes.
fn normalize_size(name: &str, value: &str, kb_base: Option<&str>) -> String {
    let size = parse_size(value, kb_base).filter(|_| name == "bs" || name == "size");
    size.map_or_else(|| value.to_owned(), |size| size.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::valid_name;

    fn parse_cell(global: &str, options: &str) -> ForeignCell {
        let job = format!(r#"{{"jobname": "j", "job options": {options}}}"#);
        let mut cell = ForeignCell::new(valid_name("fio-json"), "");
        let (global, job) = (serde_json::from_str(global).unwrap(), serde_json::from_str(&job).unwrap());
        describe(&mut cell, &global, &job, OptionsOwner::Job);
        cell
    }

    #[test]
    fn the_definition_does_not_depend_on_the_spelling_of_options() {
        let one = parse_cell(r#"{"direct": "1"}"#, r#"{"name": "x", "blocksize": "4096", "readwrite": "read"}"#);
        let other = parse_cell(r#"{"bs": "1m"}"#, r#"{"direct": 1, "bs": "4k", "write_bw_log": "x"}"#);
        assert_eq!(one, other);
        assert_eq!(one.axes, ["job", "rw", "bs", "iodepth", "numjobs"]);
    }

    #[test]
    fn the_modifier_of_a_pattern_does_not_change_its_operations() {
        for (rw, operations) in [
            ("read", &["read"][..]),
            ("randread:8", &["read"]),
            ("write:4k", &["write"]),
            ("randwrite:8", &["write"]),
            ("rw:2", &["read", "write"]),
            ("readwrite", &["read", "write"]),
            ("randrw:8", &["read", "write"]),
            ("trim:4k", &["trim"]),
            ("randtrimwrite", &["write", "trim"]),
            ("sequential", &[]),
        ] {
            assert_eq!(operations_of_pattern(rw), operations, "{rw}");
        }
    }

    #[test]
    fn a_report_of_more_clones_or_another_name_is_of_different_jobs() {
        let owner = |name: &str, options: &str, read: u64, write: u64, job_runtime: u64| {
            let operation = |runtime| format!(r#"{{"total_ios": {runtime}, "runtime": {runtime}}}"#);
            let job = format!(
                r#"{{"jobname": "{name}", "job options": {options}, "read": {}, "write": {}, "job_runtime": {job_runtime}}}"#,
                operation(read),
                operation(write)
            );
            OptionsOwner::new(&BTreeMap::new(), &serde_json::from_str(&job).unwrap())
        };
        let different = OptionsOwner::LastOfGroup;
        assert_eq!(owner("a", r#"{"name": "b", "rw": "read"}"#, 1000, 0, 1000), different);
        // A section of a job file is not an option.
        assert_eq!(owner("a", r#"{"numjobs": "3"}"#, 1008, 0, 4009), different);
        assert_eq!(owner("a", r#"{"rw": "write"}"#, 1000, 1000, 2000), different);
        for (options, read, write, job_runtime) in [
            (r#"{"name": "a", "numjobs": "3"}"#, 1000, 0, 3009),
            // Each of 16 clones needs some time to start.
            (r#"{"name": "a", "numjobs": "16"}"#, 10, 0, 300),
            (r#"{"name": "a", "numjobs": "${CLONES}"}"#, 1000, 0, 4000),
            (r#"{"rw": "write", "verify": "crc32c"}"#, 1000, 1000, 2000),
            ("{}", 1000, 0, 4000),
        ] {
            assert_eq!(owner("a", options, read, write, job_runtime), OptionsOwner::Job, "{options}");
        }
        let long = "n".repeat(200);
        assert_eq!(owner(&long[..127], &format!(r#"{{"name": "{long}"}}"#), 1000, 0, 1000), OptionsOwner::Job);
    }

    #[test]
    fn secrets_are_masked() {
        let cell = parse_cell("{}", r#"{"http_s3_key": "abc", "http_user": "joe"}"#);
        assert_eq!(cell.params["http_s3_key"].to_string(), "***");
    }
}
