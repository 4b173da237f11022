//! fio: its JSON is imported, and its report for people, of the same run, is the other side.

use rand::Rng;

use super::{Subject, one_of, version_of};
use crate::case::{CaseError, Figures, Runner};
use crate::printed::{Printed, between};

pub(super) struct Fio;

impl Subject for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn version(&self) -> Option<String> {
        version_of("fio", &["--version"])
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let random = &mut runner.random;
        let jobs = one_of(random, &["1", "1", "2", "3"]);
        let engine = one_of(random, &["psync", "sync", "libaio", "pvsync2", "mmap", "null", "null"]);
        let patterns = ["read", "write", "randread", "randwrite", "rw", "randrw", "randtrim", "trimwrite"];
        // Files cannot be trimmed.
        let possible = if engine == "null" { &patterns[..] } else { &patterns[..6] };
        let pattern = one_of(random, possible);
        let mut options = vec![
            "--name=job".to_owned(),
            "--filename=target".to_owned(),
            "--size=8m".to_owned(),
            "--time_based".to_owned(),
            format!("--rw={pattern}"),
            format!("--bs={}", one_of(random, &["512", "4k", "16k", "128k", "1m"])),
            format!("--ioengine={engine}"),
            format!("--iodepth={}", one_of(random, &["1", "4", "32"])),
            format!("--runtime={}ms", one_of(random, &["300", "500", "1100"])),
            format!("--numjobs={jobs}"),
        ];
        let mut maybe = |share: f64, option: &str| {
            if random.random_bool(share) {
                options.push(option.to_owned());
            }
        };
        maybe(0.5, "--group_reporting");
        maybe(0.3, "--rate_iops=500");
        maybe(0.2, "--fdatasync=8");
        maybe(0.2, "--fsync=16");
        maybe(0.2, "--lat_percentiles=1");
        maybe(0.2, "--slat_percentiles=1");
        maybe(0.2, "--percentile_list=0.5:50:75:99.9:99.999:100");
        maybe(0.2, "--rwmixread=70");
        maybe(0.2, "--ramp_time=200ms");
        maybe(0.1, "--unified_rw_reporting=1");
        maybe(0.1, "--unified_rw_reporting=both");
        let format = one_of(&mut runner.random, &["normal,json", "normal,json+"]);
        options.push(format!("--output-format={format}"));
        runner.options = options.join(" ");
        let report = runner.run("fio", &options)?;
        std::fs::write(runner.path("report.txt"), &report)?;
        let ours = runner.import(&["report.txt"])?;
        let is_one_job = jobs == "1" || options.iter().any(|option| option == "--group_reporting");
        let is_mixed = ["rw", "randrw", "trimwrite"].contains(&pattern);
        compare(runner, &ours, &report, is_one_job, is_mixed)
    }
}

/// Compares the figures of each kind of operation. Jobs that fio reports apart are one cell, and only their bandwidth
/// together is in fio's report. `is_mixed` is whether the pattern has several kinds of operations.
fn compare(
    runner: &mut Runner,
    ours: &Figures,
    report: &str,
    is_one_job: bool,
    is_mixed: bool,
) -> Result<(), CaseError> {
    let kinds = ["read", "write", "trim", "mixed"].into_iter().filter(|kind| section(report, kind).is_some());
    let mut kinds: Vec<&str> = kinds.collect();
    // Then the JSON has nothing else, not even syncs.
    let is_unified = kinds == ["mixed"];
    // The sum beside its parts.
    if kinds.len() > 1 {
        kinds.retain(|kind| *kind != "mixed");
    }
    if kinds.is_empty() {
        return Err(CaseError::NotReported("operations".to_owned()));
    }
    for kind in &kinds {
        let prefix = if is_mixed { format!("{kind}-") } else { String::new() };
        // `   READ: bw=106MiB/s (111MB/s), …` is that of all jobs.
        let of_all = format!("{}: bw=", kind.to_uppercase());
        if let Some(bandwidth) = between(report, &of_all, &['/']).and_then(Printed::parse) {
            runner.compare(ours, &format!("throughput/{prefix}bandwidth"), bandwidth);
        }
        let Some(section) = section(report, kind).filter(|_| is_one_job) else { continue };
        let iops = between(&section, "IOPS=", &[',']).and_then(Printed::parse);
        let iops = iops.ok_or_else(|| CaseError::NotReported(format!("IOPS of {kind}")))?;
        runner.compare(ours, &format!("throughput/{prefix}iops"), iops);
        for latency in ["slat", "clat", "lat"] {
            compare_latency(runner, ours, &section, &prefix, latency);
            compare_percentiles(runner, ours, &section, &prefix, latency);
        }
    }
    // `  fsync/fdatasync/sync_file_range:`, `    sync (usec): min=…`.
    let syncs: Vec<&str> = report.lines().skip_while(|line| !line.starts_with("  fsync/fdatasync")).take(14).collect();
    if let Some(line) =
        syncs.iter().find(|line| line.trim_start().starts_with("sync (")).filter(|_| is_one_job && !is_unified)
        && let Some((unit, mean)) = seconds(line).zip(between(line, "avg=", &[',']).and_then(Printed::parse))
    {
        runner.compare(ours, "latency/sync-lat-mean", mean.times(unit));
        compare_percentiles(runner, ours, &syncs.join("\n"), "sync-", "lat");
    }
    if is_one_job && let Some(line) = report.lines().find(|line| line.trim_start().starts_with("cpu ")) {
        for (metric, name) in [("cpu-user", "usr="), ("cpu-system", "sys=")] {
            // Of several jobs, this is their average.
            let is_alone = !report.contains("(groupid=0, jobs=2)") && !report.contains("(groupid=0, jobs=3)");
            if let Some(percent) = between(line, name, &['%']).and_then(Printed::parse).filter(|_| is_alone) {
                runner.compare(ours, &format!("resource/{metric}"), percent);
            }
        }
    }
    Ok(())
}

/// The lines of a kind of operation, up to the next kind.
fn section(report: &str, kind: &str) -> Option<String> {
    let head = format!("  {kind}: IOPS=");
    let mut lines = report.lines().skip_while(|line| !line.starts_with(&head));
    let first = lines.next()?;
    let rest = lines.take_while(|line| line.starts_with("    ") || line.starts_with("     |"));
    Some(std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n"))
}

/// Seconds of a unit in parentheses, as in `clat (usec):`.
fn seconds(line: &str) -> Option<f64> {
    ["(nsec)", "(usec)", "(msec)"].iter().zip([1e-9, 1e-6, 1e-3]).find(|(unit, _)| line.contains(*unit)).map(|it| it.1)
}

fn compare_latency(runner: &mut Runner, ours: &Figures, section: &str, prefix: &str, latency: &str) {
    let line = section.lines().find(|line| line.trim_start().starts_with(&format!("{latency} (")));
    let figures = line.and_then(|line| Some((seconds(line)?, Printed::parse(between(line, "avg=", &[','])?)?)));
    if let Some((unit, mean)) = figures {
        runner.compare(ours, &format!("latency/{prefix}{latency}-mean"), mean.times(unit));
    }
}

/// Percentiles as in `     |  1.00th=[    5],  5.00th=[    6],`, after `    clat percentiles (usec):`.
fn compare_percentiles(runner: &mut Runner, ours: &Figures, section: &str, prefix: &str, latency: &str) {
    let head = if prefix == "sync-" { " sync percentiles (".to_owned() } else { format!(" {latency} percentiles (") };
    let mut lines = section.lines().skip_while(|line| !line.contains(&head));
    let Some(unit) = lines.next().and_then(seconds) else { return };
    for line in lines.take_while(|line| line.trim_start().starts_with('|')) {
        for part in line.split("],") {
            let Some((percent, value)) = part.split_once("th=[") else { continue };
            let percent: Option<f64> = percent.trim_matches([' ', '|']).parse().ok();
            if let (Some(percent), Some(value)) = (percent, Printed::parse(value.trim_matches([' ', ']']))) {
                runner.compare(ours, &format!("latency/{prefix}{latency}-p{percent}"), value.times(unit));
            }
        }
    }
}
