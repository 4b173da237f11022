//! Tests that weighbridge ships. The program's output is recorded beside each sample, and is parsed here independently.

use std::fs;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;

use super::{Subject, one_of, version_of};
use crate::case::{CaseError, Runner};
use crate::printed::{Printed, between};

/// A metric and the value that the program printed for it; `None` if it is not found.
type NamedFigure = (&'static str, Option<Printed>);

pub(super) struct ShippedTest {
    name: &'static str,
    version: (&'static str, &'static [&'static str]),
    params: fn(&mut ChaCha8Rng) -> String,
    /// File of the sample with what the program printed.
    file: &'static str,
    figures: fn(&str) -> Vec<NamedFigure>,
}

impl Subject for ShippedTest {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> Option<String> {
        version_of(self.version.0, self.version.1)
    }

    fn run(&self, runner: &mut Runner) -> Result<(), CaseError> {
        let params = (self.params)(&mut runner.random);
        runner.options = format!("{}:{params}", self.name);
        let spec = runner.options.clone();
        runner.weighbridge(&[
            "run",
            &spec,
            "--samples",
            "1",
            "--min-time",
            "100ms",
            "--warm-up",
            "0",
            "--into",
            "run",
        ])?;
        let ours = runner.only_cell("run")?;
        let printed = find(&runner.path("run"), self.file)?
            .ok_or_else(|| CaseError::Failed(format!("{spec}: no `{}` of a sample", self.file)))?;
        for (metric, figure) in (self.figures)(&fs::read_to_string(printed)?) {
            runner.compare(&ours, metric, figure.ok_or_else(|| CaseError::NotReported(metric.to_owned()))?);
        }
        Ok(())
    }
}

fn find(folder: &Path, name: &str) -> std::io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = find(&path, name)? {
                return Ok(Some(found));
            }
        } else if path.file_name().is_some_and(|own| own == name) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The word at a position of the line that begins with a word, from 0.
fn word<'a>(text: &'a str, first: &str, position: usize) -> Option<&'a str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(first))?;
    line.split_whitespace().nth(position)
}

pub(super) const SYSBENCH_CPU: ShippedTest = ShippedTest {
    name: "sysbench-cpu",
    version: ("sysbench", &["--version"]),
    params: |random| {
        format!("threads={},max-prime={}", one_of(random, &[1, 2]), one_of(random, &[2000, 10_000, 30_000]))
    },
    file: "run.stdout",
    figures: |text| {
        let figure = |name: &str| between(text, name, &['\n']).and_then(Printed::parse);
        vec![
            ("throughput/events", figure("events per second:")),
            ("latency/mean", figure("avg:").map(|ms| ms.times(1e-3))),
            ("latency/p95", figure("95th percentile:").map(|ms| ms.times(1e-3))),
        ]
    },
};

pub(super) const SYSBENCH_MEMORY: ShippedTest = ShippedTest {
    name: "sysbench-memory",
    version: ("sysbench", &["--version"]),
    params: |random| {
        format!(
            "threads={},operation={},block-size={}",
            one_of(random, &[1, 2]),
            one_of(random, &["read", "write"]),
            one_of(random, &["1k", "64k", "1m"])
        )
    },
    file: "run.stdout",
    figures: |text| {
        // `10240.00 MiB transferred (5120.10 MiB/sec)`
        let rate = between(text, " transferred (", &[' ']).and_then(Printed::parse);
        vec![("throughput/bandwidth", rate.map(|rate| rate.times(1_048_576.0)))]
    },
};

pub(super) const OPENSSL: ShippedTest = ShippedTest {
    name: "openssl-speed",
    version: ("openssl", &["version"]),
    params: |random| {
        let algorithm = one_of(random, &["sha256", "aes-256-gcm", "chacha20-poly1305"]);
        format!("algorithm={algorithm},block-size={},processes=1", one_of(random, &["1k", "16k"]))
    },
    file: "run.stdout",
    figures: |text| {
        let last = text.lines().find(|line| line.starts_with("+F:")).and_then(|line| line.split(':').next_back());
        vec![("throughput/bandwidth", last.and_then(Printed::parse))]
    },
};

pub(super) const SEVEN_ZIP: ShippedTest = ShippedTest {
    name: "7z",
    version: ("7zz", &["i"]),
    params: |random| format!("threads={},dictionary={}", one_of(random, &[1, 2]), one_of(random, &[18, 20])),
    file: "run.stdout",
    figures: |text| {
        let sides: Vec<&str> =
            text.lines().find(|line| line.starts_with("Avr:")).unwrap_or_default().split('|').collect();
        let speed = |side: usize, at: usize| sides.get(side)?.split_whitespace().nth(at).and_then(Printed::parse);
        vec![
            ("throughput/rating", word(text, "Tot:", 3).and_then(Printed::parse)),
            ("throughput/compress", speed(0, 1).map(|kib| kib.times(1024.0))),
            ("throughput/decompress", speed(1, 0).map(|kib| kib.times(1024.0))),
        ]
    },
};

pub(super) const REDIS: ShippedTest = ShippedTest {
    name: "redis",
    version: ("redis-benchmark", &["--version"]),
    params: |random| {
        let command = one_of(random, &["get", "set", "lpush", "lpop", "sadd"]);
        format!("command={command},requests={},clients={}", one_of(random, &[5000, 20_000]), one_of(random, &[1, 20]))
    },
    file: "benchmark.stdout",
    figures: |text| {
        // `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms",…` and one row.
        let mut rows = text
            .lines()
            .filter(|line| line.starts_with('"'))
            .map(|line| line.split(',').map(|field| field.trim_matches('"')).collect::<Vec<_>>());
        let (heads, values) = (rows.next().unwrap_or_default(), rows.next().unwrap_or_default());
        let figure = |name: &str| Printed::parse(values.get(heads.iter().position(|head| *head == name)?)?);
        let milliseconds = |name: &str| figure(name).map(|ms| ms.times(1e-3));
        vec![
            ("throughput/requests", figure("rps")),
            ("latency/p50", milliseconds("p50_latency_ms")),
            ("latency/p99", milliseconds("p99_latency_ms")),
        ]
    },
};

pub(super) const STRESS_NG: ShippedTest = ShippedTest {
    name: "stress-ng",
    version: ("stress-ng", &["--version"]),
    params: |random| {
        let stressor = one_of(random, &["cpu", "switch", "getrandom", "matrix"]);
        format!("stressor={stressor},instances={}", one_of(random, &[1, 2]))
    },
    file: "run.stderr",
    figures: |text| {
        // `stress-ng: metrc: [18088] cpu  804  1.01  0.46  0.00  796.69  1731.51 …`, after two lines of heads.
        let rows = text.lines().filter(|line| line.contains("metrc:") || line.contains("info:"));
        let fields = rows.map(|line| line.split_whitespace().skip(3).collect::<Vec<_>>());
        let row = fields
            .into_iter()
            .find(|fields| fields.len() >= 7 && fields[1..7].iter().all(|field| field.parse::<f64>().is_ok()));
        let figure = |at: usize| row.as_ref().and_then(|fields| Printed::parse(fields[at]));
        vec![("throughput/operations", figure(5)), ("resource/operations-per-cpu-second", figure(6))]
    },
};
