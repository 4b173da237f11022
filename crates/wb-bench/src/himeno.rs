//! Himeno on one thread against a plain C transcription, compiled here for this CPU.

use crate::bench_env::BenchEnv;
use crate::pairs::{BenchSide, PairedBenchmark, json_figure};
use std::process::Command;
use wb_kernels::himeno::{Config, Grid};
use wb_kernels::{HugePagePolicy, Isa, Work, cpus};

const SOURCE: &str = include_str!("../peers/himeno.c");

pub(crate) fn rows(env: &BenchEnv) -> Vec<PairedBenchmark<'_>> {
    [Grid::S, Grid::M]
        .into_iter()
        .map(|grid| PairedBenchmark::new(format!("himeno {grid} 1 thread"), "MFLOPS", move || sides(env, grid)))
        .collect()
}

fn sides(env: &BenchEnv, grid: Grid) -> Result<(BenchSide, BenchSide), String> {
    let cpu = *cpus::allowed().last().ok_or("no CPU is available")?;
    let config = |work| Config { grid, cpus: vec![cpu], isa: Isa::widest(), huge_pages: HugePagePolicy::Inherit, work };
    let iterations = iterations(env, &config(Work::Seconds(env.seconds)))?;
    let [i, j, k] = grid.extent();
    let flags = ["-O3", "-march=native", "-DGOSA_TYPE=float"].map(str::to_owned);
    let size = [format!("-DGI={i}"), format!("-DGJ={j}"), format!("-DGK={k}")];
    let peer = env.compile(&format!("himeno-{grid}"), SOURCE, &[&flags[..], &size].concat())?;
    let weighbridge = BenchSide::new(
        "weighbridge",
        env.kernel_command("himeno", &config(Work::Iterations(iterations)))?,
        json_figure("mflops"),
    );
    let pinned = ["taskset", "-c"].map(str::to_owned).into_iter();
    let command = pinned.chain([cpu.to_string(), peer.display().to_string(), iterations.to_string()]);
    let peer =
        BenchSide::new("gcc -O3 -march=native", command.collect(), |out| out.split(' ').nth(2)?.trim().parse().ok());
    Ok((weighbridge, peer))
}

/// The number of iterations that take the time of one figure; both sides do the same work.
fn iterations(env: &BenchEnv, config: &Config) -> Result<u64, String> {
    let command = env.kernel_command("himeno", config)?;
    let output = Command::new(&command[0]).args(&command[1..]).output().map_err(|error| error.to_string())?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cannot calibrate: {error}: {}", String::from_utf8_lossy(&output.stderr).trim()))?;
    report["iterations"].as_u64().ok_or_else(|| "cannot calibrate: missing iterations in the report".to_owned())
}
