//! Generates reproducible builds of any size in run-perf's layout, for tests and benchmarks of comparisons and their
//! page (`make bench`).
//!
//! This crate does not depend on the readers of its data.
//!
//! Start with [`SyntheticBuilds::write`].

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Size of the generated data. Each case has one primary throughput metric and three latency metrics, each with two
/// checks.
#[derive(Debug, Clone, Copy)]
pub struct SyntheticBuilds {
    /// Number of builds, each a folder of results.
    pub builds: usize,
    /// Number of profiles per build.
    pub profiles: usize,
    /// Number of tests per profile.
    pub tests: usize,
    /// Number of cases per test.
    pub cases: usize,
    /// Number of samples per metric.
    pub samples: usize,
}

/// Ten builds with 8,000 checks each: their comparison is a large page.
pub const LARGE_PAGE_BUILDS: SyntheticBuilds =
    SyntheticBuilds { builds: 10, profiles: 4, tests: 5, cases: 50, samples: 3 };

const METRICS: [(&str, &str, f64); 4] = [
    ("throughput", "iops_sec", 150_000.0),
    ("latency", "clat", 210.0),
    ("latency", "lat", 230.0),
    ("latency", "slat", 12.0),
];

/// Deterministic pseudorandom numbers (G. Steele and others, SplitMix64).
struct Noise(u64);

impl Noise {
    /// The next number from −1 to 1, denser near 0.
    fn next(&mut self) -> f64 {
        let mut uniform = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        (uniform() + uniform() + uniform()) / 3.0
    }
}

impl SyntheticBuilds {
    /// Number of checks per build.
    pub fn checks(&self) -> usize {
        self.profiles * self.tests * self.cases * METRICS.len() * 2
    }

    /// Writes the builds into a folder; returns the folder of each build, in order.
    ///
    /// Errors: if a file cannot be written.
    pub fn write(&self, into: &Path) -> io::Result<Vec<PathBuf>> {
        (0..self.builds).map(|build| self.write_build(into, build)).collect()
    }

    fn write_build(&self, into: &Path, build: usize) -> io::Result<PathBuf> {
        let folder = into.join(format!("build-{:02}", build + 1));
        for profile in 0..self.profiles {
            for test in 0..self.tests {
                let test_folder = folder.join(format!("Profile{profile}/test{test}/0000"));
                fs::create_dir_all(&test_folder)?;
                fs::write(test_folder.join("result.json"), self.results(build, profile * self.tests + test))?;
            }
        }
        fs::write(folder.join("RUNPERF_METADATA"), metadata(build, self.profiles))?;
        Ok(folder)
    }

    fn results(&self, build: usize, test: usize) -> String {
        let cases: Vec<String> = (0..self.cases).map(|case| self.iteration(build, test, case)).collect();
        format!("[{}]", cases.join(",\n"))
    }

    /// The JSON of an iteration. Every 29th case becomes slower at some build, every 31st faster, and a few change
    /// their parameters.
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
        for (index, (class, metric, centre)) in METRICS.into_iter().enumerate() {
            let mut noise = Noise((number * METRICS.len() + index) as u64 ^ 0x5eed);
            let centre = centre * (1.5 + noise.next());
            let mut noise = Noise(((number * METRICS.len() + index) * 1000 + build) as u64);
            let factor = if class == "latency" { 1.0 / level } else { level };
            let mean = centre * factor * (1.0 + 0.02 * noise.next());
            let samples: Vec<f64> = (0..self.samples).map(|_| mean * (1.0 + 0.015 * noise.next())).collect();
            let sample_objects: Vec<String> = samples.iter().map(|value| format!(r#"{{"value": {value}}}"#)).collect();
            let class_text = &mut classes[usize::from(class == "latency")];
            let comma = if class_text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(
                class_text,
                r#"{comma}"{metric}": [{{"client_hostname": "all", "mean": {mean}, "stddevpct": {}, "samples": [{}]}}]"#,
                1.0 + noise.next().abs(),
                sample_objects.join(", ")
            );
        }
        let [throughput, latency] = classes;
        let name = case_name(case);
        format!(
            r#"{{"iteration_name": "{name}", "iteration_data": {{"parameters": {{"benchmark": [{{
                "primary_metric": "iops_sec", "iodepth": "{depth}", "runtime": "60"}}]}},
                "throughput": {{{throughput}}}, "latency": {{{latency}}}}}}}"#
        )
    }
}

/// The name of a case: four access patterns with thirteen block sizes, then the same with more jobs.
fn case_name(case: usize) -> String {
    let (pattern, size, jobs) =
        (["read", "randread", "write", "randwrite"][case % 4], 1 << (case / 4 % 13), case / 52 + 1);
    let jobs = if jobs == 1 { String::new() } else { format!("-{jobs}jobs") };
    format!("{pattern}-{size}KiB{jobs}")
}

fn metadata(build: usize, profiles: usize) -> String {
    let kernel = if build < 4 { "6.1.0-17-amd64" } else { "6.1.0-18-amd64" };
    let packages: Vec<String> =
        (0..200).map(|index| format!("package-{index}-1.{}", if index == 7 { build / 3 } else { 0 })).collect();
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
    fn case_names_are_unique() {
        let names: std::collections::BTreeSet<String> = (0..1250).map(case_name).collect();
        assert_eq!(names.len(), 1250);
        assert!(names.contains("read-1KiB") && names.contains("randwrite-4096KiB-24jobs"));
    }

    #[test]
    fn generated_results_are_reproducible() {
        let small = SyntheticBuilds { builds: 2, profiles: 1, tests: 1, cases: 3, samples: 2 };
        assert_eq!(small.checks(), 24);
        assert_eq!(small.results(1, 0), small.results(1, 0));
        assert_ne!(small.results(1, 0), small.results(0, 0));
        assert_eq!(small.results(0, 0).matches("\"value\"").count(), 3 * METRICS.len() * 2);
    }
}
