//! rd-hashd of resctl-demo (`cargo install rd-hashd`), if it is in `PATH`, for information.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::rate::{WINDOW, WINDOWS};
use crate::bench_env::{BenchEnv, require_tool};
use crate::benchmark::BenchFigure;
use crate::child_guard::ChildGuard;

/// Time in which its test files are created and its controllers settle.
const SETTLING: Duration = Duration::from_secs(30);
/// The footprint, a GiB.
const SIZE: &str = "1073741824";

/// Lets rd-hashd hold a rate, in whole requests per second, and measures it over the same windows.
pub(super) fn figures(env: &BenchEnv, target: f64) -> Result<Vec<BenchFigure>, String> {
    require_tool("rd-hashd")?;
    let folder = env.folder().join("rd-hashd");
    let path = |name: &str| folder.join(name);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    fs::write(path("params"), format!("{{\"rps_target\": {target:.0}}}")).map_err(|error| error.to_string())?;
    let mut command = Command::new("rd-hashd");
    command.arg("--size").arg(SIZE).arg("--testfiles").arg(path("files")).arg("--params").arg(path("params"));
    command.arg("--report").arg(path("report")).stdout(Stdio::null()).stderr(Stdio::null());
    let process = ChildGuard(command.spawn().map_err(|error| format!("rd-hashd: {error}"))?);
    thread::sleep(SETTLING);
    let done = || -> Result<(Instant, f64), String> {
        let text = fs::read_to_string(path("report")).map_err(|error| format!("report of rd-hashd: {error}"))?;
        number(&text, "nr_done").map(|done| (Instant::now(), done))
    };
    let mut edges = vec![done()?];
    for _ in 0..WINDOWS {
        thread::sleep(Duration::from_secs_f64(WINDOW));
        edges.push(done()?);
    }
    drop(process);
    let rate = |edges: &[(Instant, f64)]| (edges[1].1 - edges[0].1) / (edges[1].0 - edges[0].0).as_secs_f64();
    let rates: Vec<f64> = edges.windows(2).map(rate).collect();
    Ok(vec![BenchFigure::median("rate", &rates, "1/s", None)?])
}

fn number(text: &str, name: &str) -> Result<f64, String> {
    let lines: String = text.lines().filter(|line| !line.starts_with("//")).collect();
    let report: serde_json::Value = serde_json::from_str(&lines).map_err(|error| error.to_string())?;
    report[name].as_f64().ok_or(format!("missing field `{name}` in the report of rd-hashd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_comments_and_fields() {
        let text = "//\n// a report\n{\n  \"rps\": 1.5,\n  \"nr_done\": 20\n}\n";
        assert_eq!(number(text, "nr_done"), Ok(20.0));
        assert_eq!(number(text, "nr"), Err("missing field `nr` in the report of rd-hashd".to_owned()));
    }
}
