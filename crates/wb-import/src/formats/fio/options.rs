//! What defines a job: its options, without those that change no figure.

use std::collections::BTreeMap;

use serde_json::Value;
use wb_model::Bytes;
use wb_model::secrets::mask_value;

use super::report::JobReport;
use crate::foreign::ForeignCell;
use crate::json::to_plain_text;

/// Options that say how results are told.
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

/// Options that stand in the cell's name, and fio's defaults for them.
const AXIS_DEFAULTS: [(&str, &str); 4] = [("rw", "read"), ("bs", "4k"), ("iodepth", "1"), ("numjobs", "1")];

/// Says what a job is, and returns its secrets with what stands for them. Very old reports have no options: its name
/// is all there is then.
pub(super) fn describe(
    cell: &mut ForeignCell,
    global: &BTreeMap<String, Value>,
    job: &JobReport,
) -> Vec<(String, String)> {
    cell.axis("job", &job.jobname);
    let mut secrets = Vec::new();
    let is_told =
        |name: &str| REPORTING_OPTIONS.contains(&name) || (name.starts_with("write_") && name.ends_with("_log"));
    for (name, value) in global.iter().chain(&job.options).filter(|(name, _)| !is_told(name)) {
        let name = ALIASES.iter().find(|(alias, _)| alias == name).map_or(name.as_str(), |(_, name)| name);
        let value = to_plain_text(value);
        let shown = mask_value(name, &value);
        cell.param(name, normalize_size(name, &shown));
        if shown != value {
            secrets.push((value, shown));
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

/// One spelling of a size.
fn normalize_size(name: &str, value: &str) -> String {
    let size = value.parse::<Bytes>().ok().filter(|_| name == "bs" || name == "size");
    size.map_or_else(|| value.to_owned(), |size| size.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::valid_name;

    fn described(global: &str, options: &str) -> ForeignCell {
        let job = format!(r#"{{"jobname": "j", "job options": {options}}}"#);
        let mut cell = ForeignCell::new(valid_name("fio-json"), "");
        describe(&mut cell, &serde_json::from_str(global).unwrap(), &serde_json::from_str(&job).unwrap());
        cell
    }

    #[test]
    fn options_and_defaults_make_the_definition_however_they_are_spelt() {
        let one = described(r#"{"direct": "1"}"#, r#"{"name": "x", "blocksize": "4096", "readwrite": "read"}"#);
        let other = described(r#"{"bs": "1m"}"#, r#"{"direct": 1, "bs": "4k", "write_bw_log": "x"}"#);
        assert_eq!(one, other);
        assert_eq!(one.axes, ["job", "rw", "bs", "iodepth", "numjobs"]);
    }

    #[test]
    fn secrets_are_masked() {
        let cell = described("{}", r#"{"http_s3_key": "abc", "http_user": "joe"}"#);
        assert_eq!(cell.params["http_s3_key"].to_string(), "***");
    }
}
