//! Expansion of the user's job file, in the syntax of pbench's templates.
//!
//! A section with `$target` in its name is repeated for each target, and `$target` in it is replaced by the target's
//! path. `$@` as the value of an option is replaced by the value that the parameters give this option.

use std::collections::{BTreeMap, BTreeSet};

use wb_model::Bytes;
use wb_test::Failure;

use super::job::{FioJob, escape_path};

/// Options that only determine what fio reports: the test needs its own histogram logs and percentiles, for each job
/// apart, and for reads and writes apart.
const REPORTING_OPTIONS: [&str; 10] = [
    "per_job_logs",
    "write_hist_log",
    "log_hist_msec",
    "log_hist_coarseness",
    "unified_rw_reporting",
    "group_reporting",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "percentile_list",
];

/// Options that add to their previous value instead of replacing it.
const ADDING_OPTIONS: [&str; 1] = ["filename"];

/// Expands a job file. Options that determine what fio reports are replaced.
pub(super) fn expand(template: &str, job: &FioJob) -> Result<String, Failure> {
    let mut filled = String::new();
    let mut has_global = false;
    for section in parse_sections(template) {
        let is_global = section.is_global();
        let copies: Vec<&String> = if section.is_per_target() { job.targets.iter().collect() } else { Vec::new() };
        if copies.is_empty() {
            filled += &section.fill_in(job, None)?;
        }
        for target in copies {
            filled += &section.fill_in(job, Some(target))?;
        }
        if is_global && !has_global {
            filled += &render_log_options(job);
            has_global = true;
        }
    }
    Ok(if has_global { filled } else { format!("[global]\n{}{filled}", render_log_options(job)) })
}

pub(super) struct JobSection<'a> {
    pub(super) name: &'a str,
    /// By their names in fio, with those of the global sections before the job.
    pub(super) options: BTreeMap<String, String>,
}

impl JobSection<'_> {
    /// Whether a flag is set; one without a value is.
    pub(super) fn is_set(&self, flag: &str) -> bool {
        self.options.get(flag).is_some_and(|value| !["0", "false"].contains(&value.as_str()))
    }
}

pub(super) fn jobs(template: &str) -> Vec<JobSection<'_>> {
    let mut global = BTreeMap::new();
    let mut jobs = Vec::new();
    for section in parse_sections(template) {
        let mut options = global.clone();
        for line in &section.lines {
            match parse_option(line) {
                ("buffered", value) => options.insert("direct".to_owned(), negate(value).to_owned()),
                (name, value) => {
                    let earlier = options.remove(option_name(name)).filter(|_| ADDING_OPTIONS.contains(&name));
                    let value = earlier.map_or_else(|| value.to_owned(), |earlier| format!("{earlier}:{value}"));
                    options.insert(option_name(name).to_owned(), value)
                }
            };
        }
        if section.is_global() {
            global = options;
        } else {
            jobs.push(JobSection { name: section.name.trim(), options });
        }
    }
    jobs
}

/// Groups whose jobs start only when the jobs of all earlier groups have ended, by their number in fio's report. A new
/// group alone is one of the report: its jobs start with those before.
pub(super) fn consecutive_groups(template: &str) -> BTreeSet<u32> {
    let mut consecutive = BTreeSet::new();
    let mut group = 0;
    for job in jobs(template).iter().skip(1) {
        let waits = job.is_set("stonewall");
        group += u32::from(waits || job.is_set("new_group"));
        if waits {
            consecutive.insert(group);
        }
    }
    consecutive
}

pub(super) fn uses_targets(template: &str) -> bool {
    template.contains("$target")
}

/// A section that uses the targets although it is not repeated for each, so that fio would take `$target` for the name
/// of a file.
pub(super) fn section_without_target(template: &str) -> Option<String> {
    let uses = |section: &Section<'_>| section.lines.iter().any(|line| line.contains("$target"));
    let sections = parse_sections(template);
    sections.iter().find(|section| uses(section) && !section.is_per_target()).map(|section| section.name.to_owned())
}

/// Largest size in a template, if each of its jobs has a numeric size.
pub(super) fn file_size(template: &str) -> Option<Bytes> {
    let sections = parse_sections(template);
    let value = |section: &Section<'_>, option: &str| {
        section
            .lines
            .iter()
            .map(|line| parse_option(line))
            .find(|(name, _)| *name == option)
            .map(|(_, value)| value.to_owned())
    };
    let is_global = |section: &&Section<'_>| section.is_global();
    // These options move I/O to other parts of a file.
    let shifts = ["offset", "filesize", "io_size", "zonesize"];
    if sections.iter().any(|section| shifts.iter().any(|name| value(section, name).is_some())) {
        return None;
    }
    let for_all = sections.iter().filter(is_global).find_map(|section| value(section, "size"));
    let jobs = sections.iter().filter(|section| !is_global(section));
    let kb_base = sections.iter().find_map(|section| value(section, "kb_base"));
    jobs.map(|job| parse_size(&value(job, "size").or_else(|| for_all.clone())?, kb_base.as_deref()))
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .max()
}

fn render_log_options(job: &FioJob) -> String {
    job.histogram_options().iter().map(|(name, value)| format!("{name}={value}\n")).collect()
}

struct Section<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
}

fn parse_sections(template: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in template.lines().map(without_comment).filter(|line| !line.is_empty()) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => sections.push(Section { name, lines: Vec::new() }),
            None => match sections.last_mut() {
                Some(section) => section.lines.push(line),
                None => sections.push(Section { name: "global", lines: vec![line] }),
            },
        }
    }
    sections
}

/// A line up to its comment, which fio recognises anywhere in it.
fn without_comment(line: &str) -> &str {
    line.split(['#', ';']).next().unwrap_or(line).trim()
}

/// Splits an option into name and value; the value of a flag is empty. `include FILE` has no equals sign.
fn parse_option(line: &str) -> (&str, &str) {
    if let Some(file) = line.strip_prefix("include").filter(|rest| rest.starts_with(char::is_whitespace)) {
        return ("include", file.trim());
    }
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    (name.trim(), value.trim())
}

impl Section<'_> {
    /// Whether its options apply to the jobs after it; fio compares no more than the start of the name.
    fn is_global(&self) -> bool {
        self.name.trim_start().starts_with("global")
    }

    fn is_per_target(&self) -> bool {
        self.name.contains("$target")
    }

    fn fill_in(&self, job: &FioJob, target: Option<&str>) -> Result<String, Failure> {
        let expand = |text: &str, target: Option<&str>| match target {
            Some(target) => text.replace("$target", target),
            None => text.to_owned(),
        };
        let mut filled = format!("[{}]\n", expand(self.name, target));
        for line in &self.lines {
            let (name, value) = parse_option(line);
            if REPORTING_OPTIONS.contains(&name) {
                continue;
            }
            let value = expand(value, target.map(escape_path).as_deref());
            let value = match value.as_str() {
                "$@" => job_option(job, name)?,
                _ => value,
            };
            filled += &if line.contains('=') { format!("{name}={value}\n") } else { format!("{name}\n") };
        }
        Ok(filled)
    }
}

/// The one name that is used here of an option with several.
pub(super) fn option_name(name: &str) -> &str {
    match name {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "blocksize_range" => "bsrange",
        "blocksize_unaligned" => "bs_unaligned",
        "ramptime" => "ramp_time",
        "wait_for_previous" => "stonewall",
        other => other,
    }
}

/// The value of a flag for its opposite; anything but a plain value stays.
fn negate(flag: &str) -> &str {
    match flag {
        "" | "1" | "true" => "0",
        "0" | "false" => "1",
        other => other,
    }
}

/// Parses a size as fio does: by default (`kb_base` 1024) a prefix without `i` is binary and one with `i` decimal; with
/// `kb_base` 1000 it is the other way round. `None` for anything else.
pub fn parse_size(text: &str, kb_base: Option<&str>) -> Option<Bytes> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, prefix) = (text[..digits].parse::<u64>().ok()?, &text[digits..]);
    let (letter, has_i) = match prefix.strip_suffix("ib") {
        Some(letter) => (letter, true),
        None => (prefix.strip_suffix('b').unwrap_or(prefix), false),
    };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == letter)?;
    if power == 0 && has_i {
        return None;
    }
    let is_decimal = match kb_base.map(str::trim) {
        None | Some("1024") => has_i,
        Some("1000") => !has_i,
        Some(_) => return None,
    };
    let base = if is_decimal { 1000u64 } else { 1024 };
    number.checked_mul(base.checked_pow(u32::try_from(power).ok()?)?).map(Bytes)
}

fn job_option(job: &FioJob, option: &str) -> Result<String, Failure> {
    let option = option_name(option);
    let option_value = job.options().into_iter().find(|(name, _)| *name == option);
    option_value.map(|(_, value)| value).ok_or_else(|| {
        Failure::refused(format!("no parameter provides `$@` of job-file option `{option} = $@`: write a value"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::params::FioParams;
    use super::*;

    const TEMPLATE: &str = "# pbench's\n[global]\nbs = $@\nruntime=30\nwrite_hist_log = fio\nlog_hist_msec=10000\n\n\
                            [job-$target]\nfilename = $target\nrw=$@\nsize = 4096M\nnorandommap\n";

    fn job() -> FioJob {
        FioParams::default().job(vec!["/a:1".to_owned(), "/b".to_owned()])
    }

    #[test]
    fn a_template_is_expanded_for_every_target() {
        assert_eq!(
            expand(TEMPLATE, &job()).unwrap(),
            "[global]\nbs=4096\nruntime=30\nwrite_hist_log=hist\nlog_hist_msec=10000\n\
             [job-/a:1]\nfilename=/a\\:1\nrw=read\nsize=4096M\nnorandommap\n\
             [job-/b]\nfilename=/b\nrw=read\nsize=4096M\nnorandommap\n"
        );
        assert!(expand("[x]\nrw=read\n", &job()).unwrap().starts_with("[global]\nwrite_hist_log=hist\n"));
    }

    #[test]
    fn comments_are_left_out_wherever_they_are() {
        let text =
            expand("# all\n[x] ; first\nbs=$@ # pbench's\n;rw=write\ngroup_reporting\nsize=1m\n", &job()).unwrap();
        assert!(text.ends_with("[x]\nbs=4096\nsize=1m\n"), "{text}");
    }

    #[test]
    fn an_option_without_a_parameter_is_refused() {
        assert!(expand("[x]\nthinktime=$@\n", &job()).unwrap_err().to_string().contains("thinktime = $@"));
    }

    #[test]
    fn only_a_barrier_makes_groups_consecutive() {
        let groups = |template: &str| consecutive_groups(template).into_iter().collect::<Vec<_>>();
        assert_eq!(groups("[a]\n[b]\nnew_group\n[c]\nstonewall\n[d]\n[e]\nwait_for_previous=1\n"), [2, 3]);
        assert_eq!(groups("[global]\nstonewall\n[a]\n[b]\n"), [1]);
        assert_eq!(groups("[a]\nstonewall\n[b]\nstonewall=0\n"), [0; 0]);
    }

    #[test]
    fn a_size_is_parsed_as_fio_does() {
        // As measured with fio 3.33 by bytes per operation.
        for (text, kb_base, bytes) in [
            ("4k", None, 4096),
            ("4KB", None, 4096),
            ("4KiB", None, 4000),
            ("4k", Some("1000"), 4000),
            ("4kb", Some("1000"), 4000),
            ("4kib", Some("1000"), 4096),
            ("512", None, 512),
            ("2G", Some("1024"), 2 << 30),
        ] {
            assert_eq!(parse_size(text, kb_base), Some(Bytes(bytes)), "{text} {kb_base:?}");
        }
        for text in ["", "k", "4x", "4ib", "50%", "$@", "99999999999999999999", "99999999999g", "-1", "4k,8k"] {
            assert_eq!(parse_size(text, None), None, "{text}");
        }
    }

    #[test]
    fn a_job_file_may_set_the_size_of_its_files() {
        assert_eq!(file_size(TEMPLATE), Some(Bytes(4096 << 20)));
        assert_eq!(file_size("[global]\nsize=16m\n[a]\nrw=read\n[b]\nsize = 1g\n"), Some(Bytes(1 << 30)));
        for unknown in ["[a]\nrw=read\n", "[a]\nsize=$@\n", "[a]\nsize=50%\n", "[a]\nsize=1m\noffset=1g\n", ""] {
            assert_eq!(file_size(unknown), None, "{unknown}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_template_panics(text: String) {
            let _ = expand(&text, &job());
            consecutive_groups(&text);
            file_size(&text);
            parse_size(&text, Some(&text));
        }
    }
}
