//! The parameters that a user's job file determines, so that a cell is labelled with what its job does.
//!
//! A parameter applies to a job file where an option is `$@`. Every other option is the file's, or fio's default: its
//! value becomes that of the parameter, and another value of the parameter contradicts the file.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use wb_model::{Nanos, ParamValue};

use super::job::TestType;
use super::job_template::{JobSection, jobs, option_name, parse_size, section_without_target, uses_targets};
use super::params::FioParams;

#[derive(Debug, Clone, Copy)]
enum ValueKind {
    Pattern,
    Size,
    Time,
    Number,
    Flag,
    Text,
}

struct ParamOption {
    param: &'static str,
    option: &'static str,
    /// On Linux, where a job does not set the option; `None` if it has no default.
    fio_default: Option<&'static str>,
    kind: ValueKind,
}

const fn option(
    param: &'static str,
    option: &'static str,
    fio_default: Option<&'static str>,
    kind: ValueKind,
) -> ParamOption {
    ParamOption { param, option, fio_default, kind }
}

const OPTIONS: [ParamOption; 13] = [
    option("test-types", "rw", Some("read"), ValueKind::Pattern),
    option("block-sizes", "bs", Some("4k"), ValueKind::Size),
    option("file-size", "size", None, ValueKind::Size),
    option("iodepth", "iodepth", Some("1"), ValueKind::Number),
    option("numjobs", "numjobs", Some("1"), ValueKind::Number),
    option("direct", "direct", Some("0"), ValueKind::Flag),
    option("sync", "sync", Some("0"), ValueKind::Flag),
    option("fsync", "fsync", Some("0"), ValueKind::Number),
    option("fdatasync", "fdatasync", Some("0"), ValueKind::Number),
    option("rate-iops", "rate_iops", Some("0"), ValueKind::Number),
    option("ioengine", "ioengine", Some("psync"), ValueKind::Text),
    option("runtime", "runtime", None, ValueKind::Time),
    option("ramptime", "ramp_time", Some("0"), ValueKind::Time),
];

/// Options that vary the size of operations within a job.
const SIZE_RANGES: [&str; 3] = ["bsrange", "bssplit", "bs_unaligned"];

#[derive(Debug, Clone, PartialEq)]
enum Setting {
    /// `$@` in every job.
    Parameter,
    /// The same value in every job.
    Value(ParamValue),
    /// Not one value, with what the file has instead.
    Other(String),
}

/// Values of parameters that follow from a job file; none for one that no single value describes.
pub(super) fn resolve(template: &str) -> BTreeMap<String, Vec<ParamValue>> {
    let value = |option: &ParamOption| match setting(template, option) {
        // A cell is never labelled with what its job does not do; the options in fio's report are compared with the
        // label.
        Setting::Value(value) => Some((option.param.to_owned(), vec![value])),
        Setting::Other(_) => Some((option.param.to_owned(), Vec::new())),
        Setting::Parameter => None,
    };
    OPTIONS.iter().filter_map(value).collect()
}

pub(super) fn contradiction(template: &str, params: &FioParams) -> Option<String> {
    let path = &params.job_file;
    if !params.targets.is_empty() && !uses_targets(template) {
        return Some(format!(
            "`targets` are given, but job file `{path}` does not use them: write `filename=$target` in a section whose name \
             has `$target`, or remove `targets`"
        ));
    }
    if let Some(section) = section_without_target(template) {
        return Some(format!(
            "job file `{path}` uses `$target` in `[{section}]`, which is not repeated for each target: name it \
             `[{section}-$target]`"
        ));
    }
    if let Some(option) = jobs(template).iter().find_map(lasting_option) {
        return Some(format!(
            "job file `{path}` has `{option}`, which fio does not undo: leave it out, and see `weighbridge tune` for \
             settings that are reverted"
        ));
    }
    if let Some(option) = option_with_random_start(template) {
        return Some(format!(
            "job file `{path}` has `{option}`: when its jobs run is not in fio's report, so that their figures cannot be \
             added; `stonewall` runs them one after the other"
        ));
    }
    let values = serde_json::to_value(params).ok()?;
    OPTIONS.iter().find_map(|option| {
        let ParamOption { param, option: name, .. } = option;
        let given = match &values[param] {
            Json::Null => None,
            Json::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        match (setting(template, option), given) {
            (Setting::Value(value), Some(given)) if value.to_string() != given => Some(format!(
                "`{param}` is {given}, but job file `{path}` runs with {value}: remove `{param}`, or write `{name}=$@` in \
                 the file"
            )),
            (Setting::Other(found), None) if *param == "test-types" => Some(format!(
                "job file `{path}` has {found}, and a cell has one access pattern: write `{name}=$@`, or a file for each \
                 pattern"
            )),
            (Setting::Other(found), Some(given)) if ["test-types", "block-sizes"].contains(param) => Some(format!(
                "`{param}` is {given}, but job file `{path}` has {found}: remove `{param}`, or write `{name}=$@` in the file"
            )),
            _ => None,
        }
    })
}

/// An option by which a job changes the machine for good, if any.
fn lasting_option(job: &JobSection<'_>) -> Option<&'static str> {
    ["ioscheduler", "cgroup"].into_iter().find(|option| job.options.contains_key(*option))
}

/// An option by which jobs of one group start at times that fio does not report, if any.
fn option_with_random_start(template: &str) -> Option<&'static str> {
    let jobs = jobs(template);
    let is_random = |delay: &String| delay.parse::<Nanos>().is_err();
    let has_random = jobs.iter().any(|job| job.options.get("startdelay").is_some_and(is_random));
    let waits = jobs.iter().any(|job| job.options.contains_key("wait_for"));
    waits.then_some("wait_for").or_else(|| has_random.then_some("startdelay"))
}

fn setting(template: &str, option: &ParamOption) -> Setting {
    let mut settings: Vec<Setting> = jobs(template).iter().map(|job| job_setting(&job.options, option)).collect();
    settings.dedup();
    // Where only some jobs take the parameter, it has to be the value of the others.
    if settings.len() > 1 {
        settings.retain(|setting| *setting != Setting::Parameter);
        settings.dedup();
    }
    match settings.as_slice() {
        [] => Setting::Parameter,
        [one] => one.clone(),
        _ => Setting::Other(format!("jobs with different `{}`", option.option)),
    }
}

fn job_setting(job: &BTreeMap<String, String>, option: &ParamOption) -> Setting {
    if let Some(range) = SIZE_RANGES.iter().find(|range| option.option == "bs" && job.contains_key(**range)) {
        return Setting::Other(format!("`{range}`"));
    }
    match job.get(option.option).map(String::as_str).or(option.fio_default) {
        // Another file may set it.
        _ if job.contains_key("include") => Setting::Other("an `include`".to_owned()),
        None => Setting::Other(format!("no `{}`", option.option)),
        Some("$@") => Setting::Parameter,
        Some(text) => match parse(text, option.kind, job.get("kb_base").map(String::as_str)) {
            Some(value) => Setting::Value(value),
            None => Setting::Other(format!("`{}={text}`", option.option)),
        },
    }
}

/// Parses the value of an option in canonical form; `None` if it is not one value.
fn parse(text: &str, kind: ValueKind, kb_base: Option<&str>) -> Option<ParamValue> {
    let text = text.trim();
    Some(match kind {
        ValueKind::Pattern => ParamValue::Text(parse_pattern(text)?.name().to_owned()),
        ValueKind::Size => ParamValue::Text(parse_parts(text, |part| parse_size(part, kb_base))?.to_string()),
        ValueKind::Time => ParamValue::Text(text.parse::<Nanos>().ok()?.to_string()),
        ValueKind::Number => ParamValue::Integer(parse_parts(text, |part| part.parse().ok())?),
        // A flag without a value is set.
        ValueKind::Flag => ParamValue::Bool(match text {
            "" | "1" | "true" => true,
            "0" | "false" => false,
            _ => return None,
        }),
        ValueKind::Text => (!text.contains('$')).then(|| ParamValue::Text(text.to_owned()))?,
    })
}

/// Parses an access pattern of fio, which may be followed by a colon and a modifier.
pub(super) fn parse_pattern(text: &str) -> Option<TestType> {
    let name = text.split(':').next().unwrap_or(text).trim();
    let name = if name == "readwrite" { "rw" } else { name };
    serde_json::from_value(Json::String(name.to_owned())).ok()
}

/// Parses an option that may have a value for each of reads, writes and trims, if they are the same.
fn parse_parts<T: PartialEq>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let mut parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(parse);
    let first = parts.next()??;
    parts.all(|part| part.as_ref() == Some(&first)).then_some(first)
}

/// The access pattern that fio reports to have run.
pub(super) fn reported_pattern(options: [&BTreeMap<String, String>; 2]) -> Option<TestType> {
    let is_pattern = |name: &str| option_name(name) == "rw";
    let of = |options: &BTreeMap<String, String>| {
        options.iter().find(|(name, _)| is_pattern(name)).and_then(|(_, text)| parse_pattern(text))
    };
    options.into_iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(template: &str, param: &str) -> Option<Vec<String>> {
        Some(resolve(template).remove(param)?.iter().map(ToString::to_string).collect())
    }

    fn one(value: &str) -> Option<Vec<String>> {
        Some(vec![value.to_owned()])
    }

    fn params(json: &str) -> FioParams {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn every_option_of_a_job_file_becomes_the_value_of_its_parameter() {
        let template = "[global]\nreadwrite=randrw:8\nblocksize=4K,4k\nsize=1G\niodepth=3\nnumjobs=2\ndirect=1\nsync=1\n\
                        fsync=5\nfdatasync=6\nrate_iops=1000,1000\nioengine=null\nruntime=2\nramp_time=500ms\n[job1]\n";
        let values = ["randrw", "4k", "1g", "3", "2", "true", "true", "5", "6", "1000", "null", "2s", "500ms"];
        for (option, value) in OPTIONS.iter().zip(values) {
            assert_eq!(resolved(template, option.param), one(value), "{}", option.param);
        }
        // All of them are parameters of the test.
        let names = wb_model::Param::from_schema::<FioParams>();
        assert!(OPTIONS.iter().all(|option| names.iter().any(|param| param.name == option.param)));
    }

    #[test]
    fn an_option_that_is_not_set_has_the_default_of_fio() {
        assert_eq!(resolved("[x]\n", "test-types"), one("read"));
        assert_eq!(resolved("[x]\n", "block-sizes"), one("4k"));
        assert_eq!(resolved("[x]\n", "iodepth"), one("1"));
        assert_eq!(resolved("[x]\n", "ioengine"), one("psync"));
        for (template, direct) in [("buffered=0", "true"), ("buffered", "false"), ("buffered=1\ndirect=1", "true")] {
            assert_eq!(resolved(&format!("[x]\n{template}\n"), "direct"), one(direct), "{template}");
        }
        assert_eq!(resolved("[x]\n", "runtime"), Some(Vec::new()), "it ends when its size is done");
    }

    #[test]
    fn sizes_are_those_that_fio_runs_with() {
        assert_eq!(resolved("[x]\nbs=4KiB\n", "block-sizes"), one("4000"));
        assert_eq!(resolved("kb_base=1000\nbs=4KiB\n[x]\n", "block-sizes"), one("4k"));
    }

    #[test]
    fn a_parameter_applies_where_the_file_asks_for_it() {
        let template = "[global]\nbs=$@\n[a]\nrw=$@\n[b]\nrw=$@\n";
        assert_eq!([resolved(template, "test-types"), resolved(template, "block-sizes")], [None, None]);
        assert_eq!(resolved("[a]\nrw=$@\n[b]\nrw=write\n", "test-types"), one("write"));
    }

    #[test]
    fn the_last_setting_before_a_job_applies() {
        assert_eq!(resolved("rw=read\n[global]\nrw=write\n[a]\n", "test-types"), one("write"));
        assert_eq!(resolved("[global]\nrw=write\n[a]\nrw=read\nrw=randread\n", "test-types"), one("randread"));
        assert_eq!(resolved("[global]\nrw=write\n[a]\n[global]\nrw=read\n[b]\n", "test-types"), Some(Vec::new()));
    }

    #[test]
    fn what_one_value_does_not_describe_has_none() {
        for (template, param) in [
            ("[a]\nrw=read\n[b]\nrw=write\n", "test-types"),
            ("[a]\nrw=trim\n", "test-types"),
            ("[a]\nbs=4k,8k\n", "block-sizes"),
            ("[a]\nbs=4k\n[b]\nkb_base=1000\nbs=4k\n", "block-sizes"),
            ("[a]\nbsrange=4k-64k\n", "block-sizes"),
            ("[a]\nbs=4k\nbssplit=4k/50:8k/50\n", "block-sizes"),
            ("[a]\nbs=${SIZE}\n", "block-sizes"),
            ("[global]\ninclude other.fio\n[a]\nbs=4k\n", "block-sizes"),
        ] {
            assert_eq!(resolved(template, param), Some(Vec::new()), "{template}");
        }
    }

    #[test]
    fn a_parameter_that_contradicts_the_file_is_an_error() {
        let fixed = "[a]\nrw=randrw\nbs=4k\n";
        let with = |json: &str| {
            let defaults = r#"{"test-types": "randrw", "block-sizes": "4k", "iodepth": 1, "direct": false, "ramptime": 0, "ioengine": "psync", "job-file": "own.fio"}"#;
            let mut all: serde_json::Map<String, Json> = serde_json::from_str(defaults).unwrap();
            all.extend(serde_json::from_str::<serde_json::Map<String, Json>>(json).unwrap());
            contradiction(fixed, &params(&Json::Object(all).to_string()))
        };
        assert_eq!(with("{}"), None);
        assert_eq!(
            with(r#"{"block-sizes": "1m"}"#).unwrap(),
            "`block-sizes` is 1m, but job file `own.fio` runs with 4k: remove `block-sizes`, or write `bs=$@` in the file"
        );
        assert!(with(r#"{"test-types": "read"}"#).unwrap().starts_with("`test-types` is read, but job file"));
        assert!(with(r#"{"iodepth": 16}"#).unwrap().contains("runs with 1"));
        let unused = r#"{"job-file": "own.fio", "test-types": "read", "targets": ["/a"]}"#;
        assert!(
            contradiction("[a]\nsize=1m\n", &params(unused)).unwrap().starts_with("`targets` are given, but job file")
        );
        let several = contradiction("[a]\nrw=read\n[b]\nrw=write\n", &params(r#"{"job-file": "own.fio"}"#)).unwrap();
        assert!(
            several.starts_with("job file `own.fio` has jobs with different `rw`, and a cell has one"),
            "{several}"
        );
        let range = r#"{"job-file": "own.fio", "test-types": "read", "block-sizes": "4k"}"#;
        assert!(contradiction("[a]\nbsrange=4k-8k\n", &params(range)).unwrap().contains("has `bsrange`: remove"));
    }

    #[test]
    fn jobs_that_are_not_measured_as_labelled_are_an_error() {
        let reason = |template: &str| contradiction(template, &params(r#"{"job-file": "own.fio"}"#));
        for (template, reported) in [
            ("[job]\nfilename=$target\n", "uses `$target` in `[job]`"),
            ("filename=$target\n[job-$target]\n", "uses `$target` in `[global]`"),
            ("ioscheduler=none\n[a]\n", "has `ioscheduler`"),
            ("[a]\n[b]\nwait_for=a\n", "has `wait_for`"),
            ("startdelay=1-3\n[a]\n[b]\n", "has `startdelay`"),
        ] {
            assert!(reason(template).is_some_and(|reason| reason.contains(reported)), "{template}");
        }
        let known = reason("iodepth=32\n[a]\n[b-$target]\nstartdelay=2\nfilename=$target\n");
        assert!(known.is_none_or(|reason| !reason.contains("startdelay")));
    }

    proptest::proptest! {
        #[test]
        fn no_job_file_panics(text: String) {
            resolve(&text);
            contradiction(&text, &FioParams::default());
        }
    }
}
