//! Definition of a job: its options, without those that do not affect figures.

use std::collections::BTreeMap;

use serde_json::Value;
use wb_model::secrets::mask_value;
use wb_tests::fio::parse_size;

use super::report::JobReport;
use crate::foreign::ForeignCell;
use crate::json::to_plain_text;

/// Options that affect only how results are reported.
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

/// Other names of options.
const ALIASES: [(&str, &str); 3] = [("readwrite", "rw"), ("blocksize", "bs"), ("blocksize_range", "bsrange")];

/// Options in the cell's name, with fio's defaults.
const AXIS_DEFAULTS: [(&str, &str); 4] = [("rw", "read"), ("bs", "4k"), ("iodepth", "1"), ("numjobs", "1")];

/// Sets the parameters of a job's cell; returns its secrets with their masked texts. Very old reports have no options,
/// only the job's name.
pub(super) fn describe(
    cell: &mut ForeignCell,
    global: &BTreeMap<String, Value>,
    job: &JobReport,
) -> Vec<(String, String)> {
    cell.axis("job", &job.jobname);
    let mut secrets = Vec::new();
    let is_reporting =
        |name: &str| REPORTING_OPTIONS.contains(&name) || (name.starts_with("write_") && name.ends_with("_log"));
    let option = |name: &str| job.options.get(name).or_else(|| global.get(name)).map(to_plain_text);
    let kb_base = option("kb_base");
    for (name, value) in global.iter().chain(&job.options).filter(|(name, _)| !is_reporting(name)) {
        let name = ALIASES.iter().find(|(alias, _)| alias == name).map_or(name.as_str(), |(_, name)| name);
        let value = to_plain_text(value);
        let masked = mask_value(name, &value);
        cell.param(name, normalize_size(name, &masked, kb_base.as_deref()));
        cell.set_unmasked(name, &value, &masked);
        if masked != value {
            secrets.push((value, masked));
        }
    }
    if global.is_empty() && job.options.is_empty() {
        return secrets;
    }
    let has_other_sizes = ["bsrange", "bssplit"].iter().any(|name| cell.params.contains_key(*name));
    for (name, default) in AXIS_DEFAULTS {
        match cell.params.get(name).map(ToString::to_string) {
            Some(value) => cell.axis(name, value),
            None if name == "bs" && has_other_sizes => {}
            None => cell.axis(name, default),
        }
    }
    secrets
}

/// Whether a flag is set for a job; one without a value is.
pub(super) fn is_set(global: &BTreeMap<String, Value>, job: &JobReport, flag: &str) -> bool {
    let value = job.options.get(flag).or_else(|| global.get(flag)).map(to_plain_text);
    value.is_some_and(|value| value != "0" && value != "false")
}

/// Removes options that the figures contradict, and returns a finding for each: of several global sections of a job file,
/// fio reports only the last one.
pub(super) fn drop_contradicted(cell: &mut ForeignCell, clones: &[&JobReport]) -> Vec<String> {
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
    let figures = match text(cell, "rw").as_deref() {
        Some("read" | "randread") if has("write") => Some("there were writes"),
        Some("write" | "randwrite") if has("read") && !has("write") => Some("there were no writes"),
        _ => None,
    };
    if let Some(figures) = figures {
        drop(cell, "rw", figures.to_owned());
    }
    findings
}

/// Deviation of the mean size from which on it contradicts the block size, as in measured samples. Blocks at the end of a
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

/// Normalises the spelling of a size, in which fio's prefixes mean what they mean to fio: `4KiB` is 4000 bytes.
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
        describe(&mut cell, &serde_json::from_str(global).unwrap(), &serde_json::from_str(&job).unwrap());
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
    fn secrets_are_masked() {
        let cell = parse_cell("{}", r#"{"http_s3_key": "abc", "http_user": "joe"}"#);
        assert_eq!(cell.params["http_s3_key"].to_string(), "***");
    }
}
