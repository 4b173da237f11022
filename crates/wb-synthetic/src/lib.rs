//! Builds of any size in run-perf's layout, the same each time.
//!
//! For: seeing how fast builds are compared and their page is drawn, in tests and by `make bench`.
//!
//! Must not know: who reads them.
//!
//! Start with [`Synthetic::write`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// How much is written. Each case has one primary metric of throughput and three of latency, and each metric two checks.
#[derive(Debug, Clone, Copy)]
pub struct Synthetic {
    /// Folders of results.
    pub builds: usize,
    /// In each build.
    pub profiles: usize,
    /// In each profile.
    pub tests: usize,
    /// In each test.
    pub cases: usize,
    /// Of each metric.
    pub samples: usize,
}

/// 8,000 checks in ten builds.
pub const PAGE: Synthetic = Synthetic { builds: 10, profiles: 4, tests: 5, cases: 50, samples: 3 };

const METRICS: [(&str, &str, f64); 4] = [
    ("throughput", "iops_sec", 150_000.0),
    ("latency", "clat", 210.0),
    ("latency", "lat", 230.0),
    ("latency", "slat", 12.0),
];

/// Figures that look random (G. Steele and others, SplitMix64).
struct Noise(u64);

impl Noise {
    /// From −1 to 1, more often near 0.
    fn next(&mut self) -> f64 {
        let mut part = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (part() + part() + part()) / 3.0
    }
}

impl Synthetic {
    /// How many checks each build has.
    pub fn checks(&self) -> usize {
        self.profiles * self.tests * self.cases * METRICS.len() * 2
    }

    /// Writes the builds into a folder; returns theirs, in order.
    ///
    /// Errors: those of writing.
    pub fn write(&self, into: &Path) -> io::Result<Vec<PathBuf>> {
        (0..self.builds).map(|build| self.write_build(into, build)).collect()
    }

    fn write_build(&self, into: &Path, build: usize) -> io::Result<PathBuf> {
        let folder = into.join(format!("build-{:02}", build + 1));
        for profile in 0..self.profiles {
            for test in 0..self.tests {
                let place = folder.join(format!("Profile{profile}/test{test}/0000"));
                fs::create_dir_all(&place)?;
                fs::write(place.join("result.json"), self.results(build, profile * self.tests + test))?;
            }
        }
        fs::write(folder.join("RUNPERF_METADATA"), metadata(build, self.profiles))?;
        Ok(folder)
    }

    fn results(&self, build: usize, test: usize) -> String {
        let cases: Vec<String> = (0..self.cases).map(|case| self.iteration(build, test, case)).collect();
        format!("[{}]", cases.join(",\n"))
    }

    /// An iteration: every 29th case gets slower at some build, every 31st faster, and a few change their parameters.
    fn iteration(&self, build: usize, test: usize, case: usize) -> String {
        let number = test * self.cases + case;
        let steps = |every: usize| number.is_multiple_of(every) && build > number / every % self.builds;
        let level = if steps(29) {
            0.85
        } else if steps(31) {
            1.12
        } else {
            1.0
        };
        let depth = if number.is_multiple_of(211) && build > 1 { 64 } else { 32 };
        let mut classes = [String::new(), String::new()];
        for (at, (class, metric, centre)) in METRICS.into_iter().enumerate() {
            let mut noise = Noise((number * METRICS.len() + at) as u64 ^ 0x5eed);
            let centre = centre * (1.5 + noise.next());
            let mut noise = Noise(((number * METRICS.len() + at) * 1000 + build) as u64);
            let factor = if class == "latency" { 1.0 / level } else { level };
            let mean = centre * factor * (1.0 + 0.02 * noise.next());
            let samples: Vec<f64> = (0..self.samples).map(|_| mean * (1.0 + 0.015 * noise.next())).collect();
            let told: Vec<String> = samples.iter().map(|value| format!(r#"{{"value": {value}}}"#)).collect();
            let into = &mut classes[usize::from(class == "latency")];
            let comma = if into.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(
                into,
                r#"{comma}"{metric}": [{{"client_hostname": "all", "mean": {mean}, "stddevpct": {}, "samples": [{}]}}]"#,
                1.0 + noise.next().abs(),
                told.join(", ")
            );
        }
        let [throughput, latency] = classes;
        let name = name(case);
        format!(
            r#"{{"iteration_name": "{name}", "iteration_data": {{"parameters": {{"benchmark": [{{
                "primary_metric": "iops_sec", "iodepth": "{depth}", "runtime": "60"}}]}},
                "throughput": {{{throughput}}}, "latency": {{{latency}}}}}}}"#
        )
    }
}

/// Four ways of reading and writing in blocks of thirteen sizes, then the same with more jobs.
fn name(case: usize) -> String {
    let (way, size, jobs) = (["read", "randread", "write", "randwrite"][case % 4], 1 << (case / 4 % 13), case / 52 + 1);
    let jobs = if jobs == 1 { String::new() } else { format!("-{jobs}jobs") };
    format!("{way}-{size}KiB{jobs}")
}

fn metadata(build: usize, profiles: usize) -> String {
    let kernel = if build < 4 { "6.1.0-17-amd64" } else { "6.1.0-18-amd64" };
    let packages: Vec<String> =
        (0..200).map(|at| format!("package-{at}-1.{}", if at == 7 { build / 3 } else { 0 })).collect();
    let sections = format!(r#"[{{"kernel": "{kernel}\nsmt on", "rpm": "{}"}}]"#, packages.join("\\n"));
    let mut text = format!(
        "build:{}\nurl:https://ci.example/job/nightly/{}\nmachine:anvil.example\nmachine_url:https://machines.example/anvil\n\
         distro:Debian-12\nguest_distro:Debian-12\nrunperf_version:1.2\nproject:nightly\n\
         runperf_cmd:run-perf -vvv --hosts anvil --default-password secret -- fio\nenvironment_world:{sections}\n",
        build + 1,
        build + 1
    );
    for profile in 0..profiles {
        let _ = writeln!(text, "environment_profile_Profile{profile}:{sections}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<String> = (0..1250).map(name).collect();
        assert_eq!(names.len(), 1250);
        assert!(names.contains("read-1KiB") && names.contains("randwrite-4096KiB-24jobs"));
    }

    #[test]
    fn what_is_written_is_the_same_each_time() {
        let small = Synthetic { builds: 2, profiles: 1, tests: 1, cases: 3, samples: 2 };
        assert_eq!(small.checks(), 24);
        assert_eq!(small.results(1, 0), small.results(1, 0));
        assert_ne!(small.results(1, 0), small.results(0, 0));
        assert_eq!(small.results(0, 0).matches("\"value\"").count(), 3 * METRICS.len() * 2);
    }
}
