//! Temporary result folders for tests.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(unreachable_pub, reason = "a module of several tests")]
#![allow(clippy::unwrap_used, reason = "a test that cannot create its folder has failed")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wb_compare::{BuildSource, Builds, LoadedBuilds, ReadOptions};
use wb_record::RunFolder;
use wb_results::comparison::Statistic;

/// A temporary directory with result folders.
pub struct TestFolders(TempDir);

/// A metric of a case, as written by pbench.
#[derive(Clone)]
pub struct GeneratedMetric {
    pub class: &'static str,
    pub metric: String,
    pub mean: f64,
    pub stddev: f64,
    pub samples: Vec<f64>,
}

pub fn throughput(metric: &str, mean: f64, stddev: f64) -> GeneratedMetric {
    GeneratedMetric { class: "throughput", metric: metric.to_owned(), mean, stddev, samples: vec![] }
}

pub fn latency(metric: &str, mean: f64, stddev: f64) -> GeneratedMetric {
    GeneratedMetric { class: "latency", metric: metric.to_owned(), mean, stddev, samples: vec![] }
}

/// An iteration in pbench's format with this primary metric.
pub fn iteration(name: &str, primary: &str, metrics: &[GeneratedMetric]) -> String {
    let class = |class: &str| {
        let entries = metrics.iter().filter(|metric| metric.class == class).map(|metric| {
            let samples: Vec<_> = metric.samples.iter().map(|value| format!(r#"{{"value": {value}}}"#)).collect();
            format!(
                r#""{}": [{{"client_hostname": "all", "mean": {}, "stddevpct": {}, "samples": [{}]}}]"#,
                metric.metric,
                metric.mean,
                metric.stddev,
                samples.join(", ")
            )
        });
        entries.collect::<Vec<_>>().join(", ")
    };
    format!(
        r#"{{"iteration_name": "{name}", "iteration_data": {{
            "parameters": {{"benchmark": [{{"primary_metric": "{primary}", "name": "{name}"}}]}},
            "latency": {{{}}}, "throughput": {{{}}}}}}}"#,
        class("latency"),
        class("throughput")
    )
}

impl TestFolders {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Creates a run with these iterations in one test; returns its path.
    pub fn run(&self, name: &str, test: &str, iterations: &[String]) -> PathBuf {
        self.file(&format!("{name}/{test}/result.json"), format!("[{}]", iterations.join(",\n")));
        self.path().join(name)
    }

    pub fn source(&self, text: &str) -> BuildSource {
        let runs = text.split(',').map(|run| self.path().join(run)).collect();
        BuildSource { name: text.to_owned(), runs, profiles: Default::default() }
    }

    pub fn read(&self, builds: &[&str]) -> Builds {
        let LoadedBuilds { builds, warnings } = self.try_read(builds, &ReadOptions::default());
        assert!(warnings.is_empty(), "{warnings:?}");
        builds
    }

    pub fn try_read(&self, builds: &[&str], options: &ReadOptions) -> LoadedBuilds {
        let sources: Vec<_> = builds.iter().map(|text| self.source(text)).collect();
        wb_compare::read(&sources, options, &unchanged_results).unwrap()
    }
}

/// Replaces a study: returns the results of a run unchanged.
pub fn unchanged_results(run: &RunFolder) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let children = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let serials = children(run.path().to_owned()).flat_map(children).flat_map(children);
    let mut files: Vec<_> = serials.map(|serial| serial.join("result.json")).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect())
}

/// Formats every value of the builds, one per line.
pub fn format_values(builds: &Builds) -> String {
    let mut text = String::new();
    for build in builds.list() {
        for row in builds.rows() {
            let id = builds.id(row, Statistic::Mean);
            for run in &build.runs {
                let Some(reading) = run.reading(row) else { continue };
                let (mean, stddev, primary) = (reading.mean, reading.stddev_percent, reading.primary);
                let params: Vec<_> = builds.params(reading.params).collect();
                let samples = run.samples(row);
                writeln!(text, "{id} {mean:?} {stddev:?} {primary} {params:?} {samples:?}").unwrap();
            }
        }
    }
    text
}

/// A folder of the data next to the project; prints a warning if it is missing.
pub fn shared(folder: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(folder);
    if path.is_dir() {
        return Some(path);
    }
    wb_test_skip::skip!("missing {}, so nothing was compared with run-perf's own values", path.display());
    None
}

/// The shared builds in the order of their names.
pub fn shared_builds(data: &Path) -> Vec<BuildSource> {
    let entries = fs::read_dir(data.join("1_base")).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().map(|path| BuildSource::parse(path.to_str().unwrap()).unwrap()).collect()
}
