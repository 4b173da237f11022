//! How well hashd holds a rate, and the resources that it needs in addition to its requests.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::bench_env::BenchEnv;
use crate::benchmark::{BenchFigure, FigureBound};

/// Windows over which the rate is averaged, and their length in seconds.
pub(super) const WINDOWS: usize = 5;
pub(super) const WINDOW: f64 = 30.0;
/// Time in which the controllers settle, in seconds.
const SETTLING: f64 = 20.0;
/// Time in which the maximum is reached, and over which it is averaged, in seconds.
const MAXIMUM: [f64; 2] = [20.0, 20.0];
/// The footprint.
const MEMORY: &str = "1g";

pub(super) enum Target {
    /// In requests per second.
    Fixed(f64),
    /// Relative to the rate that the latency permits.
    PartOfMaximum(f64),
}

/// Part of a line of `hashd --json`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RateReport {
    time: f64,
    period: f64,
    completed: f64,
    anon_bytes: f64,
    resident_bytes: f64,
    cpu: Cpu,
}

#[derive(Clone, Deserialize)]
struct Cpu {
    sleep: f64,
    log: f64,
    other: f64,
}

pub(super) fn figures(env: &BenchEnv, target: Target) -> Result<Vec<BenchFigure>, String> {
    let mut figures = Vec::new();
    let target = match target {
        Target::Fixed(rate) => rate,
        Target::PartOfMaximum(part) => {
            let [settling, length] = MAXIMUM;
            let maximum = rate_of(&run(env, None, settling + length)?, settling, settling + length)?;
            figures.push(BenchFigure::new("maximum at a p95 of 75 ms", maximum, "1/s", None));
            figures.push(BenchFigure::new("target", maximum * part, "1/s", None));
            maximum * part
        }
    };
    let reports = run(env, Some(target), SETTLING + WINDOWS as f64 * WINDOW)?;
    let windows = (0..WINDOWS).map(|window| SETTLING + window as f64 * WINDOW);
    let rates = windows.map(|start| rate_of(&reports, start, start + WINDOW)).collect::<Result<Vec<f64>, String>>()?;
    let deviation = |rate: &f64| (rate / target - 1.0) * 100.0;
    let farthest = rates.iter().map(deviation).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(f64::NAN);
    figures.push(BenchFigure::median("rate", &rates, "1/s", None)?);
    figures.push(BenchFigure::new(
        format!("largest deviation of {WINDOWS} windows of {WINDOW} s"),
        farthest,
        "%",
        Some(FigureBound::Within(5.0)),
    ));
    let steady: Vec<&RateReport> = reports.iter().filter(|report| report.time > SETTLING).collect();
    let seconds: f64 = steady.iter().map(|report| report.period).sum();
    let percent = |of: fn(&Cpu) -> f64| steady.iter().map(|report| of(&report.cpu)).sum::<f64>() / seconds * 100.0;
    let own = |report: &&RateReport| (report.resident_bytes - report.anon_bytes) / 1e6;
    let memory = steady.iter().map(own).fold(f64::NEG_INFINITY, f64::max);
    let beyond = percent(|cpu| cpu.other + cpu.log + cpu.sleep);
    figures.extend([
        BenchFigure::new(
            "CPU beyond reading, touching and hashing, of one core",
            beyond,
            "%",
            Some(FigureBound::Below(2.0)),
        ),
        BenchFigure::new("of this, control", percent(|cpu| cpu.other), "%", None),
        BenchFigure::new("of this, writing the log", percent(|cpu| cpu.log), "%", None),
        BenchFigure::new("of this, sleeping, and between requests", percent(|cpu| cpu.sleep), "%", None),
        BenchFigure::new("memory beside the footprint", memory, "MB", Some(FigureBound::Below(50.0))),
    ]);
    Ok(figures)
}

fn run(env: &BenchEnv, target: Option<f64>, seconds: f64) -> Result<Vec<RateReport>, String> {
    let program = env.weighbridge_program()?;
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut command = Command::new(&program);
    command.args(["hashd", "--json", "--quiet", "--memory", MEMORY, "--duration", &format!("{seconds:.0}s")]);
    if let Some(target) = target {
        command.arg("--rps-target").arg(target.to_string());
    }
    let mut process = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let lines = process.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines());
    let parse = |line: std::io::Result<String>| {
        serde_json::from_str(&line.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
    };
    let reports = lines.map(parse).collect::<Result<Vec<RateReport>, String>>();
    let status = process.wait().map_err(failed)?;
    if status.success() { reports } else { Err(format!("weighbridge hashd ended with {status}")) }
}

/// Requests per second between two times.
fn rate_of(reports: &[RateReport], start: f64, end: f64) -> Result<f64, String> {
    let within: Vec<&RateReport> = reports.iter().filter(|report| report.time > start && report.time <= end).collect();
    let seconds: f64 = within.iter().map(|report| report.period).sum();
    if seconds < (end - start) / 2.0 {
        return Err(format!("only {seconds:.1} s between {start:.0} and {end:.0} s are reported"));
    }
    Ok(within.iter().map(|report| report.completed).sum::<f64>() / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_that_of_the_periods_within_a_window() {
        let report = |time: f64, completed| RateReport {
            time,
            period: 1.0,
            completed,
            anon_bytes: 0.0,
            resident_bytes: 0.0,
            cpu: Cpu { sleep: 0.0, log: 0.0, other: 0.0 },
        };
        let reports = [report(1.0, 100.0), report(2.0, 10.0), report(3.0, 20.0), report(4.0, 1.0)];
        assert_eq!(rate_of(&reports, 1.0, 3.0), Ok(15.0));
        assert!(rate_of(&reports, 4.0, 9.0).is_err());
    }
}
