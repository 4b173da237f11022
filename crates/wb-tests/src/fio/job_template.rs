//! Expansion of the user's job file, in the syntax of pbench's templates.
//!
//! A section with `$target` in its name is repeated for each target, and `$target` in it is replaced by the target's
//! path. `$@` as the value of an option is replaced by the value that the parameters give this option.

use std::collections::BTreeMap;

use wb_model::Bytes;

use super::job::{FioJob, escape_path};
use crate::Failure;

/// Options that only determine what fio reports: the test needs its own histogram logs, and reads apart from writes.
const REPORTING_OPTIONS: [&str; 3] = ["write_hist_log", "log_hist_msec", "unified_rw_reporting"];

/// Expands a job file. Options that determine what fio reports are replaced.
pub(super) fn expand(template: &str, job: &FioJob) -> Result<String, Failure> {
    let mut filled = String::new();
    let mut has_global = false;
    for section in parse_sections(template) {
        let is_global = section.name.trim() == "global";
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

/// Options of each job of a template by their names in fio, with those of the global sections before it.
pub(super) fn effective_options(template: &str) -> Vec<BTreeMap<String, String>> {
    let mut global = BTreeMap::new();
    let mut jobs = Vec::new();
    for section in parse_sections(template) {
        let options = section.lines.iter().map(|line| match line.strip_prefix("include ") {
            Some(file) => ("include", file.trim()),
            None => parse_option(line),
        });
        let options = options.map(|(name, value)| (option_name(name).to_owned(), value.to_owned()));
        if section.name.trim() == "global" {
            global.extend(options);
        } else {
            let mut job = global.clone();
            job.extend(options);
            jobs.push(job);
        }
    }
    jobs
}

/// Whether a template uses the targets.
pub(super) fn uses_targets(template: &str) -> bool {
    template.contains("$target")
}

/// Whether a template names files other than the targets.
pub(super) fn names_own_files(template: &str) -> bool {
    parse_sections(template).iter().flat_map(|section| &section.lines).any(|line| {
        let (name, value) = parse_option(line);
        ["filename", "directory", "filename_format"].contains(&name) && !value.contains("$target")
    })
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
    let is_global = |section: &&Section<'_>| section.name.trim() == "global";
    // These options move I/O to other parts of a file.
    let shifts = ["offset", "filesize", "io_size", "zonesize"];
    if sections.iter().any(|section| shifts.iter().any(|name| value(section, name).is_some())) {
        return None;
    }
    let for_all = sections.iter().filter(is_global).find_map(|section| value(section, "size"));
    let jobs = sections.iter().filter(|section| !is_global(section));
    jobs.map(|job| value(job, "size").or_else(|| for_all.clone())?.parse().ok())
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
    for line in template.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
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

/// Splits an option into name and value; the value of a flag is empty.
fn parse_option(line: &str) -> (&str, &str) {
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    (name.trim(), value.trim())
}

impl Section<'_> {
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

/// Name of an option that may be written in another way.
pub(super) fn option_name(name: &str) -> &str {
    match name {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "blocksize_range" => "bsrange",
        "blocksize_unaligned" => "bs_unaligned",
        "ramptime" => "ramp_time",
        other => other,
    }
}

/// Value that the parameters give an option.
fn job_option(job: &FioJob, option: &str) -> Result<String, Failure> {
    let option = option_name(option);
    let option_value = job.options().into_iter().find(|(name, _)| *name == option);
    option_value.map(|(_, value)| value).ok_or_else(|| {
        Failure::refused(format!("no parameter provides `$@` of job-file option `{option} = $@`: write a value"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::params::Params;
    use super::*;

    const TEMPLATE: &str = "# pbench's\n[global]\nbs = $@\nruntime=30\nwrite_hist_log = fio\nlog_hist_msec=10000\n\n\
                            [job-$target]\nfilename = $target\nrw=$@\nsize = 4096M\nnorandommap\n";

    fn job() -> FioJob {
        Params::default().job(vec!["/a:1".to_owned(), "/b".to_owned()])
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
    fn an_option_without_a_parameter_is_refused() {
        assert!(expand("[x]\nthinktime=$@\n", &job()).unwrap_err().to_string().contains("thinktime = $@"));
    }

    #[test]
    fn files_other_than_targets_are_detected() {
        assert!(!names_own_files(TEMPLATE));
        assert!(names_own_files("[x]\nfilename=/dev/sda\n"));
        assert!(names_own_files("directory = /data\n[x]\n"));
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
            names_own_files(&text);
            file_size(&text);
        }
    }
}
