//! Matrices of implementations: listing a large one, the harness beside endpoints, and each pair against its ceiling.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench_env::BenchEnv;
use crate::benchmark::{BenchFigure, Benchmark, FigureBound};
use crate::compare::time_command;
use crate::harness::run_figures;

/// Endpoints of the large matrix; each is paired with each.
const ENDPOINTS: usize = 200;
const LISTS: usize = 11;
/// The matrix of libp2p's implementations, whose programs `make endpoints` builds.
const MATRIX: &str = "examples/peers/libp2p.toml";

pub(crate) fn benchmarks(env: &BenchEnv) -> Vec<Benchmark<'_>> {
    vec![
        Benchmark::new("peers, list of 200 × 200", || list_figures(env)),
        Benchmark::new("peers, libp2p", || pair_figures(env)),
    ]
}

fn list_figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let mut text = "axes = [\"transport\"]\n".to_owned();
    for number in 0..ENDPOINTS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "[[endpoints]]\nid = \"e{number}\"\nsupports = {{ transport = [\"tcp\"] }}");
    }
    let file = env.folder().join("large.toml");
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let program = env.weighbridge_program()?;
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..LISTS {
        let (time, peak) = time_command(Command::new(&program).args(["peers", "list"]).arg(&file), &[0])?;
        seconds.push(time);
        memory.push(peak as f64 / 1e6);
    }
    Ok(vec![
        BenchFigure::median("time", &seconds, "s", Some(FigureBound::Below(1.0)))?,
        BenchFigure::median("peak memory", &memory, "MB", Some(FigureBound::Below(100.0)))?,
    ])
}

/// The harness's own cost beside endpoints, and the median rates of each pair in percent of a raw TCP connection.
fn pair_figures(env: &BenchEnv) -> Result<Vec<BenchFigure>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file: PathBuf = root.join(MATRIX);
    if !root.join("target/endpoints").is_dir() {
        return Err("the endpoints are not built: `make endpoints` builds them".to_owned());
    }
    let file = file.display().to_string();
    let mut figures = run_figures(
        env,
        "peers",
        &["peers", "run", &file, "--transport-ignore", "ws", "--samples", "3", "--warm-up", "0"],
        None,
    )?;
    let program = env.weighbridge_program()?;
    let summary = Command::new(&program).args(["summary", "--json"]).arg(env.folder().join("peers")).output();
    let summary = summary.map_err(|error| error.to_string())?;
    let study: serde_json::Value = serde_json::from_slice(&summary.stdout).map_err(|error| error.to_string())?;
    for cell in study["cells"].as_array().into_iter().flatten() {
        let name = cell["params"]["cell"].as_str().unwrap_or_default();
        for direction in ["upload", "download"] {
            let share = cell["metrics"].as_array().into_iter().flatten().find_map(|metric| {
                let is_share = metric["metric"]["name"] == format!("{direction}-of-ceiling").as_str();
                metric["summary"]["median"].as_f64().filter(|_| is_share)
            });
            figures.extend(
                share.map(|share| BenchFigure::new(format!("{name}, {direction}"), share, "% of raw TCP", None)),
            );
        }
    }
    Ok(figures)
}
